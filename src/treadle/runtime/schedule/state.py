"""Reads and writes of variables within a region: forwarding, and what touches which handle."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.spec import ResourceSpec
from treadle.graph.ir import Node, Region, Value

# Callbacks into the user's Python, which may read and assign any variable.
_QUIET = frozenset({"print", "assert"})


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


def forward_reads(region: Region) -> None:
    """Make reads use the value last read or assigned, and drop assignments that no one sees.

    Works on this region and those inside it.
    """
    current: dict[Value, Value] = {}
    pending: dict[Value, Node] = {}  # the last assignment, not yet seen by anyone
    replaced: dict[Value, Value] = {}
    dead: set[Node] = set()
    for node in region.nodes:
        node.inputs = [replaced.get(v, v) for v in node.inputs]
        for inner in node.regions:
            forward_reads(inner)
        _step(node, current, pending, replaced, dead)
    region.nodes = [n for n in region.nodes if n not in dead]
    region.results = [replaced.get(v, v) for v in region.results]


def _step(
    node: Node,
    current: dict[Value, Value],
    pending: dict[Value, Node],
    replaced: dict[Value, Value],
    dead: set[Node],
) -> None:
    if node.op.name == "read_variable":
        handle, out = node.inputs[0], node.outputs[0]
        known = current.get(handle)
        if known is not None and known.spec.dims == out.spec.dims:
            replaced[out] = known
            dead.add(node)
        else:
            current[handle] = out
            pending.pop(handle, None)
    elif node.op.name == "assign_variable":
        handle, value = node.inputs
        before = pending.get(handle)
        if before is not None:
            dead.add(before)
        current[handle], pending[handle] = value, node
    elif touches_everything(node) or node.op.name == "assert":
        pending.clear()  # an assertion that fails leaves the state as the program order says
        if node.op.name != "assert":
            current.clear()
    else:
        for handle, written in handles_touched(node):
            pending.pop(handle, None)
            if written:
                current.pop(handle, None)
