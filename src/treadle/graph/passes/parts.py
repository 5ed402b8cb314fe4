"""Parts of arrays whose bounds a loop decides, as slices with symbolic bounds.

                                                       %k = as_dim(%i) {dim=k, 0 <= k <= 99}
    %s: f64[slice0] = dynamic_slice(%x, %i)       ->   %s: f64[k] = strided_slice(%x)
                                                            {begin=(0), size=(k)}

Parts of one size then have one dim, kernels and products read them where they are, and nothing has
to be checked that the loop's bounds show. A bound that nothing is known of is first clamped to the
axis, as Python's slices do.

In regions with such parts, and in those that write whole rows (``x[i] = v``), positions are slices
too, so that kernels store straight into the rows. An update of a part of a part becomes one of the
array:

    %r = index(%x, %i); %u = slice_update(%r, %v); index_update(%x, %i, %u)
        ->   slice_update(%x, %v) {begin=(i, ...)}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.ranges import Ranges, simplified
from treadle.core.shapes import Dim, compound, substitute
from treadle.graph.integers import Integers
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.dims import DIM, POSITION
from treadle.ops.elementwise.arithmetic import ADD, MAXIMUM, MINIMUM
from treadle.ops.elementwise.casting import CAST
from treadle.ops.elementwise.comparison import LESS
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.indexing.updates import INDEX_UPDATE, SLICE_UPDATE
from treadle.ops.properties import PartKind, PartUse
from treadle.ops.shaping.reshaping import RESHAPE
from treadle.ops.shaping.slicing import SLICE_GRAD, STRIDED_SLICE


def place_parts(graph: Graph) -> bool:
    """Write dynamic slices, their gradients and updates with symbolic bounds."""
    if not any(map(_has_part, graph.walk())):
        return False
    return _Parts(graph).run()


class _Part(NamedTuple):
    """Where the elements of a part are in an array."""

    begin: tuple[Dim, ...]
    size: tuple[Dim, ...]
    strides: tuple[int, ...]


class _Parts(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.integers = Integers(graph)
        self.clamped: list[dict[tuple[Value, Dim, int], Dim]] = []
        self.counts: list[dict[Dim, Dim]] = []
        self.has_parts: list[bool] = []

    def finish(self) -> None:
        self.integers.bind()

    def enter(self, region: Region) -> None:
        self.clamped.append({})
        self.counts.append({})
        self.has_parts.append(any(map(_has_part, region.nodes)))

    def leave(self, region: Region) -> None:
        if self.has_parts.pop():
            _Reads(region, self.integers.ranges).run()
        self.clamped.pop()
        self.counts.pop()

    def visit(self, node: Node) -> Replacement:
        part = node.op.part
        rule = None if part is None else _RULES.get((part.kind, part.use))
        found = None if rule is None else rule(self, node)
        return None if found is None else [found]

    # -- reads -----------------------------------------------------------------------------------

    def slice(self, node: Node) -> Value | None:
        x, *bounds = node.inputs
        part = self.along(x.spec.dims, node.attrs["axis"], bounds, node.attrs["given"])
        return None if part is None else self.read(x, part)

    def index(self, node: Node) -> Value | None:
        x, position = node.inputs
        part = self.at(x.spec.dims, node.attrs["axis"], position)
        return None if part is None else self.shaped(self.read(x, part), node.outputs[0].spec.dims)

    def element(self, node: Node) -> Value | None:
        x, *positions = node.inputs
        part = self.one(x.spec.dims, positions)
        return None if part is None else self.shaped(self.read(x, part), ())

    def update_element(self, node: Node) -> Value | None:
        x, *positions, new = node.inputs
        part = self.one(x.spec.dims, positions)
        return None if part is None else self.update(x, new, part)

    def one(self, dims: Sequence[Dim], positions: Sequence[Value]) -> _Part | None:
        """One element, at a position along every axis."""
        parts = [self.at(dims, axis, position) for axis, position in enumerate(positions)]
        if len(parts) != len(dims) or not all(parts):
            return None
        begin = tuple(p.begin[axis] for axis, p in enumerate(parts) if p is not None)
        ones = (1,) * len(dims)
        return _Part(begin, ones, ones)

    def read(self, x: Value, part: _Part) -> Value:
        """A part of x; a part of a part is one of the array."""
        inner = _through_reshapes(x).node
        if inner is not None and inner.op is STRIDED_SLICE:
            whole = self.nested(_part_of(inner), x.spec.dims, part)
            if whole is not None:
                return self.shaped(self.read(inner.inputs[0], whole), part.size)
        return self.emit(STRIDED_SLICE, [x], part._asdict())

    # -- gradients of reads ----------------------------------------------------------------------

    def slice_grad(self, node: Node) -> Value | None:
        dy, *bounds = node.inputs
        axis, dims = node.attrs["axis"], list(dy.spec.dims)
        dims[axis] = node.attrs["size"]
        part = self.along(dims, axis, bounds, node.attrs["given"])
        return None if part is None else self.spread(dy, part, dims)

    def index_grad(self, node: Node) -> Value | None:
        dy, position = node.inputs
        dims = node.outputs[0].spec.dims
        part = self.at(dims, node.attrs["axis"], position)
        return None if part is None else self.spread(dy, part, dims)

    def known_grad(self, node: Node) -> Value | None:
        dy = node.inputs[0]
        inner = _through_reshapes(dy).node
        if inner is None or inner.op is not SLICE_GRAD:
            return None
        return self.spread(dy, _part_of(node), node.attrs["shape"])

    def spread(self, dy: Value, part: _Part, dims: Sequence[Dim]) -> Value:
        """Zeros but for a part; zeros around such an array are one array."""
        inner = _through_reshapes(dy)
        if inner.node is not None and inner.node.op is SLICE_GRAD:
            whole = self.nested(part, inner.spec.dims, _part_of(inner.node))
            if whole is not None:
                return self.spread(inner.node.inputs[0], whole, dims)
        attrs = {"shape": tuple(dims), "begin": part.begin, "strides": part.strides}
        return self.emit(SLICE_GRAD, [self.shaped(dy, part.size)], attrs)

    # -- updates ---------------------------------------------------------------------------------

    def update_slice(self, node: Node) -> Value | None:
        x, *bounds, new = node.inputs
        part = self.along(x.spec.dims, node.attrs["axis"], bounds, node.attrs["given"])
        return None if part is None else self.update(x, new, part)

    def update_index(self, node: Node) -> Value | None:
        x, position, new = node.inputs
        part = self.at(x.spec.dims, node.attrs["axis"], position)
        return None if part is None else self.update(x, new, part)

    def update_known(self, node: Node) -> Value | None:
        x, new = node.inputs
        part = _part_of(node)
        return self.update(x, new, part) if self.inner_update(x, new, part) else None

    def update(self, x: Value, new: Value, part: _Part) -> Value:
        inner = self.inner_update(x, new, part)
        if inner is not None:
            whole = self.nested(part, inner.outputs[0].spec.dims, _part_of(inner))
            if whole is not None:
                return self.update(x, inner.inputs[1], whole)
        attrs = {"begin": part.begin, "strides": part.strides}
        return self.emit(SLICE_UPDATE, [x, self.shaped(new, part.size)], attrs)

    def inner_update(self, x: Value, new: Value, part: _Part) -> Node | None:
        """The update that made `new` of the very part of x that it goes to."""
        inner = _through_reshapes(new).node
        if inner is None or inner.op is not SLICE_UPDATE:
            return None
        base = _through_reshapes(inner.inputs[0]).node
        if base is None or base.op is not STRIDED_SLICE or base.inputs[0] is not x:
            return None
        return inner if _part_of(base) == part else None

    # -- where parts are -------------------------------------------------------------------------

    def nested(self, outer: _Part, dims: Sequence[Dim], part: _Part) -> _Part | None:
        """Where a part of an array of `dims` is, which is the outer part without dims of 1 or with
        more of them."""
        places = _matched(self.known(outer.size), self.known(dims))
        if places is None:
            return None
        begin, strides = list(outer.begin), list(outer.strides)
        size: list[Dim] = [1] * len(begin)
        for axis, place in enumerate(places):
            if place is not None:
                begin[place] = begin[place] + part.begin[axis] * strides[place]
                strides[place] *= part.strides[axis]
                size[place] = part.size[axis]
        return _Part(tuple(begin), tuple(size), tuple(strides))

    def at(self, dims: Sequence[Dim], axis: int, position: Value) -> _Part | None:
        """One position along an axis. Where nothing shows that it lies inside, it is checked."""
        if not self.has_parts[-1]:
            return None
        place = self.integers.dim(position)
        ranges, size = self.integers.ranges, substitute(dims[axis], self.symbols)
        if isinstance(place, int) and place < 0:
            place = size + place
        inside = place is not None and ranges.is_less_equal(place + 1, size)
        if place is None or not inside or not ranges.is_non_negative(place):
            place = self.checked(position, size)
        return _cut(dims, axis, place, 1, 1)

    def checked(self, position: Value, size: Dim) -> Dim:
        key = (position, size, 1)
        found = self.clamped[-1].get(key)
        if found is None:
            inside = self.emit(POSITION, [position], {"size": size})
            found = self.clamped[-1][key] = self.integers.leaf(inside, 0, size - 1)
        return found

    def along(
        self, dims: Sequence[Dim], axis: int, bounds: Sequence[Value], given: Sequence[bool]
    ) -> _Part | None:
        """The part ``start:stop:step`` of an axis; None where only a run tells the step."""
        size = substitute(dims[axis], self.symbols)
        numbers = iter(bounds)
        start, stop, step = (next(numbers) if present else None for present in given)
        stride = 1 if step is None else self.integers.dim(step)
        if not isinstance(stride, int) or stride == 0:
            return None
        low, high = (0, size) if stride > 0 else (-1, size - 1)
        default = (low, high) if stride > 0 else (high, low)
        first, last = (
            known if value is None else self.clamp(value, size, low)
            for value, known in zip((start, stop), default, strict=True)
        )
        count, most = first - last, first + 1
        if stride > 0:  # a first position past the end leaves nothing
            count, most = last - first, compound("min", last, size - first)
        if abs(stride) != 1:
            count = (count + (abs(stride) - 1)) // abs(stride)
        return _cut(dims, axis, first, self.natural(count, most), stride)

    def clamp(self, value: Value, size: Dim, low: int) -> Dim:
        """A bound as Python takes it: from the end where it is negative, and inside the axis
        (`low` -1: for steps backwards)."""
        ranges = self.integers.ranges
        dim = self.integers.dim(value)
        if isinstance(dim, int) and isinstance(size, int):
            return min(max(dim + size if dim < 0 else dim, low), size + low)
        high = size + low
        if isinstance(dim, int) and dim < 0:
            dim = size + dim
        if dim is not None and ranges.is_less_equal(dim, high) and ranges.is_non_negative(dim):
            return dim
        key = (value, size, low)
        found = self.clamped[-1].get(key)
        if found is None:
            found = self.clamped[-1][key] = self.measured(value, size, low)
        return found

    def measured(self, value: Value, size: Dim, low: int) -> Dim:
        """The symbol of a clamped bound, plus `low`."""
        wide = self.emit(CAST, [value], {"dtype": dtypes.int64})
        extent = self.emit(DIM, (), {"dim": size, "out_type": dtypes.int64})
        zero = self.constant(np.int64(0))
        negative = self.emit(LESS, [wide, zero], {})
        wrapped = self.emit(WHERE, [negative, self.emit(ADD, [wide, extent], {}), wide], {})
        if low:
            wrapped = self.emit(ADD, [wrapped, self.constant(np.int64(-low))], {})
        inside = self.emit(MINIMUM, [self.emit(MAXIMUM, [wrapped, zero], {}), extent], {})
        return self.integers.leaf(inside, 0, size) + low

    def natural(self, count: Dim, most: Dim) -> Dim:
        """A number of elements, up to `most`: 0 where the bounds cross."""
        ranges = self.integers.ranges
        if ranges.is_non_negative(count):
            return simplified(count, ranges)
        known = self.counts[-1].get(count)
        if known is None:
            number = self.emit(DIM, (), {"dim": count, "out_type": dtypes.int64})
            some = self.emit(MAXIMUM, [number, self.constant(np.int64(0))], {})
            known = self.counts[-1][count] = self.integers.leaf(some, 0, most)
        return known

    def known(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """Dims in terms of the symbols that stayed, as far as others were found to equal these."""
        return tuple(substitute(d, self.symbols) for d in dims)

    def shaped(self, value: Value, dims: Sequence[Dim]) -> Value:
        """The value under other dims of as many elements."""
        if self.known(value.spec.dims) == self.known(dims):
            return value
        return self.emit(RESHAPE, [value], {"shape": tuple(dims)})


def _part_of(node: Node) -> _Part:
    """The part that a slice reads, an update writes or a gradient fills."""
    size = node.attrs.get("size") or node.inputs[-1].spec.dims
    return _Part(node.attrs["begin"], tuple(size), node.attrs["strides"])


def _cut(dims: Sequence[Dim], axis: int, begin: Dim, size: Dim, stride: int) -> _Part:
    rank = len(dims)
    begins: list[Dim] = [0] * rank
    sizes, strides = list(dims), [1] * rank
    begins[axis], sizes[axis], strides[axis] = begin, size, stride
    return _Part(tuple(begins), tuple(sizes), tuple(strides))


def _through_reshapes(value: Value) -> Value:
    while value.node is not None and value.node.op is RESHAPE:
        value = value.node.inputs[0]
    return value


def _matched(full: Sequence[Dim], dims: Sequence[Dim]) -> list[int | None] | None:
    """For every one of `dims` the position in `full` that it is, where both are equal but for dims
    of 1; a dim of 1 may be none."""
    places: list[int | None] = []
    at = 0
    for dim in dims:
        while at < len(full) and full[at] != dim and full[at] == 1:
            at += 1
        if at < len(full) and full[at] == dim:
            places.append(at)
            at += 1
        elif dim == 1:
            places.append(None)
        else:
            return None
    return places if all(d == 1 for d in full[at:]) else None


class _Reads:
    """Reads of the versions of a region's arrays.

        %r = strided_slice(%x) {row 2}             %y = slice_update(%x, %v) {row 1}
        %y = slice_update(%x, %v) {row 1}     ->   %r = strided_slice(%y) {row 2}
        use(%r)                                    use(%r)

    An element that is read after an update which leaves it alone is read from the new array: then
    nothing needs the old array any more, and the update happens in place.
    """

    def __init__(self, region: Region, ranges: Ranges) -> None:
        self.region, self.ranges = region, ranges
        self.last: dict[Value, int] = dict.fromkeys(region.results, len(region.nodes))
        for number, node in enumerate(region.nodes):
            self.last |= {v: max(number, self.last.get(v, 0)) for v in node.inputs}
        self.of: dict[Value, list[list[Node]]] = {}  # array -> slices of it with their reshapes
        self.chains: dict[Value, list[Node]] = {}  # a slice or a reshape of one -> its chain
        self.latest: dict[Value, Value] = {}

    def run(self) -> None:
        nodes, self.region.nodes = self.region.nodes, []
        for number, node in enumerate(nodes):
            node.inputs = [self.latest.get(v, v) for v in node.inputs]
            self.region.nodes.append(node)
            if node.op is STRIDED_SLICE:
                self._note(node, [node])
                self.of.setdefault(node.inputs[0], []).append(self.chains[node.outputs[0]])
            elif node.op is RESHAPE and node.inputs[0] in self.chains:
                chain = self.chains[node.inputs[0]]
                chain.append(node)
                self._note(node, chain)
            elif node.op is SLICE_UPDATE:
                self._update(node, number)
        self.region.results = [self.latest.get(v, v) for v in self.region.results]

    def _note(self, node: Node, chain: list[Node]) -> None:
        self.chains[node.outputs[0]] = chain

    def _update(self, update: Node, number: int) -> None:
        part = _part_of(update)
        for chain in self.of.pop(update.inputs[0], ()):
            used = any(self.last.get(n.outputs[0], -1) > number for n in chain)
            if used and self._apart(_part_of(chain[0]), part):
                self._copy(chain, update.outputs[0])

    def _copy(self, chain: list[Node], array: Value) -> None:
        """The chain of views again, of another version of the array."""
        moved = {chain[0].inputs[0]: array}
        copies: list[Node] = []
        for node in chain:
            inputs = [moved[node.inputs[0]]]
            copy = Node(node.op, inputs, node.attrs, [node.outputs[0].spec], (), node.origin)
            copies.append(self.region.append(copy))
            old, new = node.outputs[0], copy.outputs[0]
            moved[old] = new
            self.last[new] = self.last.get(old, -1)
            self.latest |= {v: new for v, latest in self.latest.items() if latest is old}
            self.latest[old] = new
            self._note(copy, copies)
        self.of.setdefault(array, []).append(copies)

    def _apart(self, a: _Part, b: _Part) -> bool:
        """Whether one part ends before the other begins, along some axis."""
        for (low_a, high_a), (low_b, high_b) in zip(_extents(a), _extents(b), strict=True):
            if self.ranges.is_less_equal(high_a + 1, low_b):
                return True
            if self.ranges.is_less_equal(high_b + 1, low_a):
                return True
        return False


def _extents(part: _Part) -> list[tuple[Dim, Dim]]:
    """The first and the last position along every axis."""
    found: list[tuple[Dim, Dim]] = []
    for begin, size, stride in zip(*part, strict=True):
        last = begin + (size - 1) * stride
        found.append((begin, last) if stride > 0 else (last, begin))
    return found


def _has_part(node: Node) -> bool:
    """Whether a node brings parts into its region."""
    writes_row = node.op is INDEX_UPDATE and bool(node.inputs[-1].spec.rank)
    part = node.op.part
    late = part is not None and part.kind is PartKind.DYNAMIC_SLICE
    return writes_row or late or _is_nested(node)


def _is_nested(node: Node) -> bool:
    """Whether a node puts an updated part back, or zeros around zeros."""
    if _has_box(node, PartUse.SET):
        inner = _through_reshapes(node.inputs[-1]).node
        nested = inner is not None and _has_box(inner, PartUse.SET)
        return nested and inner is not None and inner.inputs[-1].spec.rank > 0
    if _has_box(node, PartUse.PLACE):
        inner = _through_reshapes(node.inputs[0]).node
        return inner is not None and _has_box(inner, PartUse.PLACE)
    return False


def _has_box(node: Node, use: PartUse) -> bool:
    """Whether a node does this with a range of positions along every axis."""
    part = node.op.part
    return part is not None and part.kind.is_box and part.use is use


_RULES: dict[tuple[PartKind, PartUse], Callable[[_Parts, Node], Value | None]] = {
    (PartKind.DYNAMIC_SLICE, PartUse.READ): _Parts.slice,
    (PartKind.DYNAMIC_SLICE, PartUse.PLACE): _Parts.slice_grad,
    (PartKind.DYNAMIC_SLICE, PartUse.SET): _Parts.update_slice,
    (PartKind.INDEX, PartUse.READ): _Parts.index,
    (PartKind.INDEX, PartUse.PLACE): _Parts.index_grad,
    (PartKind.INDEX, PartUse.SET): _Parts.update_index,
    (PartKind.SLICE, PartUse.SET): _Parts.update_known,
    (PartKind.SLICE, PartUse.PLACE): _Parts.known_grad,
    (PartKind.ELEMENT, PartUse.READ): _Parts.element,
    (PartKind.ELEMENT, PartUse.SET): _Parts.update_element,
}
