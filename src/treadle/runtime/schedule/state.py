"""Which nodes read and write which variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.core.spec import ResourceSpec
from treadle.graph.ir import Node, Region, Value

# Callbacks into the user's Python, which may read and assign any variable.
_QUIET = frozenset({"print", "assert", "check"})


def touches_everything(node: Node) -> bool:
    """Whether the node runs user code that may use any variable."""
    if node.op.effect == "io" and node.op.name not in _QUIET:
        return True
    return any(touches_everything(n) for r in node.regions for n in r.nodes)


def handles_touched(node: Node) -> Iterator[tuple[Value, bool]]:
    """(handle, written) for every variable that a node uses, seen from its own region."""
    if node.op.name == "read_variable":
        yield node.inputs[0], False
    elif node.op.name == "assign_variable":
        yield node.inputs[0], True
    elif node.regions:
        for position, value in enumerate(node.inputs):
            if isinstance(value.spec, ResourceSpec):
                yield value, any(_writes(r, position, node) for r in node.regions)


def _writes(region: Region, position: int, node: Node) -> bool:
    """Whether a region assigns the variable that is the node's input number `position`."""
    param = region.params[position - (1 if node.op.name == "cond" else 0)]
    return any(w for n in region.nodes for h, w in handles_touched(n) if h is param)


def earlier_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For the nodes of a region that use variables, the earlier ones that must run before them."""
    found: dict[Node, list[Node]] = {}
    used: dict[Value, list[tuple[Node, bool]]] = {}
    callbacks: list[Node] = []
    for node in nodes:
        if touches_everything(node):
            found[node] = [n for uses in used.values() for n, _ in uses] + callbacks
            callbacks.append(node)
            continue
        for handle, written in handles_touched(node):
            uses = used.setdefault(handle, [])
            earlier = [n for n, wrote in uses if wrote or written]
            found.setdefault(node, list(callbacks)).extend(earlier)
            uses.append((node, written))
    return found
