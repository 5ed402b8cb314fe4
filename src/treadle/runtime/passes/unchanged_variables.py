"""Loop variables that no iteration changes are read where they come from.

    %1, %2 = while(%i, %x) ... body(%j, %y) { ...; return %k, %y }     uses of %2 read %x

The loop's output would be a second name of the memory of %x, which the schedule does not look for
when it decides what may be overwritten.
"""

from __future__ import annotations

from treadle.graph.ir import Graph, Node, Region, Value
from treadle.ops.control.control_flow import WHILE
from treadle.runtime.schedule.facts import Facts


def read_unchanged(graph: Graph, facts: Facts) -> bool:
    """Replace the outputs of loops that hand an operand on, also in inner regions."""
    return _read_unchanged(graph)


def _read_unchanged(region: Region) -> bool:
    replaced: dict[Value, Value] = {}
    changed = False
    for node in region.nodes:
        changed |= any(v in replaced for v in node.inputs)
        node.inputs = [replaced.get(v, v) for v in node.inputs]
        for inner in node.regions:
            changed |= _read_unchanged(inner)
        if node.op is WHILE:
            replaced |= _handed_on(node)
    changed |= any(v in replaced for v in region.results)
    region.results = [replaced.get(v, v) for v in region.results]
    return changed


def _handed_on(loop: Node) -> dict[Value, Value]:
    body = loop.regions[1]
    return {
        out: start
        for out, start, param, result in zip(
            loop.outputs, loop.inputs, body.params, body.results, strict=False
        )
        if result is param and out.spec is start.spec
    }
