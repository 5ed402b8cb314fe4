"""A group: nodes that share one loop nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.shapes import Dim
from treadle.graph.ir import Node, Value
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Apply, Axis, Buffer, Expr, Index, Load, Reduce, Scan, postorder
from treadle.runtime.fusion.expressions import Expressions, Names
from treadle.runtime.fusion.limits import Limits
from treadle.runtime.fusion.space import Placement, Space, axes_for, canonical_index
from treadle.runtime.roles import kind_of

# No machine changes these: they bound the time of compiling a kernel (registers are spilled long
# before), and compare instructions with instructions. The others are in `limits.py`.
MAX_WEIGHT = 500
MAX_BUFFERS = 40
_COSTLY = 10  # operations that a long function counts as


class NotFusable(Exception):
    """The node cannot be part of the group."""


class Group:
    """Nodes computed by one kernel over `space`.

    `inline(value)` says which values from outside may be computed again here instead of loaded.
    """

    def __init__(
        self, space: Space, inline: Callable[[Value], bool], names: Names, limits: Limits
    ) -> None:
        self.space, self.limits = space, limits
        self.inline = inline
        self.axes = axes_for(space)
        self.nodes: list[Node] = []
        self.placements: dict[Node, Placement] = {}
        self.values: dict[Value, Expr] = {}
        self.index: dict[Value, tuple[Index, ...]] = {}
        self.build = Expressions(self._inlines, self._axes_of, names)
        self.seen: set[Expr] = set()
        self.weight = 0
        self.reduced: frozenset[Axis] = frozenset()  # the axes that the group's reductions run over
        self.scanned: tuple[Axis, bool] | None = None  # the axis of its scans, and whether reversed

    def with_last(self, node: Node, placement: Placement) -> Group:
        """A group of these members and one that comes after them all. What the members compute
        stays as it is, for none of them reads that node: only its own expressions are built.

        Raises:
            NotFusable: it does not fit.
        """
        group = Group(self.space, self.inline, self.build.names, self.limits)
        group.nodes, group.placements = [*self.nodes], {**self.placements}
        group.values, group.index, group.seen = {**self.values}, {**self.index}, {*self.seen}
        group.weight, group.reduced, group.scanned = self.weight, self.reduced, self.scanned
        group.build.begin_with(self.build)
        group.add(node, placement)
        return group

    def add(self, node: Node, placement: Placement) -> None:
        """Make `node` a member.

        Raises:
            NotFusable: it does not fit; the group is as before, but must be given up or rebuilt
                before more nodes are added.
        """
        self.placements[node] = placement
        for value in node.outputs:
            self.index[value] = canonical_index(value, placement)
        self.nodes.append(node)
        for value in node.outputs:
            self.values[value] = self.build.element(value, self.index[value])
        self._check(node)

    def _axes_of(self, node: Node) -> Sequence[Axis]:
        placement = self.placements.get(node)
        if placement is None:
            return ()
        return [a for a in (self._axis(p) for p in placement.reduced) if a is not None]

    def _axis(self, position: int | None) -> Axis | None:
        return None if position is None else self.axes[position]

    def _inlines(self, value: Value, index: tuple[Index, ...]) -> bool:
        own = self.index.get(value)
        if own is None:
            return self.inline(value)
        if own != index:
            raise NotFusable("a member is read at another place than it is computed")
        return True

    # -- nodes that a group may hold ---------------------------------------------------------------

    def _check(self, node: Node) -> None:
        for value in node.outputs:
            self._visit(value)
        if self.weight > MAX_WEIGHT and len(self.nodes) > 1:
            raise NotFusable("the expression is too large")
        if len(self.build.buffers) + len(self.nodes) > MAX_BUFFERS and len(self.nodes) > 1:
            raise NotFusable("too many buffers")
        if self.scanned is not None:
            self._check_scans()
        if len(self.nodes) > 1:
            self._check_reductions()

    def _visit(self, value: Value) -> None:
        """Add the weight of the expressions of `value` that the group does not have yet."""
        new = postorder([self.values[value]], known=self.seen.__contains__)
        self.seen.update(new)
        for expr in new:
            self.weight += weight(expr)
            if isinstance(expr, Reduce):
                self._note_reduction(expr)
            elif isinstance(expr, Scan):
                self._note_scan(expr)

    def _note_reduction(self, expr: Reduce) -> None:
        over = frozenset(expr.over)
        if self.reduced and over != self.reduced:
            raise NotFusable("reductions over different axes")
        if over & expr.axes:
            raise NotFusable("a reduction is used along its own axis inside itself")
        self.reduced = over

    def _note_scan(self, expr: Scan) -> None:
        way = expr.axis, expr.reverse
        if self.scanned is not None and way != self.scanned:
            raise NotFusable("scans along different axes or in different directions")
        self.scanned = way

    def _check_scans(self) -> None:
        if self.reduced:
            raise NotFusable("a scan's order of loops does not suit reductions")
        inside = [p for p, d in enumerate(self.space) if d != 1]
        if any(p not in self.placements[n].out for n in self.nodes for p in inside):
            raise NotFusable("a member that does not run along all axes of the scan's loops")

    def _check_reductions(self) -> None:
        """Rows (trailing axes reduced) may be followed by members over the whole row; other
        reductions stand alone with the nodes of their operand."""
        if not self.reduced:
            return
        rowwise, row = self.rowwise, {a for a in self.reduced if a.extent != 1}
        for node in self.nodes:
            along = self._along_reduced(node)
            whole_row = rowwise and row <= along
            if along and not whole_row and self._follows_reduction(node):
                raise NotFusable("the reduction must be finished before its result is spread")

    def _along_reduced(self, node: Node) -> frozenset[Axis]:
        """The axes of the group's reductions that a node runs along."""
        placed = (self.axes[p] for p in self.placements[node].out if p is not None)
        return self.reduced & frozenset(placed)

    def _follows_reduction(self, node: Node) -> bool:
        return any(_contains_reduction(self.values[v]) for v in node.outputs)

    @property
    def rowwise(self) -> bool:
        """Whether each row that is reduced is handled by one thread, and stays in cache: it runs
        along the trailing axes, or down blocks of columns."""
        if self._columnwise:
            return True
        count = len(self.reduced)
        if not self.reduced or frozenset(self.axes[len(self.axes) - count :]) != self.reduced:
            return False
        if count == len(self.axes) or all(d == 1 for d in self.space[: len(self.axes) - count]):
            size = static_size(self.space)
            return size is not None and size <= self.limits.small_row
        return True

    @property
    def _columnwise(self) -> bool:
        """Whether the reductions are over leading axes, with enough columns for every thread.

        Where going down columns costs more than going along rows this is only for nodes such as a
        softmax, which reduce and spread what they compute themselves.
        """
        count = len(self.reduced)
        if not count or frozenset(self.axes[:count]) != self.reduced:
            return False
        alone = (kind_of(n) == "reduce" and self._along_reduced(n) for n in self.nodes)
        if not self.limits.columns and not any(alone):
            return False
        length, columns = static_size(self.space[:count]), static_size(self.space[count:])
        if length is None or length > self.limits.small_row:
            return False
        return (columns or 0) >= self.limits.many_columns

    def spread(self, value: Value) -> bool:
        """Whether the value runs along an axis that the group reduces over."""
        axes = {a for i in self.index[value] for a in _axes(i)}
        return bool(axes & self.reduced)


