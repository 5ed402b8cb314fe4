"""Decisions about a kernel's loops, made before any code is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from treadle.core import dtypes
from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product, row_major
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Buffer,
    Const,
    Expr,
    Index,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    cast,
    index_axes,
    postorder,
)  # fmt: skip
from treadle.runtime.cpu.target import Target
from treadle.runtime.tuning import Tuning

# No machine changes these: an estimate, and the order in which sums are added up.
UNKNOWN = 64  # the extent that estimates take for a symbolic one
CHUNK = 16384  # elements a partial result of a total reduction covers
SHARED_LINES = 4  # of a row that threads share: each writes to as many at least


class UnsupportedKernel(Exception):
    """The kernel cannot be emitted; the caller has another way to run it."""


@record(frozen=True)
class Shape:
    """How a kernel is looped over.

    Attributes:
        vector: the axis along which values are vectors, if any; always the innermost loop.
        lanes: numbers a vector.
        parallel: the axis whose range is given by the caller; None: one unit of work.
        total: a reduction of everything, computed in chunks of its first axis.
        grain: the fewest units of `parallel` that are worth a thread.
        rows: axes that are stored along and reduced over; their loops are inside all others,
            because the reductions come before them.
        tile: the axis along which some loads are contiguous while `vector` strides over memory;
            its loop is just outside the vector loop, and both go in square tiles.
        scan: the axis of the kernel's scans, whose loop is inside all others and carries their
            states; with it, `tile` is this axis or None.
    """

    vector: Axis | None
    lanes: int
    parallel: Axis | None
    total: tuple[Reduce, ...]
    grain: Dim
    rows: frozenset[Axis] = frozenset()
    tile: Axis | None = None
    scan: Axis | None = None

    def order(self, axes: Iterable[Axis], kernel: Kernel) -> list[Axis]:
        """Axes from the outermost loop to the innermost."""
        known = [a for a in kernel.axes if a in set(axes)]
        return sorted(known, key=self._depth)

    def _depth(self, axis: Axis) -> int:
        if self.columns:
            return 2 if axis in self.rows else axis is self.vector
        return 3 if axis is self.vector else axis in self.rows or 2 * (axis is self.tile)

    @property
    def columns(self) -> bool:
        """Whether rows run across the vectors: a block of columns takes all passes at once."""
        return bool(self.rows) and self.vector is not None and self.vector not in self.rows


def choose_shape(kernel: Kernel, target: Target) -> Shape:
    """The loops of a kernel for a target."""
    exprs = kernel.exprs
    if any(isinstance(e, Scan) for e in exprs):
        return _scan_shape(kernel, exprs, target)
    if any(s.computed for s in kernel.stores):
        return _scatter_shape(kernel, exprs, target)
    rows = frozenset(_reduced(exprs)) & _stored(kernel)
    tuning = target.tuning
    work, line = tuning.task_elements, tuning.line // 4  # in elements of the usual size
    vector = _vector_axis(kernel, exprs, rows, line)
    lanes = lanes_of(kernel, target)
    total = () if kernel.few else _total(kernel, exprs)
    alone = kernel.few or total
    parallel = None if alone else _parallel_axis(kernel, exprs, vector)
    if total:
        parallel = next((a for a in _outer_first(kernel, total[0], vector)), None)
        chunk = CHUNK
        return Shape(vector, lanes, parallel, total, max(1, 2 * work // chunk))
    tile = _tile_axis(kernel, exprs, vector, line)
    grain = _grain(kernel, exprs, parallel, work)
    if parallel is vector and any(len(s.axes) > 1 for s in kernel.stores):
        # Threads that wrote to one cache line in each of the rows would wait for each other.
        grain = compound("max", grain, SHARED_LINES * line)
    if parallel is vector and _is_at_most(parallel, lanes, grain):
        parallel, grain = None, 1  # a short row is one unit of work, whose end the code knows
    return Shape(vector, lanes, parallel, (), grain, rows, tile)


def _scan_shape(kernel: Kernel, exprs: Sequence[Expr], target: Target) -> Shape:
    """The loops of a kernel with scans (see `scans`)."""
    ways = {(e.axis, e.reverse) for e in exprs if isinstance(e, Scan)}
    if len(ways) > 1 or any(isinstance(e, Reduce) for e in exprs):
        raise UnsupportedKernel("scans in several ways, or beside reductions")
    if any(s.axes != frozenset(kernel.axes) for s in kernel.stores):
        raise UnsupportedKernel("a store that not all axes of the scans' loops belong to")
    ((scan, _),) = ways
    if any(s.computed for s in kernel.stores):
        return _placed_scan_shape(kernel, exprs, scan, target)
    lanes = lanes_of(kernel, target)
    others = [a for a in kernel.axes if a is not scan]
    first = kernel.stores[0]
    beside = [a for a in others if flat_stride(first.buffer, first.index, a) == 1]
    lines = [a for a in others if 2 * extent_estimate(a.extent) >= lanes]
    tile: Axis | None = None
    vector: Axis | None
    if beside:
        vector = beside[0]
    elif lines:
        vector = max(lines, key=lambda a: extent_estimate(a.extent))
    else:
        computed = any(is_costly(e) or isinstance(e, Scan) and e.dtype.is_integer for e in exprs)
        vector = scan if computed else None
    if vector in lines:
        loads = [e for e in exprs if isinstance(e, Load)]
        crossing = transposing_loads(loads, scan, vector)
        tile = scan if crossing or transposing_stores(kernel.stores, scan, vector) else None
    parallel = None if kernel.few else _parallel_axis(kernel, exprs, vector)
    grain = _grain(kernel, exprs, parallel, target.tuning.task_elements)
    if parallel is vector and _is_at_most(parallel, lanes, grain):
        parallel, grain = None, 1
    return Shape(vector, lanes, parallel, (), grain, tile=tile, scan=scan)


def _placed_scan_shape(kernel: Kernel, exprs: Sequence[Expr], scan: Axis, target: Target) -> Shape:
    """The loops of a kernel whose scans tell where it stores: elements one after the other, or
    vectors along an axis inside the scan's, where all scans stay as they are."""
    if not all(s.unique for s in kernel.stores):
        raise UnsupportedKernel("points that scans may place at one element")
    selection = selection_of(kernel)
    if selection is not None:
        size = selection.store.buffer.dtype.size
        permuted = target.is_x86 and target.vector_bits >= 256 and size in (4, 8)
        parallel = None if kernel.few else _parallel_axis(kernel, exprs, scan)
        grain = _grain(kernel, exprs, parallel, target.tuning.task_elements)
        lanes = 32 // size if permuted else lanes_of(kernel, target)
        return Shape(scan if permuted else None, lanes, parallel, (), grain, scan=scan)
    vector = _beside(kernel, [a for a in kernel.axes if not _varies(exprs, a)])
    parallel = None if kernel.few else _parallel_axis(kernel, exprs, vector)
    grain = _grain(kernel, exprs, parallel, target.tuning.task_elements)
    return Shape(vector, lanes_of(kernel, target), parallel, (), grain, scan=scan)


