"""Units that read the same arrays: one loop gives the results of both."""

from __future__ import annotations

from collections import deque

from treadle.graph.ir import Node, Value
from treadle.runtime.fusion.group import shares_reads, shares_work
from treadle.runtime.fusion.unit_graph import UnitGraph
from treadle.runtime.fusion.units import Unit
from treadle.runtime.roles import Role

MAX_SIBLINGS = 4  # readers of a value to compare with a further one: they take time to compile


class Siblings:
    """Merges units that do not need each other.

    Attributes:
        readers: the last array nodes that read a value.
    """

    def __init__(self, graph: UnitGraph) -> None:
        self.graph = graph
        self.readers: dict[Value, deque[Node]] = {}

    def note_reads(self, node: Node) -> None:
        for value in node.inputs:
            self.readers.setdefault(value, deque(maxlen=MAX_SIBLINGS)).append(node)

    def join(self, unit: Unit) -> None:
        """Merge a unit with one that computes the same: one loop gives the results of both."""
        assert unit.group is not None
        for other in self._readers_of_the_same(unit):
            shares = other.group is not None and shares_work(unit.group, other.group)
            if shares and self.graph.merge([other, unit], {}):
                return

    def share_reads(self) -> None:
        """Merge units that read the same large array: one pass over it gives the results of both.
        It comes last: before, every group could join the groups of its operands."""
        readers: dict[Value, deque[Node]] = {}
        for node in self.graph.region.nodes:
            unit = self.graph.unit_of[node]
            if unit.role is not Role.ARRAY or unit.group is None or node is not unit.nodes[-1]:
                continue
            read = [v for v in unit.group.build.buffers.values() if v.spec.rank]
            others = dict.fromkeys(self.graph.unit_of[n] for v in read for n in readers.get(v, ()))
            for other in sorted(others, key=lambda u: -u.position):
                shares = other.group is not None and shares_reads(unit.group, other.group)
                if shares and self.graph.merge([other, unit], {}):
                    break
            for value in read:
                readers.setdefault(value, deque(maxlen=MAX_SIBLINGS)).append(node)

    def _readers_of_the_same(self, unit: Unit) -> list[Unit]:
        """Other units that read an array which the unit reads, the latest first."""
        found: dict[Unit, None] = {}
        for value in dict.fromkeys(v for n in unit.nodes for v in n.inputs if v.spec.rank):
            for reader in self.readers.get(value, ()):
                if self.graph.unit_of[reader] is not unit:
                    found.setdefault(self.graph.unit_of[reader])
        return sorted(found, key=lambda u: -u.position)