def shares_work(a: Group, b: Group) -> bool:
    """Whether computing two groups together saves a pass over memory: a reduction of one is
    computed in the other, too, or both reduce arrays that they both read, in one direction or over
    the same windows."""
    if a.space != b.space:
        return False
    shared = a.seen & b.seen
    if any(isinstance(e, Reduce) for e in shared):
        return True
    whole = frozenset(a.axes)
    loads = [e for e in shared if isinstance(e, Load) and e.axes == whole]
    if a.reduced and a.reduced == b.reduced:
        return bool(loads)
    return any(_reads_windows(loads, e.buffer) for e in loads)


def shares_reads(a: Group, b: Group) -> bool:
    """Whether both read a large array element by element, and memory takes most of their time."""
    if a.space != b.space or any(g.reduced and not g.rowwise for g in (a, b)):
        return False
    if a.scanned != b.scanned:
        return False  # rows that could be vectors would follow the scan's order
    whole = frozenset(x for x in a.axes if x.extent != 1)
    shared = [e for e in a.seen & b.seen if isinstance(e, Load) and whole <= e.axes]
    light = a.weight + b.weight <= a.limits.shared_weight
    few = len(a.build.buffers.keys() | b.build.buffers.keys()) <= a.limits.shared_buffers
    return light and few and any(_is_at_least(a.limits.large, e.buffer) for e in shared)


def _is_at_least(least: int, buffer: Buffer) -> bool:
    size = static_size(buffer.shape)
    return size is None or size * buffer.dtype.size >= least


def _reads_windows(loads: Sequence[Load], buffer: Buffer) -> bool:
    """Whether several elements of an array are read for each that is computed."""
    return sum(e.buffer is buffer for e in loads) > 1


def _axes(index: Index) -> Sequence[Axis]:
    return list(index.axes) if isinstance(index, Expr) else [a for a, _ in index.terms]


def static_size(space: Sequence[Dim]) -> int | None:
    """The number of points, or None where a dim is symbolic."""
    total = 1
    for dim in space:
        if not isinstance(dim, int):
            return None
        total *= dim
    return total


def weight(expr: Expr) -> int:
    """A rough cost of one expression node."""
    if isinstance(expr, Apply):
        return _COSTLY if FUNCTIONS[expr.fn].costly else 1
    return 1 if isinstance(expr, Load) else 0


def _contains_reduction(expr: Expr) -> bool:
    return any(isinstance(e, Reduce) for e in postorder([expr]))
