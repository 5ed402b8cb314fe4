"""Custom entries on tapes: computations whose gradient is a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.context import context
from treadle.core.tensor import Tensor
from treadle.ops.registry import Op, OpCall


def record_custom(
    name: str,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    gradient: Callable[..., Sequence[Any]],
    missing_as_zeros: bool = True,
) -> None:
    """Tell the active tapes that `outputs` were computed from `inputs`.

    Args:
        name: for error messages.
        inputs: tensors and variables.
        outputs: new tensors, which no other entry of a tape has.
        gradient: called with a gradient for each output; gives one, or None, for each input.
        missing_as_zeros: whether a missing one of several output gradients is given as zeros, or
            as None.
    """
    if not context.tapes:
        return

    def rule(call: OpCall, *output_grads: Any) -> Sequence[Any]:
        return gradient(*output_grads)

    tags = frozenset({"custom"} if missing_as_zeros else {"custom", "control_flow"})
    op = Op(name, _no_shape_rule, gradient=rule, tags=tags, takes_variables=True)
    for tape in context.tapes:
        tape.record(op, tuple(inputs), {}, tuple(outputs))


def _no_shape_rule(*specs: Any, **attrs: Any) -> Any:
    raise NotImplementedError("a custom gradient's op is only on tapes, never in a graph")
