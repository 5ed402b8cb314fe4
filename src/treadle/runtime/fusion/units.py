"""The result of fusion for a region: units of nodes, and the values that they load and store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from treadle.core.records import record
from treadle.graph.ir import Node, Region, Value
from treadle.kernel.ir import Buffer, Expr
from treadle.runtime.fusion.group import Group
from treadle.runtime.fusion.strided import View
from treadle.runtime.fusion.takeovers import Takeovers
from treadle.runtime.roles import Role, is_number


@record(eq=False)
class Unit:
    """Nodes that are scheduled as one: a group of array nodes, or a single other node.

    A library node may have a group as its epilogue; it is the first of the nodes then.
    """

    role: Role
    nodes: list[Node]
    group: Group | None = None
    position: int = 0  # of the last node, in program order


@record
class Fusion:
    """The result for one region.

    Attributes:
        units: in program order of their last nodes; only those that are needed.
        stores: for every array unit the values that it writes to memory.
        loads: for every unit the values that it reads from memory or registers.
        scalars: the expression of every rank-0 value, and the values behind its buffers.
        needed: the values that something outside their unit reads, and the results.
        views: for library nodes that read other arrays than their operands, views of these.
        takeovers: which values may take over the memory of an operand.
        is_register: whether a value is in a register rather than in memory.
    """

    region: Region
    units: list[Unit] = field(default_factory=list)
    stores: dict[Unit, list[Value]] = field(default_factory=dict)
    loads: dict[Unit, list[Value]] = field(default_factory=dict)
    scalars: dict[Value, tuple[Expr, dict[Buffer, Value]]] = field(default_factory=dict)
    needed: set[Value] = field(default_factory=set)
    takeovers: Takeovers = field(default_factory=Takeovers)
    views: dict[Node, tuple[View, ...]] = field(default_factory=dict)
    is_register: Callable[[Value], bool] = is_number

    def computed(self, unit: Unit) -> list[Node]:
        """The nodes of a unit, and those that it computes again rather than loading."""
        loaded = set(self.loads[unit])
        seen: dict[Node, None] = {}
        stack = list(unit.nodes)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen[node] = None
                inlined = (v.node for v in node.inputs if v not in loaded)
                stack += [n for n in inlined if n is not None]
        return list(seen)

    def operands(self, node: Node) -> list[Value]:
        """The arrays that the routine for a library node reads."""
        views = self.views.get(node)
        return node.inputs if views is None else [v.base for v in views]
