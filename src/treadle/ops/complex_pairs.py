"""Complex tensors as pairs of real ones: what a rule for parts (`Op.parts`) is given, and gives.

A rule gets a `PartsCall` and gives a `Pair` for a complex output and a tensor for a real one, or
None where the op keeps its complex operands. Most ops do the same to each part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from treadle.core.dtypes import DType
from treadle.core.tensor import Tensor
from treadle.ops.registry import Op, run


class Pair(NamedTuple):
    """The parts of a complex tensor."""

    real: Tensor
    imag: Tensor


Operand: TypeAlias = "Tensor | Pair"


class PartsCall(NamedTuple):
    """An op on complex tensors: pairs for complex inputs, tensors for others."""

    op: Op
    inputs: Sequence[Any]
    attrs: Mapping[str, Any]
    outputs: Sequence[Any]  # specs


Rule: TypeAlias = "Callable[[PartsCall], Any]"


def of_parts(attr: Any) -> Any:
    """An attribute of an op on complex tensors, for the op on their parts."""
    return attr.real_dtype if isinstance(attr, DType) else attr


def each(call: PartsCall) -> Any:
    """The op is done to the real parts and to the imaginary ones; real operands are shared."""
    attrs = {name: of_parts(value) for name, value in call.attrs.items()}
    halves = [
        run(call.op, *(x[k] if isinstance(x, Pair) else x for x in call.inputs), **attrs)
        for k in range(2)
    ]
    return Pair(*halves)


def moved(call: PartsCall) -> Any:
    """`each` for ops that only move elements, which kernels do to complex ones too."""
    return each(call)


def first(call: PartsCall) -> Any:
    """The op looks at no element: the real parts stand for the operands."""
    return run(call.op, *(x[0] if isinstance(x, Pair) else x for x in call.inputs), **call.attrs)
