"""Library nodes in fusion: the views that they read, and the groups that become their epilogues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from treadle.core.shapes import product
from treadle.graph.ir import Graph, Node, Value
from treadle.ops.state import ASSIGN, READ
from treadle.runtime.fusion.epilogues import is_epilogue
from treadle.runtime.fusion.group import Group
from treadle.runtime.fusion.strided import View, view_of
from treadle.runtime.fusion.takeovers import storage
from treadle.runtime.fusion.unit_graph import UnitGraph
from treadle.runtime.fusion.units import Unit
from treadle.runtime.roles import Role, squeezed

# Whether the routine for a library node, which reads its operands as such views (none: as they
# are), runs a group on its result that stores these values: of the group, and maybe the result.
TakesEpilogue: TypeAlias = Callable[[Node, Sequence[View], Group, Sequence[Value]], bool]


class LibraryNodes:
    """Gives library nodes views and epilogues, when the groups have been formed.

    Attributes:
        views: for library nodes that read other arrays than their operands how these lie there.
    """

    def __init__(self, graph: UnitGraph) -> None:
        self.graph = graph
        self.views: dict[Node, tuple[View, ...]] = {}

    def find_views(self, takes_views: Callable[[Node, Sequence[View]], bool]) -> None:
        """Let library nodes read views, as transposes and slices, where their elements are."""
        for node in self.graph.region.nodes:
            if self.graph.roles[node] is Role.LIBRARY:
                taken = (views for views in self._views_of(node) if takes_views(node, views))
                views = next(taken, None)
                if views is not None:
                    self.views[node] = views

    def _views_of(self, node: Node) -> Iterator[tuple[View, ...]]:
        """How operands may be read: all as views, or one of them."""
        views = [view_of(v, self._may_read_through) for v in node.inputs]
        moved = [i for i, v in enumerate(node.inputs) if not views[i].is_plain(v)]
        whole = [view_of(v, lambda _: False) for v in node.inputs]
        if moved:
            yield tuple(views)
        for i in moved if len(moved) > 1 else ():
            yield (*whole[:i], views[i], *whole[i + 1 :])

    def _may_read_through(self, value: Value) -> bool:
        """Whether a value is a view of an array that nothing overwrites before the view is read."""
        return self.graph.is_view(value) and value.node not in self.graph.takeovers.stored

    def attach_epilogues(
        self, takes_epilogue: TakesEpilogue, keeps_apart: Callable[[Node], bool]
    ) -> None:
        """Give library nodes the groups that follow them, the last nodes first: of several
        products that a group adds up it belongs to the one that it needs to wait for."""
        for node in reversed(self.graph.region.nodes):
            if self.graph.roles[node] is not Role.LIBRARY or len(node.outputs) != 1:
                continue
            if self._is_small_step(node.outputs[0]):
                continue
            for unit in self._readers(node.outputs[0]):
                if self._attach(node, unit, takes_epilogue, keeps_apart):
                    break

    def _is_small_step(self, result: Value) -> bool:
        """Whether a result inside a loop or branch stays in the first cache anyway. A loop whose
        threads have rows of their own meets nobody between kernels, which are faster apart."""
        size = product(result.spec.dims)
        inner = not isinstance(self.graph.region, Graph)
        if not inner or not isinstance(size, int):
            return False
        return bool(size * result.spec.dtype.size <= self.graph.limits.small_step)

    def _readers(self, value: Value) -> list[Unit]:
        """The groups that load a value, in program order."""
        found: dict[Unit, None] = {}
        for node in self.graph.consumers.get(value, ()):
            unit = self.graph.unit_of[node]
            if squeezed(node) is not None:
                found.update(dict.fromkeys(self._readers(node.outputs[0])))
            elif unit.role is Role.ARRAY:
                found.setdefault(unit)
        return sorted(found, key=lambda u: u.position)

    def _attach(
        self, node: Node, unit: Unit, takes_epilogue: TakesEpilogue,
        keeps_apart: Callable[[Node], bool],
    ) -> bool:  # fmt: skip
        """Make a group the epilogue of a library node where that is possible."""
        group = unit.group
        assert group is not None
        if not is_epilogue(group, node.outputs[0]):
            return False
        inside = set(unit.nodes)
        stored = [v for v in (*node.outputs, *group.values) if self.graph.escapes(v, inside)]
        if not takes_epilogue(node, self.views.get(node, ()), group, stored):
            return False
        if self._only_replaces(unit, node) and not keeps_apart(node):
            return False
        if not self.graph.is_acyclic(node, [self.graph.unit_of[node], unit]):
            return False
        self.graph.join(Unit(Role.LIBRARY, [node, *unit.nodes], group, unit.position))
        return True

    def _only_replaces(self, unit: Unit, routine: Node) -> bool:
        """Whether each store of a group overwrites an array that the group reads (an optimizer's
        step, a sum that a loop carries). As an epilogue it would save nothing: the product is still
        written to memory of its own, and the arrays are read in shorter runs than by a kernel that
        walks through them."""
        group, inside = unit.group, set(unit.nodes)
        assert group is not None
        stored = [v for v in group.values if self.graph.escapes(v, inside)]
        read = {storage(v) for v in group.build.buffers.values()}
        bases = [v.base for v in self.views.get(routine, ())] or routine.inputs
        read -= {storage(v) for v in bases}  # the routine's operands must stay while it runs
        needed = self.graph.escapes(routine.outputs[0], inside)
        return not needed and all(self._replaces(v, read) for v in stored)

    def _replaces(self, value: Value, read: set[Value]) -> bool:
        """Whether a value takes the place of a variable or loop variable that was read."""
        handles = {
            node.inputs[0] for node in self.graph.consumers.get(value, ()) if node.op is ASSIGN
        }
        olds = [v.node for v in read if v.node is not None and v.node.op is READ]
        return any(node.inputs[0] in handles for node in olds) or any(
            new is value and old in read for old, new in self.graph.owned.items()
        )