@record(frozen=True)
class Selection:
    """A store of the elements that a mask selects: each after those before it, from `base` on.

    Attributes:
        before: how many elements before each are selected.
    """

    store: Store
    mask: Expr
    base: Expr
    before: Scan


def selection_of(kernel: Kernel) -> Selection | None:
    """The selection that a kernel is, if it is one."""
    match kernel.stores:
        case (
            Store(
                index=(
                    Apply(
                        fn="select",
                        args=(
                            mask,
                            Apply(fn="add", args=(base, Scan(op="add", exclusive=True) as before)),
                            Const(value=-1),
                        ),
                    ),
                ),
                combine="set",
                unique=True,
            ) as store,
        ):
            counts = before.value is cast(mask, dtypes.int64) and not before.reverse
            own = before.axis in store.axes and before.axis not in base.axes
            return Selection(store, mask, base, before) if counts and own else None
    return None


def _varies(exprs: Sequence[Expr], axis: Axis) -> bool:
    """Whether a scan has different values along an axis."""
    return any(isinstance(e, Scan) and axis in e.axes for e in exprs)


def _beside(kernel: Kernel, axes: list[Axis]) -> Axis | None:
    """The first of the axes along which all stores go to neighbouring elements."""
    return next(
        (
            a
            for a in axes
            if a.extent != 1
            and all(flat_stride(s.buffer, s.index, a) == 1 for s in kernel.stores)
            and not any(a in i.axes for s in kernel.stores for i in s.computed)
        ),
        None,
    )


