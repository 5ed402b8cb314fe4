"""``gradients`` and ``hessians``: derivatives of tensors of the graph that is being traced."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from treadle.autodiff.backward import Entry, backpropagate
from treadle.autodiff.jacobian import jacobian
from treadle.autodiff.tape import (
    UnconnectedGradients,
    check_differentiable,
    check_sources,
    seeds_for,
    wants_zeros,
)
from treadle.autodiff.values import Gradient, key, zeros_for
from treadle.core import nest
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.indexing.gather import dense


class _RecordedGraph:
    """The graph traced so far, as a tape that has recorded all of it."""

    def __init__(self, stopped: Sequence[Any] = ()) -> None:
        self._stopped = {key(x) for x in stopped}

    def used_once(self) -> AbstractContextManager[None]:
        """A graph may be differentiated any number of times."""
        return nullcontext()

    def vector_jacobian(
        self, targets: Sequence[Any], seeds: Sequence[Any], sources: Sequence[Any]
    ) -> list[Tensor | None]:
        """One backward pass; see `GradientTape.vector_jacobian`."""
        found = self.rows_or_tensors(targets, seeds, sources)
        return [None if g is None else dense(g) for g in found]

    def rows_or_tensors(
        self, targets: Sequence[Any], seeds: Sequence[Any], sources: Sequence[Any]
    ) -> list[Gradient | None]:
        """`vector_jacobian`, with IndexedSlices for sources of which rows were read."""
        pairs = [(t, s) for t, s in zip(targets, seeds, strict=True) if s is not None]
        entries = list(self._entries(context.recorder))
        return backpropagate(entries, [t for t, _ in pairs], [s for _, s in pairs], sources)

    def _entries(self, builder: Any) -> Iterator[Entry]:
        """The operations of a region, and of the regions and traces around it, in program order."""
        around = builder.parent or builder.outer
        if around is not None:
            yield from self._entries(around)
        for node in list(builder.region.nodes):
            if node.op.gradient is not None:
                inputs = [builder.tensor_of(v) for v in builder.inputs_at_first(node)]
                outputs = [self._output(builder.tensor_of(v)) for v in node.outputs]
                yield Entry(node.op, inputs, node.attrs, outputs)

    def _output(self, tensor: Tensor) -> Tensor:
        """A result of an operation; where gradients stop, a tensor that nothing depends on."""
        return copy.copy(tensor) if key(tensor) in self._stopped else tensor


class AggregationMethod:
    """How TensorFlow adds up the gradients of a tensor that is used several times. They are always
    added in the order of their uses here: programs may name one."""

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """The gradients of the sum of `ys` by each of `xs`, in a function (`td.function`).

    Args:
        ys: a tensor or a list of tensors of the function.
        xs: a tensor, a variable, or a list of them.
        grad_ys: for each of `ys` what its elements' gradients are weighted with; ones where None.
        stop_gradients: tensors that count as constants.
        unconnected_gradients: "none" or "zero": the answer for what `ys` do not depend on.
        name, gate_gradients, aggregation_method: accepted for TensorFlow programs.

    Returns:
        A list with a tensor of the dtype and shape of each of `xs`, `IndexedSlices` where only rows
        of it were read, or None.

    Raises:
        RuntimeError: it is called outside a function, where nothing is recorded.
        TypeError: one of `ys` or `xs` is no tensor or variable.
    """
    _check_traced("gradients")
    targets, sources = nest.flatten(ys), nest.flatten(xs)
    zero = wants_zeros(unconnected_gradients)
    check_differentiable(targets, "target")
    check_sources(sources)
    graph = _RecordedGraph([] if stop_gradients is None else nest.flatten(stop_gradients))
    found = graph.rows_or_tensors(targets, seeds_for(targets, grad_ys), sources)
    return [zeros_for(x) if g is None and zero else g for g, x in zip(found, sources, strict=True)]


def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str = "hessians",
) -> list[Tensor]:
    """The second derivatives of the sum of `ys` by each of `xs`, in a function (`td.function`).

    Args:
        ys: a tensor or a list of tensors of the function.
        xs: a tensor, a variable, or a list of them.
        gate_gradients, aggregation_method, name: accepted for TensorFlow programs.

    Returns:
        A list with a tensor of shape ``x.shape + x.shape`` for each of `xs`.

    Raises:
        RuntimeError: it is called outside a function, where nothing is recorded.
        ValueError: `ys` do not depend on one of `xs`.
    """
    _check_traced("hessians")
    sources = nest.flatten(xs)
    firsts = gradients(ys, sources)
    for gradient, x in zip(firsts, sources, strict=True):
        if gradient is None:
            raise ValueError(f"hessians: ys do not depend on {x!r}{at(user_origin())}")
    graph = _RecordedGraph()
    return [
        jacobian(graph, convert_to_tensor(gradient), x, zero=True, at_once=True)
        for gradient, x in zip(firsts, sources, strict=True)
    ]


def _check_traced(what: str) -> None:
    if context.recorder is None:
        raise RuntimeError(
            f"td.{what} is not supported when eager execution is enabled. Use td.GradientTape "
            f"instead{at(user_origin())}"
        )
