"""Loop variables that no iteration changes are read where they come from.

    %1, %2 = while(%i, %x) ... body(%j, %y) { ...; return %k, %y }     uses of %2 read %x

The loop's output would be a second name of the memory of %x, which the schedule does not look for
when it decides what may be overwritten.
"""

from __future__ import annotations

from treadle.graph.ir import Node, Region, Value


def read_unchanged(region: Region) -> None:
    """Replace the outputs of loops that hand an operand on, also in inner regions."""
    replaced: dict[Value, Value] = {}
    for node in region.nodes:
        node.inputs = [replaced.get(v, v) for v in node.inputs]
        for inner in node.regions:
            read_unchanged(inner)
        if node.op.name == "while":
            replaced |= _handed_on(node)
    region.results = [replaced.get(v, v) for v in region.results]


def _handed_on(loop: Node) -> dict[Value, Value]:
    body = loop.regions[1]
    return {
        out: start
        for out, start, param, result in zip(
            loop.outputs, loop.inputs, body.params, body.results, strict=False
        )
        if result is param and out.spec is start.spec
    }
