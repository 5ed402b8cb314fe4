"""Fusion: the nodes of a region become units; array nodes that share a loop nest one unit.

Nodes are taken in program order. An array node joins the groups of its producers where it runs
over the same space and no path leaves the joined group and comes back; otherwise it starts a
group. Views are never units: their consumers evaluate them. Cheap values are computed again where
they are needed rather than stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from treadle.core.switches import is_on
from treadle.graph.ir import Node, Region, Value
from treadle.graph.rewrite import mentioned_symbols
from treadle.kernel.ir import Expr, Index, Load, Reduce, Scan, postorder
from treadle.runtime.fusion.expressions import Expressions, Names
from treadle.runtime.fusion.group import Group
from treadle.runtime.fusion.library_nodes import LibraryNodes, TakesEpilogue
from treadle.runtime.fusion.limits import Limits
from treadle.runtime.fusion.recomputation import MAX_MOVED
from treadle.runtime.fusion.siblings import Siblings
from treadle.runtime.fusion.space import Placement, place_in, placement_of
from treadle.runtime.fusion.strided import View
from treadle.runtime.fusion.unit_graph import UnitGraph
from treadle.runtime.fusion.units import Fusion, Unit
from treadle.runtime.roles import Role, is_number, kind_of, through_squeezes

MAX_TRIED = 8  # groups that a node may join alone: each try takes time to compile, on any machine
_TELL_SIZES = (
    Role.CALL, Role.LIST, Role.COND, Role.WHILE, Role.COMPACTION, Role.SLICE, Role.LOOPS, Role.SIZE,
)  # fmt: skip


def fuse(
    region: Region, names: Names, limits: Limits, enabled: bool = True,
    owned: Mapping[Value, Value] | None = None,
    takes_epilogue: TakesEpilogue = lambda node, views, group, stored: False,
    keeps_apart: Callable[[Node], bool] = lambda node: False,
    takes_views: Callable[[Node, Sequence[View]], bool] = lambda node, views: False,
    is_register: Callable[[Value], bool] = is_number,
) -> Fusion:  # fmt: skip
    """Fuse the nodes of a region (inner regions are not entered).

    Args:
        limits: see there.
        enabled: when false every array node is a kernel of its own (for tests and debugging).
        owned: see `find_takeovers`.
        takes_epilogue: see `LibraryNodes`.
        keeps_apart: whether it can do so without the result being in memory as a whole.
        takes_views: whether it reads operands that lie as these views do.
        is_register: whether a value is in a register rather than in memory.
    """
    graph = UnitGraph(region, names, limits, enabled, owned or {}, is_register)
    siblings, library = Siblings(graph), LibraryNodes(graph)
    for node in region.nodes:
        if enabled and graph.roles[node] is Role.ARRAY:
            _place(node, graph, siblings)
        else:
            graph.alone(node)
    if enabled:
        if is_on("strided"):
            library.find_views(takes_views)
        if is_on("epilogues"):
            library.attach_epilogues(takes_epilogue, keeps_apart)
        if is_on("siblings"):
            siblings.share_reads()
    return _Needs(graph, library.views).fusion()


# -- forming groups --------------------------------------------------------------------------------


def _place(node: Node, graph: UnitGraph, siblings: Siblings) -> None:
    """Let an array node join its producers' groups or start one."""
    if not any(_joins(node, units, graph) for units in _candidates(node, graph)):
        graph.alone(node)
    if kind_of(node) == "reduce" and is_on("siblings"):
        siblings.join(graph.unit_of[node])
    siblings.note_reads(node)


def _candidates(node: Node, graph: UnitGraph) -> Iterator[list[Unit]]:
    """Sets of groups to try: all producers' groups together, then each alone."""
    found: dict[Unit, None] = {}
    for value in node.inputs:
        producer = through_squeezes(value).node
        unit = graph.unit_of.get(producer) if producer is not None else None
        if unit is not None and unit.group is not None:
            found.setdefault(unit)
    units = sorted(found, key=lambda u: -u.position)
    if kind_of(node) in ("gather", "draw"):
        return
    if len(units) > 1:
        yield units
    for unit in units[:MAX_TRIED]:
        yield [unit]


def _joins(node: Node, units: list[Unit], graph: UnitGraph) -> bool:
    """Whether a node joins the groups of units, which become one unit then."""
    placement = _placement(node, units)
    return placement is not None and graph.merge(units, {node: placement})