def _scatter_shape(kernel: Kernel, exprs: Sequence[Expr], target: Target) -> Shape:
    """The loops of a kernel that stores at computed places: points that may name one element keep
    their order and belong to one thread. Vectors lie along an axis that sets elements apart."""
    if any(isinstance(e, Reduce) for e in exprs):
        raise UnsupportedKernel("reductions that are stored at computed places")
    lanes = lanes_of(kernel, target)
    apart = [a for a in kernel.axes if all(_sets_apart(s, a) for s in kernel.stores)]
    vector = _beside(kernel, apart)
    outer = [a for a in apart if a is not vector and extent_estimate(a.extent) >= 8]
    parallel = None if kernel.few else next(iter([*outer, *([vector] if vector else [])]), None)
    grain = _grain(kernel, exprs, parallel, target.tuning.task_elements)
    if parallel is vector:  # every thread goes through all places, for whole lines at least
        least = 2 * SHARED_LINES * (target.tuning.line // 4)
        grain = compound("max", grain, least)
        if _is_at_most(parallel, 2 * least):
            parallel, grain = None, 1
    return Shape(vector, lanes, parallel, (), grain)


def _sets_apart(store: Store, axis: Axis) -> bool:
    """Whether points at different positions along an axis store into different elements."""
    if store.unique:
        return axis in store.axes
    return any(
        isinstance(i, Affine) and [a for a, _ in i.terms] == [axis] and i.terms[0][1] != 0
        for i in store.index
    )


def _is_at_most(axis: Axis | None, *counts: Dim) -> bool:
    """Whether an axis is known to have no more positions than each of the counts."""
    size = None if axis is None else axis.extent
    return isinstance(size, int) and all(isinstance(c, int) and size <= c for c in counts)


def _tile_axis(
    kernel: Kernel, exprs: Sequence[Expr], vector: Axis | None, line: int
) -> Axis | None:
    """The axis to tile with the vector axis, where tiles save fetching cache lines of `line`
    elements again."""
    if vector is None or kernel.segmented or any(isinstance(e, Reduce) for e in exprs):
        return None
    loads = [e for e in exprs if isinstance(e, Load)]
    written = {s.buffer for s in kernel.stores}
    loads = [e for e in loads if e.buffer not in written]  # a tile reads ahead of the stores
    if any(s.axes != frozenset(kernel.axes) for s in kernel.stores):
        return None
    sizes = {a: extent_estimate(a.extent) for a in kernel.axes}
    best: tuple[int, Axis | None] = (0, None)
    for axis in kernel.axes:
        if axis is not vector and min(sizes[axis], sizes[vector]) >= line:
            best = max(
                best, (len(transposing_loads(loads, axis, vector)), axis), key=lambda t: t[0]
            )
    return best[1]


def transposing_loads(loads: Iterable[Load], across: Axis, along: Axis) -> list[Load]:
    """Loads that are contiguous along `across` and stride over memory along `along`."""
    return [
        e
        for e in loads
        if e.valid is None
        and not any(isinstance(i, Expr) for i in e.index)
        and flat_stride(e.buffer, e.index, across) == 1
        and flat_stride(e.buffer, e.index, along) not in (0, 1)
    ]


def transposing_stores(stores: Iterable[Store], across: Axis, along: Axis) -> list[Store]:
    """Stores that are contiguous along `across` and stride over memory along `along`."""
    return [
        s
        for s in stores
        if flat_stride(s.buffer, s.index, across) == 1
        and flat_stride(s.buffer, s.index, along) not in (0, 1)
    ]


def lanes_of(kernel: Kernel, target: Target) -> int:
    """Numbers a vector: it is filled by 32-bit ones unless 64-bit floats take part, or larger ones
    are all that is moved."""
    if all(b.dtype.size == 16 for b in kernel.buffers):
        return max(2, target.vector_bits // 128)
    exprs = kernel.exprs
    wide = any(e.dtype.is_floating and e.dtype.size == 8 for e in exprs) or all(
        b.dtype.size == 8 for b in kernel.buffers
    )
    return target.vector_bits // (64 if wide else 32)


def flat_stride(buffer: Buffer, index: tuple[Index, ...], axis: Axis) -> Dim | None:
    """Elements between neighbours along `axis`; None where a gather makes that unknown."""
    total: Dim = 0
    for place, stride in zip(index, row_major(buffer.shape), strict=True):
        if isinstance(place, Affine):
            total = total + place.coefficient(axis) * stride
        elif axis in place.axes:
            return None
    return total


def _stored(kernel: Kernel) -> frozenset[Axis]:
    return frozenset().union(*(s.axes for s in kernel.stores))


def _vector_axis(
    kernel: Kernel, exprs: Sequence[Expr], rows: frozenset[Axis], line: int
) -> Axis | None:
    """The axis along which most memory is contiguous; stores count more than loads, and each
    by the elements that it moves: a load of one element a row counts little beside a whole row.

    Where there are rows, vectors go along another axis only if all stores are contiguous along it.
    """
    outer = _stored(kernel) - rows if rows else frozenset()
    outer -= {a for a in outer if _holds_columns(kernel, a, line)}
    best, best_score = None, 0.0
    loads = [e for e in exprs if isinstance(e, Load)]
    # Without reductions, loads across the stores' direction go through tiles.
    tiled = not any(isinstance(e, Reduce) for e in exprs)
    store_weight = 3 + (2 * len(loads) if tiled else 0)
    places: list[tuple[Buffer, tuple[Index, ...], int]] = [
        (s.buffer, s.index, store_weight) for s in kernel.stores
    ]
    places += [(e.buffer, e.index, 2) for e in loads]
    traffic = [_elements(index) for _, index, _ in places]
    most = max([1, *traffic])  # an empty array moves nothing
    for position, axis in enumerate(kernel.axes):
        if axis in outer or (isinstance(axis.extent, int) and axis.extent < 2):
            continue
        score = 1.0 + position / 100
        for (buffer, index, weight), elements in zip(places, traffic, strict=True):
            stride = flat_stride(buffer, index, axis)
            if stride in (1, -1):
                score += weight * elements / most
            elif stride is None or stride != 0:
                score -= weight / 2 * elements / most
        if isinstance(axis.extent, int) and axis.extent < 8:
            score *= axis.extent / 8
        if score > best_score:
            best, best_score = axis, score
    return best


def _holds_columns(kernel: Kernel, axis: Axis, line: int) -> bool:
    """Whether all stores are contiguous along an axis that fills cache lines of `line` elements."""
    return all(flat_stride(s.buffer, s.index, axis) == 1 for s in kernel.stores) and (
        not isinstance(axis.extent, int) or axis.extent >= line
    )


def _elements(index: tuple[Index, ...]) -> int:
    """How many elements a load or store touches, roughly."""
    axes = frozenset().union(*(index_axes(i) for i in index))
    return math.prod(extent_estimate(a.extent) for a in axes)


def _reduced(exprs: Iterable[Expr]) -> set[Axis]:
    return {a for e in exprs if isinstance(e, Reduce) for a in e.over}


def _scanned(exprs: Iterable[Expr]) -> set[Axis]:
    return {e.axis for e in exprs if isinstance(e, Scan)}


def _parallel_axis(kernel: Kernel, exprs: Sequence[Expr], vector: Axis | None) -> Axis | None:
    """An axis that every store has and no reduction or scan runs over; an outer one if possible."""
    common = frozenset.intersection(*(s.axes for s in kernel.stores))
    ordered = _reduced(exprs) | _scanned(exprs)
    free = [a for a in kernel.axes if a in common and a not in ordered]
    outer = [a for a in free if a is not vector]
    large = [a for a in outer if not isinstance(a.extent, int) or a.extent >= 8]
    return next(iter([*large, *([vector] if vector in free else []), *outer]), None)


def _total(kernel: Kernel, exprs: Sequence[Expr]) -> tuple[Reduce, ...]:
    """The reductions of a kernel that only reduces everything, if it is worth splitting."""
    if any(s.axes for s in kernel.stores):
        return ()
    top = [e for e in exprs if isinstance(e, Reduce) and not e.axes]
    if not top or any(e.over != top[0].over for e in top):
        return ()
    inside = set(postorder([e.value for e in top]))
    if any(e in inside for e in top):
        return ()  # one total is needed to compute another
    size = product(a.extent for a in top[0].over)
    if isinstance(size, int) and size < 2 * CHUNK:
        return ()
    return tuple(top)


def _outer_first(kernel: Kernel, reduce: Reduce, vector: Axis | None) -> list[Axis]:
    outer = [a for a in kernel.axes if a in reduce.over and a is not vector]
    return [*outer, *([vector] if vector in reduce.over else [])]


def extent_estimate(dim: Dim) -> int:
    return dim if isinstance(dim, int) else UNKNOWN


def _grain(kernel: Kernel, exprs: Sequence[Expr], parallel: Axis | None, work: int) -> Dim:
    """Units of the parallel axis for `work` elements, costly functions counted as several."""
    if parallel is None:
        return 1
    others = product(a.extent for a in kernel.axes if a is not parallel)
    per_unit = others * operations_of(exprs)
    return compound("max", compound("floordiv", work, compound("max", per_unit, 1)), 1)


def operations_of(exprs: Iterable[Expr]) -> int:
    """The work at a point of the axes: a costly function counts as much as all other operations
    together."""
    return 1 + sum(map(is_costly, exprs))


def is_few(kernel: Kernel, points: int, tuning: Tuning) -> bool:
    """Whether so many points of the axes are not worth a second thread."""
    exprs = kernel.exprs
    return points * operations_of(exprs) < 2 * tuning.task_elements


def is_costly(expr: Expr) -> bool:
    """Whether a value is worth keeping in memory rather than computing it twice."""
    if isinstance(expr, Scan):
        return FUNCTIONS[expr.op].costly
    return isinstance(expr, Apply) and FUNCTIONS[expr.fn].costly
