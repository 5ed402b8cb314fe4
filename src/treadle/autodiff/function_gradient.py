"""The gradient of a whole traced function: a forward graph that also gives what the backward graph
reads, and the backward graph.

Effects happen in the forward graph only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.autodiff.joint import copy_into, dependent, influencing, trace_gradient
from treadle.autodiff.partition import Joint, Partition, is_cheap, partition
from treadle.autodiff.saved_lists import restored, stored, stored_specs
from treadle.autodiff.values import Gradient
from treadle.core.context import recording, taping
from treadle.core.records import record
from treadle.core.spec import ResourceSpec
from treadle.core.tensor import Tensor
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Graph, Value
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.state import Variable


@record(frozen=True)
class ForwardBackward:
    """A function split for differentiation.

    Attributes:
        forward: takes the function's parameters (then its own captures); gives the function's
            results and then the saved values.
        backward: takes the forward parameters numbered by `kept`, the saved values, a gradient
            for each result in `targets` (then its own captures); gives a gradient for each
            parameter in `sources`: a tensor, or the rows and the positions of IndexedSlices.
        results: how many results the function itself has.
        kept, targets, sources: see above; numbers in increasing order.
        of_rows: the sources whose gradients are IndexedSlices.
    """

    forward: Graph
    backward: Graph
    results: int
    kept: tuple[int, ...]
    targets: tuple[int, ...]
    sources: tuple[int, ...]
    of_rows: frozenset[int]


def build_gradient(graph: Graph, needs: Sequence[bool]) -> ForwardBackward | None:
    """Split `graph` into a forward and a backward graph.

    Args:
        needs: for each parameter whether its gradient is wanted. Variables' handles count as
            parameters with the gradient of the variable's value.

    Returns:
        None where no result depends differentiably on a wanted parameter.
    """
    results = {i for i, v in enumerate(graph.results) if v.spec.dtype.is_differentiable}
    wanted = {i for i, n in enumerate(needs) if n and graph.params[i].spec.dtype.is_differentiable}
    sources = tuple(sorted(wanted & influencing(graph, results)))
    targets = tuple(sorted(results & dependent(graph, set(sources))))
    if not sources or not targets:
        return None
    joint, of_rows = _trace_joint(graph, targets, sources)
    parts = partition(joint, is_cheap)
    params = joint.region.params[: len(graph.params)]
    kept = [v for v in params if v in set(parts.saved) | set(parts.free)]
    saved = [v for v in parts.saved if v not in set(kept)]
    return ForwardBackward(
        _forward_graph(graph, joint, parts, params, saved),
        _backward_graph(graph, joint, parts, kept, saved),
        len(graph.results),
        tuple(v.index for v in kept),
        targets,
        sources,
        of_rows,
    )


def _trace_joint(
    graph: Graph, targets: Sequence[int], sources: Sequence[int]
) -> tuple[Joint, frozenset[int]]:
    """The function and its gradient in one graph, whose parameters are the function's and a
    gradient for each target; and the sources whose gradients are IndexedSlices there."""
    builder = GraphBuilder(graph.name, device=graph.device)
    builder.graph.devices = graph.devices
    params = [builder.parameter(p.spec, p.name) for p in graph.params]
    for param, capture in zip(params[len(graph.arguments) :], graph.captures, strict=True):
        if isinstance(capture, Variable):
            param.source = capture
    seeds = [builder.parameter(graph.results[i].spec) for i in targets]
    with recording(builder), taping(()):
        outputs, gradients, effects = trace_gradient(
            graph, params, targets, seeds, sources, keep_rows=True
        )
        pairs = zip(sources, gradients, strict=True)
        of_rows = frozenset(i for i, g in pairs if isinstance(g, IndexedSlices))
        region = builder.finish([*outputs, *(part for g in gradients for part in _parts(g))])
    handles = [p.value for p in params if isinstance(p.spec, ResourceSpec)]
    captured = {inner.value: outer for outer, inner in builder.captured.values()}
    joint = Joint(
        region,
        len(graph.results),
        [s.value for s in seeds],
        [*handles, *captured],
        captured,
        effects,
    )
    return joint, of_rows


def _parts(gradient: Gradient) -> list[Tensor]:
    """The tensors of a gradient: of IndexedSlices the rows and their positions."""
    if isinstance(gradient, IndexedSlices):
        return [gradient.values, gradient.indices]
    return [gradient]


def _forward_graph(
    graph: Graph, joint: Joint, parts: Partition, params: Sequence[Value], saved: Sequence[Value]
) -> Graph:
    builder = GraphBuilder(f"{graph.name}_forward", device=graph.device)
    builder.graph.devices = graph.devices
    mapping = {p: builder.parameter(p.spec, p.name).value for p in params}
    with recording(builder), taping(()):
        wanted = [*joint.region.results[: joint.forward_results], *saved]
        results: list[Any] = list(copy_into(builder, joint, parts.forward, wanted, mapping))
        passed = results[: joint.forward_results]
        for value, result in zip(saved, results[joint.forward_results :], strict=True):
            passed += stored(joint, value, result)
        return builder.finish(passed)


def _backward_graph(
    graph: Graph, joint: Joint, parts: Partition, kept: Sequence[Value], saved: Sequence[Value]
) -> Graph:
    builder = GraphBuilder(f"{graph.name}_backward", device=graph.device)
    builder.graph.devices = graph.devices
    mapping = {v: builder.parameter(v.spec, v.name).value for v in kept}
    received = {v: [builder.parameter(s, v.name) for s in stored_specs(joint, v)] for v in saved}
    mapping |= {v: builder.parameter(v.spec).value for v in joint.unknown}
    with recording(builder), taping(()):
        for value, tensors in received.items():
            mapping[value] = restored(joint, value, tensors)
            mapping[value].spec = value.spec
        gradients = joint.region.results[joint.forward_results :]
        return builder.finish(copy_into(builder, joint, parts.backward, gradients, mapping))