def _placement(node: Node, units: Sequence[Unit]) -> Placement | None:
    """Where the node runs in the groups' common space."""
    spaces = {u.group.space for u in units if u.group is not None}
    if len(spaces) != 1:
        return None
    (space,) = spaces
    if kind_of(node) == "reduce":
        own = placement_of(node)
        return own if own.space == space else None
    return place_in(space, node)


# -- values that are needed ------------------------------------------------------------------------


class _Needs:
    """Finds the units that results and effects need, and the values that these load and store."""

    def __init__(self, graph: UnitGraph, views: dict[Node, tuple[View, ...]]) -> None:
        self.graph, self.region = graph, graph.region
        self.result = Fusion(graph.region, takeovers=graph.takeovers, views=views)
        self.result.is_register = graph.is_register

    def fusion(self) -> Fusion:
        """Keep the nodes that results and effects need, consumers first."""
        fusion = self.result
        needed: set[Value] = {*self.graph.results, *self._tellers()}
        for unit in self.graph.consumers_first():
            if not _is_live(unit, needed):
                continue
            if unit.role is Role.SCALAR and not self._scalar(unit):
                self._materialise(unit)
            if unit.role is Role.VIEW:
                self._materialise(unit)
            if unit.group is not None:
                stores = [v for n in unit.group.nodes for v in n.outputs if v in needed]
                loads = _loaded(unit.group, stores)
                fusion.stores[unit] = stores
                if unit.role is Role.LIBRARY:
                    made = unit.nodes[0].outputs[0]
                    others = [v for v in loads if v is not made]
                    loads = list(dict.fromkeys((*fusion.operands(unit.nodes[0]), *others)))
            elif unit.role is Role.SCALAR:
                found = [fusion.scalars[v][1].values() for v in unit.nodes[0].outputs]
                loads = list(dict.fromkeys(v for values in found for v in values))
            else:
                loads = list(dict.fromkeys(fusion.operands(unit.nodes[0])))
            fusion.loads[unit] = loads
            needed.update(loads)
            fusion.units.append(unit)
        fusion.units.reverse()
        fusion.needed = needed
        return fusion

    def _scalar(self, unit: Unit) -> bool:
        """Build the expressions of rank-0 outputs, single elements of arrays included; False
        where that needs a kernel."""
        for value in unit.nodes[0].outputs:
            build = Expressions(self._within(value), lambda _: (), self.graph.names)
            expr = build.element(value, ())
            order = postorder([expr])
            if (
                expr.axes
                or len(order) > MAX_MOVED
                or any(
                    isinstance(e, Reduce | Scan) or (isinstance(e, Load) and e.valid is not None)
                    for e in order
                )
            ):
                return False
            used = {e.buffer for e in order if isinstance(e, Load)}
            self.result.scalars[value] = expr, {b: v for b, v in build.buffers.items() if b in used}
        return True

    def _within(self, own: Value) -> Callable[[Value, tuple[Index, ...]], bool]:
        """A test for values that rank-0 code computes without memory: the value, and views."""
        return lambda value, _: value is own or self.graph.is_view(value)

    def _tellers(self) -> Iterator[Value]:
        """Results of calls that first tell a size which some node mentions, in its attributes or
        in the shapes of its operands: needed even where nothing reads their elements."""
        known = {s for p in self.region.params for s in p.spec.symbols()}
        mentioned = {s for n in self.region.walk() for s in mentioned_symbols(n)} - known
        for node in self.region.nodes if mentioned else ():
            for value in node.outputs:
                new = value.spec.symbols() - known
                if new & mentioned and self.graph.roles.get(node) in _TELL_SIZES:
                    yield value
                known |= new

    def _materialise(self, unit: Unit) -> None:
        """A view whose elements something needs in memory becomes a kernel."""
        unit.group = self.graph.own_group(unit.nodes[0])
        unit.role = Role.ARRAY


def _is_live(unit: Unit, needed: set[Value]) -> bool:
    return any(node.has_effect or any(v in needed for v in node.outputs) for node in unit.nodes)


def _loaded(group: Group, stores: Sequence[Value]) -> list[Value]:
    """The values that the stored expressions load."""
    roots: list[Expr] = [group.values[v] for v in stores]
    found: dict[Value, None] = {}
    for expr in postorder(roots):
        if isinstance(expr, Load):
            found.setdefault(group.build.buffers[expr.buffer])
    return list(found)


__all__ = ["Fusion", "Unit", "fuse"]
