"""Variable forwarding: a read gives the value that was last assigned or read.

assign_variable(%v, %1)
%2 = read_variable(%v)      ->  uses of %2 read %1
assign_variable(%v, %3)     the first assignment goes, if nothing in between may see it
"""

from __future__ import annotations

from treadle.core.spec import ResourceSpec
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.state import ASSIGN, READ


def forward_variables(graph: Graph) -> bool:
    """Replace reads whose value is known and drop assignments that are overwritten unseen."""
    return _Forwarder(graph).run()


class _State:
    """The values of variables that are known at one point of a region."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}  # handle -> its current value
        self.unseen: dict[Value, Node] = {}  # handle -> an assignment nothing has seen yet


class _Forwarder(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.states: list[_State] = []
        self.overwritten: set[Node] = set()

    def enter(self, region: Region) -> None:
        self.states.append(_State())

    def leave(self, region: Region) -> None:
        self.states.pop()
        lost = [n for n in region.nodes if n in self.overwritten]
        if lost:
            region.nodes = [n for n in region.nodes if n not in self.overwritten]
            self.changed = True

    def visit(self, node: Node) -> Replacement:
        state = self.states[-1]
        if node.op is READ:
            return self.read(node, state)
        if node.op is ASSIGN:
            self.assign(node, state)
        elif node.runs_user_code:
            state.values.clear()
            state.unseen.clear()
        else:
            if may_stop(node):
                state.unseen.clear()  # values that were assigned before a failure stay assigned
            self.touch(node, state)
        return None

    def read(self, node: Node, state: _State) -> Replacement:
        handle = node.inputs[0]
        known = state.values.get(handle)
        if known is not None and known.spec is node.outputs[0].spec:
            return [known]
        state.values[handle] = node.outputs[0]
        state.unseen.pop(handle, None)
        return None

    def assign(self, node: Node, state: _State) -> None:
        handle, value = node.inputs
        if state.values.get(handle) is value:
            self.erase()
            return
        before = state.unseen.get(handle)
        if before is not None:
            self.overwritten.add(before)
        state.values[handle] = value
        state.unseen[handle] = node

    def touch(self, node: Node, state: _State) -> None:
        """A node that gets handles: it may read those variables, and write some."""
        for handle in (v for v in node.inputs if isinstance(v.spec, ResourceSpec)):
            state.unseen.pop(handle, None)
            if writes(node, handle):
                state.values.pop(handle, None)


def may_stop(node: Node) -> bool:
    """True for assertions, and for nodes that contain some."""
    return "asserts" in node.op.tags or any(
        may_stop(inner) for region in node.regions for inner in region.nodes
    )


def writes(node: Node, handle: Value) -> bool:
    """Whether the node may assign the variable behind one of its inputs."""
    if not node.regions:
        return node.op.effect is not None and node.op.effect != "read" and handle in node.inputs
    if node.runs_user_code:
        return True
    positions = [i for i, v in enumerate(node.region_inputs) if v is handle]
    return any(
        writes(inner, region.params[position])
        for region in node.regions
        for position in positions
        for inner in region.nodes
    )
