"""Traces a region together with its gradient, for control flow and whole functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.autodiff.partition import Joint
from treadle.autodiff.tape import GradientTape
from treadle.autodiff.values import Gradient, gradient_spec, zeros_for
from treadle.core.context import context, recording, taping
from treadle.core.shapes import Dim
from treadle.core.spec import ListSpec, ResourceSpec, Spec
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.graph.ir import Node, Region, Value
from treadle.graph.replay import copy_nodes, replay
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.indexing.gather import dense
from treadle.ops.registry import run
from treadle.ops.shaping.reshaping import RESHAPE


def trace_gradient(
    region: Region,
    params: Sequence[Any],
    results: Sequence[int],
    seeds: Sequence[Any],
    sources: Sequence[int],
    keep_rows: bool = False,
) -> tuple[list[Tensor], list[Any], frozenset[Node]]:
    """Replay a region in the current trace and differentiate it.

    Args:
        params: the values to use for the region's parameters.
        results: the numbers of the results that have gradients, which `seeds` holds.
        sources: the numbers of the parameters to differentiate by.
        keep_rows: whether gradients that are IndexedSlices stay so. Else they become tensors.

    Returns:
        The region's results; a gradient for each source, in exactly its dims (zeros where
        nothing depends on it); the nodes with effects among those replayed.
    """
    tape = GradientTape(watch_accessed_variables=False)
    with taping((tape,)):  # outer tapes see the node that owns the result, not the nodes inside
        tape.watch([params[i] for i in sources])
        outputs = replay(region, params)
    recorded: SymbolicTensor | None = next(
        (p for p in params if isinstance(p, SymbolicTensor)), None
    )
    effects = frozenset[Node]()
    if recorded is not None:
        effects = frozenset(n for n in recorded.recorder.region.nodes if n.has_effect)
    with taping(()):
        targets = [outputs[i] for i in results]
        given = [exact_gradient(s, y) for s, y in zip(seeds, targets, strict=True)]
        subjects = [params[i] for i in sources]
        found = tape.rows_or_tensors(targets, given, subjects, free=False)
        gradients = found if keep_rows else [None if g is None else dense(g) for g in found]
        exact = [exact_gradient(g, x) for g, x in zip(gradients, subjects, strict=True)]
    return outputs, exact, effects


def exact_gradient(gradient: Gradient | None, x: Any) -> Any:
    """`gradient` in the dims of `x`; zeros for None, IndexedSlices as they are."""
    if gradient is None:
        return zeros_for(x)
    if isinstance(gradient, IndexedSlices):
        return gradient
    spec = gradient_spec(x)
    if isinstance(spec, ListSpec) or gradient.dims == spec.dims:
        return gradient
    return run(RESHAPE, gradient, shape=spec.dims)


def bind_sources(params: Sequence[SymbolicTensor], outer: Sequence[Any]) -> None:
    """Resource parameters know the variable that the outer handles stand for."""
    for param, x in zip(params, outer, strict=True):
        if isinstance(param.spec, ResourceSpec):
            param.source = getattr(x, "source", x)


def dependent(region: Region, sources: set[int]) -> set[int]:
    """Which results depend differentiably on any of the given parameters."""
    active: set[Value] = {region.params[i] for i in sources}
    for node in region.nodes:
        if node.op.gradient is not None and any(v in active for v in node.inputs):
            active.update(v for v in node.outputs if v.spec.dtype.is_differentiable)
    return {i for i, v in enumerate(region.results) if v in active}


def influencing(region: Region, results: set[int]) -> set[int]:
    """Which parameters any of the given results depends on differentiably."""
    wanted: set[Value] = {region.results[i] for i in results}
    for node in reversed(region.nodes):
        if node.op.gradient is not None and any(v in wanted for v in node.outputs):
            wanted.update(v for v in node.inputs if v.spec.dtype.is_differentiable)
    return {i for i, p in enumerate(region.params) if p in wanted}


def trace_in(builder: Any, fn: Callable[..., Any], specs: Sequence[Spec]) -> Any:
    """Trace a region as a child of `builder`, which may be an outer one of the current trace."""
    with recording(builder), taping(()):
        return builder.trace_region(fn, specs)


def captured_outside(builder: Any) -> dict[Value, Any]:
    """The outer tensor behind each parameter of a child builder that captured one."""
    return {
        inner.value: outer
        for outer, inner in builder.captured.values()
        if getattr(outer, "recorder", None) is builder.parent
    }


def copy_into(
    builder: Any,
    joint: Joint,
    nodes: Sequence[Node],
    results: Sequence[Value],
    mapping: dict[Value, Value],
    dims: Mapping[str, Dim] | None = None,
) -> list[SymbolicTensor]:
    """Copy nodes of a joint region to the region of `builder` and return the copied `results`.

    `mapping` says what stands for the parameters and saved values; captured ones are captured
    again where they are read.
    """
    read = {v for n in nodes for v in n.inputs} | set(results)
    for value, outer in joint.captured.items():
        if value in read and value not in mapping:
            mapping[value] = builder.use(outer).value
    copy_nodes(nodes, builder.region, mapping, dims)
    return [builder.tensor_of(mapping[v]) for v in results]


def extend_node(
    builder: Any, node: Node, inputs: Sequence[Any], children: Sequence[Any], extra: Sequence[Spec]
) -> list[SymbolicTensor]:
    """Give a recorded node new inputs and regions, and more outputs of the specs `extra`.

    Tapes that recorded the node learn of the outputs.
    """
    first = builder.tensor_of(node.outputs[0])
    node.inputs = [builder.use(x).value for x in inputs]
    node.regions = [c.region for c in children]
    added = [Value(spec, node, len(node.outputs) + i) for i, spec in enumerate(extra)]
    node.outputs.extend(added)
    tensors = [builder.tensor_of(v) for v in added]
    tapes: Any = context.tapes
    for tape in tapes:
        tape.extend(first, tensors)
    return tensors
