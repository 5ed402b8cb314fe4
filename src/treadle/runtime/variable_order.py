"""Which nodes read and write which variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.core.spec import ResourceSpec
from treadle.graph.ir import Node, Value
from treadle.ops.state import ASSIGN, READ


def handles_touched(node: Node) -> Iterator[tuple[Value, bool]]:
    """(handle, written) for every variable that a node uses, seen from its own region."""
    if node.op is READ:
        yield node.inputs[0], False
    elif node.op is ASSIGN:
        yield node.inputs[0], True
    elif any(isinstance(value.spec, ResourceSpec) for value in node.inputs):
        written = set(node.inputs) if node.op.effect == "write" else _written(node)
        for value in node.inputs:
            if isinstance(value.spec, ResourceSpec):
                yield value, value in written


def _written(node: Node) -> set[Value]:
    """The operands of a node with regions that are variables which the regions assign."""
    found: set[Value] = set()
    for region in node.regions:
        inside = {h for n in region.nodes for h, w in handles_touched(n) if w}
        pairs = zip(region.params, node.region_inputs, strict=False)
        found.update(v for p, v in pairs if p in inside)
    return found


def earlier_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For the nodes of a region that use variables, the earlier ones that must run before them:
    those that no other of them waits for already."""
    found: dict[Node, list[Node]] = {}
    wrote: dict[Value, Node] = {}
    read: dict[Value, list[Node]] = {}  # since it was written
    barrier: list[Node] = []  # the last callback
    for node in nodes:
        if node.runs_user_code:
            found[node] = [*barrier, *wrote.values(), *(n for some in read.values() for n in some)]
            wrote, read, barrier = {}, {}, [node]
            continue
        for handle, written in handles_touched(node):
            last = [wrote[handle]] if handle in wrote else barrier
            earlier = found.setdefault(node, [])
            if written:
                earlier += read.pop(handle, []) or last
                wrote[handle] = node
            else:
                earlier += last
                read.setdefault(handle, []).append(node)
        # A node that has a variable twice does not wait for itself.
        if node in found:
            found[node] = [n for n in dict.fromkeys(found[node]) if n is not node]
    return found
