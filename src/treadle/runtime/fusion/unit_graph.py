"""The units of a region while they are formed: their nodes, and which units may be joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from treadle.graph.ir import Node, Region, Value
from treadle.graph.rewrite import mentioned_symbols, told_symbols
from treadle.runtime.fusion.expressions import Names
from treadle.runtime.fusion.group import Group, NotFusable
from treadle.runtime.fusion.limits import Limits
from treadle.runtime.fusion.recomputation import Recomputation
from treadle.runtime.fusion.space import Placement, placement_of
from treadle.runtime.fusion.takeovers import find_takeovers
from treadle.runtime.fusion.units import Unit
from treadle.runtime.roles import Role, role_in_memory, role_of, squeezed, through_squeezes
from treadle.runtime.variable_order import earlier_uses


class UnitGraph:
    """The nodes of a region in units, and the order that units must keep.

    Attributes:
        roles: what each node is to the runtime.
        consumers: the nodes that read each value.
        unit_of: the unit of each node that has been taken.
    """

    def __init__(
        self, region: Region, names: Names, limits: Limits, enabled: bool,
        owned: Mapping[Value, Value], is_register: Callable[[Value], bool],
    ) -> None:  # fmt: skip
        self.region, self.names, self.limits, self.owned = region, names, limits, owned
        self.is_register = is_register
        self.roles = {node: self._role(node) for node in region.nodes}
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
        self.sizes = self._find_sizes()
        self.unit_of: dict[Node, Unit] = {}
        self.overwriters = _reversed(self.takeovers.before)
        # The units that run before each unit. Some may be part of a larger unit by now, which
        # their nodes tell.
        self.preceding: dict[Unit, dict[Unit, None]] = {}
        self.following: dict[Unit, dict[Unit, None]] = {}  # the same the other way round
        self.last_rank: dict[Unit, int] = {}
        # For each rank the lowest of all units that have nodes before and after it.
        self.lowest = np.arange(len(region.nodes))

    def _find_sizes(self) -> dict[str, Node]:
        """The node that tells each size which only a node of this region knows, by its symbol."""
        known = {s for p in self.region.params for s in p.spec.symbols()}
        found: dict[str, Node] = {}
        for node in self.region.nodes:
            for name in told_symbols(node) - known:
                found.setdefault(name, node)
        return found

    def _role(self, node: Node) -> Role:
        role = role_of(node)
        in_memory = role is Role.SCALAR and not self.is_register(node.outputs[0])
        return role_in_memory(node) if in_memory else role

    # -- units -------------------------------------------------------------------------------

    def alone(self, node: Node) -> Unit:
        """Make a node a unit of its own."""
        unit = Unit(self.roles[node], [node], None, self.position[node])
        if unit.role is Role.ARRAY:
            unit.group = self.own_group(node)
        self._take(unit)
        return unit

    def own_group(self, node: Node) -> Group:
        """The group of a node alone."""
        placement = placement_of(node)
        group = self._group(placement, [node], {node: placement})
        assert group is not None
        return group

    def _group(
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

    def merge(self, units: list[Unit], more: Mapping[Node, Placement]) -> bool:
        """Make one unit of `units`, which share a space, and of more nodes; False where they
        cannot be one."""
        groups = [u.group for u in units if u.group is not None]
        placements = {n: g.placements[n] for g in groups for n in g.nodes} | dict(more)
        members = sorted(placements, key=self.position.__getitem__)
        if not self.is_acyclic(members[-1], units):
            return False
        group = self._joined(groups, members, placements)
        if group is None or not self._may_stand_alone(group):
            return False
        self.join(Unit(Role.ARRAY, members, group, self.position[members[-1]]))
        return True

    def _joined(
        self, groups: list[Group], members: list[Node], placements: dict[Node, Placement]
    ) -> Group | None:
        """One group of the members, in order, of some groups and of more; None where they do not
        fit. Most often a node is added to a group, whose expressions are not built again then."""
        last = members[-1]
        if len(groups) == 1 and groups[0].nodes == members[:-1]:
            (group,) = groups
            if group.inline == self.recomputation.allows and group.space == placements[last].space:
                try:
                    return group.with_last(last, placements[last])
                except NotFusable:
                    return None
        return self._group(placements[last], members, placements)

    def join(self, unit: Unit) -> None:
        """Map all nodes of a unit to it."""
        self._take(unit)
        ranks = [self.rank[n] for n in unit.nodes]
        first = min(ranks)
        spanned = self.lowest[first : max(ranks) + 1]
        np.minimum(spanned, first, out=spanned)

    def _take(self, unit: Unit) -> None:
        """Map the nodes of a unit to it, and note the units that run before it: those of its parts,
        and of nodes that have been in no unit yet."""
        found: dict[Unit, None] = {}
        followers: dict[Unit, None] = {}
        parts: dict[Unit, None] = {}
        for node in unit.nodes:
            part = self.unit_of.get(node)
            if part is None:
                found.update(dict.fromkeys(self._must_precede(node)))
            else:
                parts.setdefault(part)
            self.unit_of[node] = unit
        found.pop(unit, None)  # nodes before others of the unit
        for below in found:
            self.following[below].setdefault(unit)
        for part in parts:
            found.update(self.preceding[part])
            followers.update(self.following[part])
        self.preceding[unit], self.following[unit] = found, followers
        self.last_rank[unit] = max(self.rank[n] for n in unit.nodes)
        for node in unit.nodes if self.overwriters else ():
            for writer in self._overwriting(node):
                self.preceding[writer].setdefault(unit)
                self.following[unit].setdefault(writer)

    def _overwriting(self, node: Node) -> Iterator[Unit]:
        """The units that overwrite an array which a node reads, as far as there are any yet."""
        for writer in self.overwriters.get(node, ()):
            unit = self.unit_of.get(writer)
            if unit is not None and unit is not self.unit_of.get(node):
                yield unit

    def _may_stand_alone(self, group: Group) -> bool:
        """A reduction that is not row by row leaves nothing else to be stored over its axes."""
        if not group.reduced or group.rowwise:
            return True
        inside = set(group.nodes)
        return not any(
            group.spread(value) and self.escapes(value, inside)
            for node in group.nodes
            for value in node.outputs
        )

    # -- how units depend on one another ---------------------------------------------------

    def is_view(self, value: Value) -> bool:
        """Whether a value only moves elements of others, and is evaluated where it is read."""
        node = value.node
        view = node is not None and self.roles.get(node) is Role.VIEW
        return view and self.recomputation.is_near(value)

    def escapes(self, value: Value, inside: set[Node]) -> bool:
        """Whether a value is a result, or is read by nodes that are not inside."""
        if value in self.results:
            return True
        for node in self.consumers.get(value, ()):
            if node not in inside and (
                squeezed(node) is None or self.escapes(node.outputs[0], inside)
            ):
                return True
        return False

    def read_by(self, node: Node) -> Sequence[Value]:
        """A node's operands: kernels see through aliases that only add or drop dims of 1."""
        if self.roles[node] is not Role.ARRAY:
            return node.inputs
        return [through_squeezes(v) for v in node.inputs]

    def is_acyclic(self, node: Node, units: Sequence[Unit]) -> bool:
        """Whether no path leaves `units` and comes back through other units to them or `node`."""
        inside = set(units)
        ends = inside.union(self._overwriting(node)) if self.overwriters else inside
        # Paths that come back begin at what the node needs: a unit alone is on no cycle.
        members = [node]
        if len(ends) > 1:
            members += [n for u in units for n in u.nodes]
        needed = {u for n in members for u in self._needed(n, self.read_by(n))} - inside
        if not ends.isdisjoint(needed):
            return False
        # A unit that ends before the first member cannot depend on members, unless by way of a unit
        # with nodes on both sides of that member: `first` is the lowest rank of such units.
        first = int(self.lowest[min(self.rank[n] for u in ends for n in u.nodes)])
        # Of what is needed and what follows the ends the smaller part is walked through.
        below = _Walk(self.unit_of, self.preceding, needed)
        above = _Walk(self.unit_of, self.following, ends)
        while below.stack and above.stack:
            unit = below.stack.pop()
            if self.last_rank[unit] >= first and not ends.isdisjoint(below.go_on(unit)):
                return False
            if not needed.isdisjoint(above.go_on(above.stack.pop())):
                return False
        return True

    def _must_precede(self, node: Node) -> Iterator[Unit]:
        """The units that run before a node: those whose values it reads, and those that use memory
        or variables before it changes them."""
        yield from self._needed(node, node.inputs)
        for reader in (*self.takeovers.before.get(node, ()), *self.earlier_uses.get(node, ())):
            before = self.unit_of.get(reader)
            if before is not None:
                yield before

    def _needed(self, node: Node, operands: Iterable[Value]) -> Iterator[Unit]:
        """The units that make the operands of a node and tell the sizes that it mentions."""
        makers = [v.node for v in operands if v.node is not None]
        if self.sizes:
            told = sorted(mentioned_symbols(node) & self.sizes.keys())
            makers += [self.sizes[name] for name in told]
        for maker in makers:
            unit = self.unit_of.get(maker)
            if unit is not None and maker is not node:
                yield unit

    def consumers_first(self) -> list[Unit]:
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
            for value in self.read_by(node):
                below = self.unit_of.get(value.node) if value.node is not None else None
                if below is not None and below is not unit:
                    found.setdefault(below)
        return list(found)


class _Walk:
    """The units that edges lead to. Ends of edges may be parts of larger units by now."""

    def __init__(
        self, unit_of: Mapping[Node, Unit], edges: Mapping[Unit, Iterable[Unit]], start: set[Unit]
    ) -> None:
        self.unit_of, self.edges = unit_of, edges
        self.stack, self.seen = list(start), set(start)

    def go_on(self, unit: Unit) -> list[Unit]:
        """The units next to one that have not been seen before; they are on the stack then."""
        found = []
        for part in self.edges[unit]:
            other = self.unit_of[part.nodes[0]]
            if other not in self.seen:
                self.seen.add(other)
                found.append(other)
        self.stack += found
        return found


def _reversed(edges: Mapping[Node, Iterable[Node]]) -> dict[Node, list[Node]]:
    """The edges from their ends to their beginnings."""
    found: dict[Node, list[Node]] = {}
    for node, others in edges.items():
        for other in others:
            found.setdefault(other, []).append(node)
    return found
