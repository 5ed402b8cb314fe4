"""Fusion: the nodes of a region become units; array nodes that share a loop nest one unit.

Nodes are taken in program order. An array node joins the groups of its producers where it runs
over the same space and no path leaves the joined group and comes back; otherwise it starts a
group. Views are never units: their consumers evaluate them. Cheap values are computed again where
they are needed rather than stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from treadle.core.switches import is_on
from treadle.graph.ir import Node, Region, Value
from treadle.graph.rewrite import mentioned_symbols
from treadle.kernel.ir import Expr, Index, Load, Reduce, Scan, postorder
from treadle.runtime.fusion.expressions import Expressions, Names
from treadle.runtime.fusion.group import Group, NotFusable
from treadle.runtime.fusion.library_nodes import LibraryNodes
from treadle.runtime.fusion.limits import Limits
from treadle.runtime.fusion.recomputation import MAX_MOVED, Recomputation
from treadle.runtime.fusion.siblings import Siblings
from treadle.runtime.fusion.space import Placement, place_in, placement_of
from treadle.runtime.fusion.strided import View
from treadle.runtime.fusion.takeovers import find_takeovers
from treadle.runtime.fusion.units import Fusion, Unit
from treadle.runtime.roles import Role, kind_of, role_of, squeezed, through_squeezes
from treadle.runtime.variable_order import earlier_uses

MAX_TRIED = 8  # groups that a node may join alone: each try takes time to compile, on any machine
_TELL_SIZES = (Role.CALL, Role.LIST, Role.COND, Role.WHILE, Role.LOOPS, Role.SIZE)


def fuse(
    region: Region, names: Names, limits: Limits, enabled: bool = True,
    owned: Mapping[Value, Value] | None = None,
    takes_epilogue: Callable[[Node], bool] = lambda node: False,
    keeps_apart: Callable[[Node], bool] = lambda node: False,
    takes_views: Callable[[Node, Sequence[View]], bool] = lambda node, views: False,
) -> Fusion:  # fmt: skip
    """Fuse the nodes of a region (inner regions are not entered).

    Args:
        limits: see there.
        enabled: when false every array node is a kernel of its own (for tests and debugging).
        owned: see `find_takeovers`.
        takes_epilogue: whether the routine for a library node runs a group on its result.
        keeps_apart: whether it can do so without the result being in memory as a whole.
        takes_views: whether it reads operands that lie as these views do.
    """
    fuser = _Fuser(region, names, limits, enabled, owned or {})
    fuser.form_groups()
    if enabled:
        if is_on("strided"):
            fuser.find_views(takes_views)
        if is_on("epilogues"):
            fuser.attach_epilogues(takes_epilogue, keeps_apart)
        if is_on("siblings"):
            fuser.share_reads()
    return fuser.finish()


class _Fuser(LibraryNodes, Siblings):
    def __init__(
        self, region: Region, names: Names, limits: Limits, enabled: bool,
        owned: Mapping[Value, Value],
    ) -> None:  # fmt: skip
        self.region, self.names, self.enabled, self.owned = region, names, enabled, owned
        self.limits = limits
        self.roles = {node: role_of(node) for node in region.nodes}
        self.takeovers = find_takeovers(region, self.roles, owned)
        self.roles |= self.takeovers.roles
        self.position = {node: i for i, node in enumerate(region.nodes)}
        self.rank = self.takeovers.rank or self.position
        self.earlier_uses = earlier_uses(region.nodes)
        self.consumers: dict[Value, list[Node]] = {}
        for node in region.nodes:
            for value in node.inputs:
                self.consumers.setdefault(value, []).append(node)
        self.results = set(region.results)
        self.recomputation = Recomputation(
            self.roles, self.consumers, self.results, self.takeovers, names, enabled
        )
        self.unit_of: dict[Node, Unit] = {}
        # For each rank the lowest of all units that have nodes before and after it.
        self.lowest = np.arange(len(region.nodes))
        self.views: dict[Node, tuple[View, ...]] = {}
        self.readers: dict[Value, deque[Node]] = {}

    def form_groups(self) -> None:
        for node in self.region.nodes:
            if self.roles[node] is Role.ARRAY:
                self._place(node)
            else:
                self.unit_of[node] = Unit(self.roles[node], [node], None, self.position[node])

    # -- forming groups ----------------------------------------------------------------------

    def _place(self, node: Node) -> None:
        """Let an array node join its producers' groups or start one."""
        if not self.enabled:
            self._start(node)
            return
        if not any(self._try_join(node, units) for units in self._candidates(node)):
            self._start(node)
        if kind_of(node) == "reduce" and is_on("siblings"):
            self.join_siblings(self.unit_of[node])
        self.note_reads(node)

    def _start(self, node: Node) -> Unit:
        placement = placement_of(node)
        group = self._new_group(placement, [node], {node: placement})
        assert group is not None
        unit = Unit(Role.ARRAY, [node], group, self.position[node])
        self.unit_of[node] = unit
        return unit

    def _new_group(
        self, placement: Placement, nodes: Sequence[Node], placements: dict[Node, Placement]
    ) -> Group | None:
        group = Group(placement.space, self.recomputation.allows, self.names, self.limits)
        try:
            for node in nodes:
                group.add(node, placements[node])
        except NotFusable:
            if len(nodes) > 1:
                return None
            # A single node may read itself in ways that a group may not: nothing is inlined.
            group = Group(placement.space, lambda value: False, self.names, self.limits)
            group.add(nodes[0], placements[nodes[0]])
        return group

    def _candidates(self, node: Node) -> Iterator[list[Unit]]:
        """Sets of groups to try: all producers' groups together, then each alone."""
        found: dict[Unit, None] = {}
        for value in node.inputs:
            producer = through_squeezes(value).node
            unit = self.unit_of.get(producer) if producer is not None else None
            if unit is not None and unit.group is not None:
                found.setdefault(unit)
        units = sorted(found, key=lambda u: -u.position)
        if kind_of(node) == "gather":
            return
        if len(units) > 1:
            yield units
        for unit in units[:MAX_TRIED]:
            yield [unit]

    def _read_by(self, node: Node) -> Sequence[Value]:
        """A node's operands: kernels see through aliases that only add or drop dims of 1."""
        if self.roles[node] is not Role.ARRAY:
            return node.inputs
        return [through_squeezes(v) for v in node.inputs]

    def _try_join(self, node: Node, units: list[Unit]) -> bool:
        placement = self._placement(node, units)
        return placement is not None and self._merge(units, {node: placement})

    def _merge(self, units: list[Unit], more: Mapping[Node, Placement]) -> bool:
        """Make one unit of `units`, which share a space, and of more nodes; False where they
        cannot be one."""
        groups = [u.group for u in units if u.group is not None]
        placements = {n: g.placements[n] for g in groups for n in g.nodes} | dict(more)
        members = sorted(placements, key=self.position.__getitem__)
        if not self._acyclic(members[-1], units):
            return False
        group = self._new_group(placements[members[-1]], members, placements)
        if group is None or not self._may_stand_alone(group):
            return False
        self._join(Unit(Role.ARRAY, members, group, self.position[members[-1]]))
        return True

    def _join(self, unit: Unit) -> None:
        for member in unit.nodes:
            self.unit_of[member] = unit
        ranks = [self.rank[n] for n in unit.nodes]
        first = min(ranks)
        spanned = self.lowest[first : max(ranks) + 1]
        np.minimum(spanned, first, out=spanned)

    def _placement(self, node: Node, units: Sequence[Unit]) -> Placement | None:
        """Where the node runs in the groups' common space."""
        spaces = {u.group.space for u in units if u.group is not None}
        if len(spaces) != 1:
            return None
        (space,) = spaces
        if kind_of(node) == "reduce":
            own = placement_of(node)
            return own if own.space == space else None
        return place_in(space, node)

    def _may_stand_alone(self, group: Group) -> bool:
        """A reduction that is not row by row leaves nothing else to be stored over its axes."""
        if not group.reduced or group.rowwise:
            return True
        inside = set(group.nodes)
        return not any(
            group.spread(value) and self._escapes(value, inside)
            for node in group.nodes
            for value in node.outputs
        )

    def _escapes(self, value: Value, inside: set[Node]) -> bool:
        if value in self.results:
            return True
        for node in self.consumers.get(value, ()):
            if node not in inside and (
                squeezed(node) is None or self._escapes(node.outputs[0], inside)
            ):
                return True
        return False

    def _acyclic(self, node: Node, units: Sequence[Unit]) -> bool:
        """Whether no path leaves `units` and comes back through other units to them or `node`."""
        inside = set(units)
        members = (node, *(n for u in units for n in u.nodes))
        # A unit that ends before the first member cannot depend on members, unless by way of a unit
        # with nodes on both sides of that member: `first` is the lowest rank of such units.
        first = int(self.lowest[min(self.rank[n] for u in units for n in u.nodes)])
        stack = [u for n in members for u in self._producers(self._read_by(n)) if u not in inside]
        seen: set[Unit] = set()
        while stack:
            unit = stack.pop()
            if unit in seen or max(self.rank[n] for n in unit.nodes) < first:
                continue
            seen.add(unit)
            for below in self._must_precede(unit):
                if below in inside:
                    return False
                stack.append(below)
        return True

    def _must_precede(self, unit: Unit) -> Iterator[Unit]:
        """The units that run before a unit: those whose values it reads, and those that use memory
        or variables before it changes them."""
        for node in unit.nodes:
            yield from self._producers(node.inputs)
            for reader in (*self.takeovers.before.get(node, ()), *self.earlier_uses.get(node, ())):
                before = self.unit_of.get(reader)
                if before is not None and before is not unit:
                    yield before

    def _producers(self, values: Iterable[Value]) -> Iterator[Unit]:
        for value in values:
            unit = self.unit_of.get(value.node) if value.node is not None else None
            if unit is not None:
                yield unit

    # -- values that are needed --------------------------------------------------------------

    def finish(self) -> Fusion:
        """Keep the nodes that results and effects need, consumers first."""
        fusion = Fusion(self.region, takeovers=self.takeovers, views=self.views)
        needed: set[Value] = {*self.results, *self._tellers()}
        order = self._consumers_first()
        for unit in order:
            if not self._is_live(unit, needed):
                continue
            if unit.role is Role.SCALAR and not self._scalar(unit, fusion):
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

    def _scalar(self, unit: Unit, fusion: Fusion) -> bool:
        """Build the expressions of rank-0 outputs, single elements of arrays included; False
        where that needs a kernel."""
        for value in unit.nodes[0].outputs:
            build = Expressions(self._within(value), lambda _: (), self.names)
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
            fusion.scalars[value] = expr, {b: v for b, v in build.buffers.items() if b in used}
        return True

    def _within(self, own: Value) -> Callable[[Value, tuple[Index, ...]], bool]:
        """A test for values that rank-0 code computes without memory: the value, and views."""
        return lambda value, _: value is own or self._is_view(value)

    def _is_view(self, value: Value) -> bool:
        node = value.node
        view = node is not None and self.roles.get(node) is Role.VIEW
        return view and self.recomputation.is_near(value)

    def _tellers(self) -> Iterator[Value]:
        """Results of calls that first tell a size which some node mentions, in its attributes or
        in the shapes of its operands: needed even where nothing reads their elements."""
        known = {s for p in self.region.params for s in p.spec.symbols()}
        mentioned = {s for n in self.region.walk() for s in mentioned_symbols(n)} - known
        for node in self.region.nodes if mentioned else ():
            for value in node.outputs:
                new = value.spec.symbols() - known
                if new & mentioned and self.roles.get(node) in _TELL_SIZES:
                    yield value
                known |= new

    def _is_live(self, unit: Unit, needed: set[Value]) -> bool:
        return any(node.has_effect or any(v in needed for v in node.outputs) for node in unit.nodes)

    def _materialise(self, unit: Unit) -> None:
        """A view whose elements something needs in memory becomes a kernel."""
        node = unit.nodes[0]
        placement = placement_of(node)
        unit.group = self._new_group(placement, [node], {node: placement})
        unit.role = Role.ARRAY

    def _consumers_first(self) -> list[Unit]:
        """All units so that every unit comes before those that it reads from."""
        order: dict[Unit, None] = {}
        for node in self.region.nodes:
            stack = [(self.unit_of[node], False)]
            while stack:
                unit, expanded = stack.pop()
                if unit in order:
                    continue
                if expanded:
                    order[unit] = None
                    continue
                stack.append((unit, True))
                for below in reversed(self._below(unit)):
                    if below not in order:
                        stack.append((below, False))
        return list(order)[::-1]

    def _below(self, unit: Unit) -> list[Unit]:
        found: dict[Unit, None] = {}
        for node in unit.nodes:
            for value in self._read_by(node):
                below = self.unit_of.get(value.node) if value.node is not None else None
                if below is not None and below is not unit:
                    found.setdefault(below)
        return list(found)


def _loaded(group: Group, stores: Sequence[Value]) -> list[Value]:
    """The values that the stored expressions load."""
    roots: list[Expr] = [group.values[v] for v in stores]
    found: dict[Value, None] = {}
    for expr in postorder(roots):
        if isinstance(expr, Load):
            found.setdefault(group.build.buffers[expr.buffer])
    return list(found)


__all__ = ["Fusion", "Unit", "fuse"]
