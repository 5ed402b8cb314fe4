"""NumPy's functions that count, sort into bins and find distinct elements, on tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, fresh_symbol
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.numpy_staging.dtypes import as_array, floating, promoted, to
from treadle.numpy_staging.making import linspace
from treadle.numpy_staging.reductions import cumsum, flat
from treadle.numpy_staging.shapes import moveaxis
from treadle.ops.axes import normalize_axis
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise import selection, unary
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.logic import logical_and, logical_not
from treadle.ops.indexing.gather import gathered, unsorted_segment_sum
from treadle.ops.reductions import reduction
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping import ranges
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import reverse
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.statistics import sorting
from treadle.ops.statistics.histograms import COUNT_POSITIONS


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    rows = as_array(a) if sorter is None else gathered(as_array(a), as_array(sorter))
    rows, values = promoted([rows, as_array(v)])
    found = sorting.searchsorted(rows, flat(values), side, dtypes.int64)
    return reshape_to(found, values.dims)


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """Bins that rise or fall; which of them is decided when the function runs."""
    edges, values = promoted([as_array(bins), as_array(x)])
    side = "left" if right else "right"
    rising = searchsorted(edges, values, side)
    count = cast(reduction.reduce_sum(_like(edges, 1)), dtypes.int64)
    falling = count - searchsorted(reverse(edges, [0]), values, side)
    # The first edge that differs from the one before it tells; a NaN is no lesser one.
    differs = edges[1:] != edges[:-1]
    first = reduction.argmax(cast(differs, dtypes.int32))
    rises = gathered(edges, first) < gathered(edges, first + 1)
    falls = logical_and(logical_not(rises), reduction.reduce_any(differs))
    return selection.where(falls, falling, rising)


def _like(x: Tensor, value: int) -> Tensor:
    return cast(x == x, dtypes.int64) * 0 + value


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each non-negative integer occurs; the length is known when the function runs."""
    positions = flat(as_array(x))
    wide = cast(positions, dtypes.int64)
    length = maximum(reduction.reduce_max(wide) + 1, to(minlength, dtypes.int64))
    smallest = reduction.reduce_min(wide)
    length = selection.where(smallest < 0, smallest, length)
    size = size_of(length, "np.bincount: an element")
    if weights is None:
        return run(COUNT_POSITIONS, positions, size=size)  # type: ignore[no-any-return]
    return unsorted_segment_sum(cast(flat(as_array(weights)), dtypes.float64), positions, size)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """With a number of bins, or their edges in rising order."""
    x = flat(as_array(a))
    edges = _edges(x, bins, range)
    if not isinstance(edges.dims[0], int):
        raise ValueError(f"np.histogram needs a known number of bins{at(user_origin())}")
    count = edges.dims[0] - 1
    lines, values = promoted([edges, x])
    inside = (values >= lines[0]) & (values <= lines[-1])
    even = isinstance(bins, int | np.integer) and x.dtype.is_floating
    find = _place_by_width if even else _place_by_search
    place = find(lines, selection.where(inside, values, lines[0]), count)
    place = selection.where(inside, place, to(count, dtypes.int64))
    if weights is None:
        counts = run(COUNT_POSITIONS, place, size=count + 1)[:count]
    else:
        counts = unsorted_segment_sum(flat(as_array(weights)), place, count + 1)[:count]
    if not density:
        return counts, edges
    widths = edges[1:] - edges[:-1]
    share = cast(counts, dtypes.float64) / cast(widths, dtypes.float64)
    return share / cast(reduction.reduce_sum(counts), dtypes.float64), edges


def _place_by_search(edges: Tensor, x: Tensor, count: int) -> Tensor:
    """The bin of each value between the edges; the last bin has both its edges."""
    place = searchsorted(edges, x, "right") - 1
    return minimum(place, to(count - 1, dtypes.int64))


def _place_by_width(edges: Tensor, x: Tensor, count: int) -> Tensor:
    """The same where bins are equally wide: computed, then moved by one where rounding missed."""
    width = edges[-1] - edges[0]
    none, last = to(0, dtypes.int64), to(count - 1, dtypes.int64)
    place = cast((x - edges[0]) / width * to(count, x.dtype), dtypes.int64)
    place = maximum(minimum(place, last), none)
    place = selection.where(x < gathered(edges, place), maximum(place - 1, none), place)
    above = (x >= gathered(edges, place + 1)) & (place != last)
    return selection.where(above, place + 1, place)


def _edges(x: Tensor, bins: Any, limits: Any) -> Tensor:
    if not isinstance(bins, int | np.integer):
        return as_array(bins)
    wide = floating(x)
    if limits is not None:
        low, high = (to(float(v), wide.dtype) for v in limits)
    else:
        low, high = reduction.reduce_min(wide), reduction.reduce_max(wide)
    half = to(0.5, wide.dtype)
    same = low == high
    low, high = selection.where(same, low - half, low), selection.where(same, high + half, high)
    edges: Tensor = linspace(low, high, int(bins) + 1)
    return edges


# -- distinct elements ---------------------------------------------------------------------------


def _infer_unique(x: TensorSpec, *, axis: int | None) -> tuple[TensorSpec, ...]:
    count = fresh_symbol("n")
    length: Dim = x.dims[axis] if axis is not None else x.dims[0]
    dims = (count,) if axis is None else (*x.dims[:axis], count, *x.dims[axis + 1 :])
    index = TensorSpec((count,), dtypes.int64)
    return TensorSpec(dims, x.dtype), index, TensorSpec((length,), dtypes.int64), index


def _unique(x: NDArray, *, axis: int | None) -> tuple[NDArray, ...]:
    values, *rest = np.unique(x, True, True, True, axis=axis)
    return values, *(r.reshape(-1).astype(np.int64) for r in rest)


def _grad_unique(call: Any, grad: Tensor, *_: Any) -> list[Any]:
    """Each distinct element is the first of its kind."""
    axis = call.attrs["axis"] or 0
    size = call.inputs[0].dims[axis]
    rows = moveaxis(grad, axis, 0)
    spread = unsorted_segment_sum(rows, call.outputs[1], dims_tensor(size, dtypes.int64))
    return [reshape_to(moveaxis(spread, 0, axis), call.inputs[0].dims)]


UNIQUE = register(
    Op(
        "unique_elements", _infer_unique, _unique, _grad_unique,
        callback="how many different elements there are is only known when it runs",
    )
)  # fmt: skip


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct elements in rising order; how many there are is known when the function runs."""
    x = as_array(ar)
    wanted = (True, return_index, return_inverse, return_counts)
    if axis is None and not x.dtype.is_complex:
        parts = _distinct(flat(x), equal_nan, return_index or return_inverse)
    else:
        place = None if axis is None else normalize_axis(axis, x.ndim)
        made = run(UNIQUE, flat(x) if axis is None else x, axis=place)
        parts = [partial(as_array, t) for t in made]
    found = [part() for part, keep in zip(parts, wanted, strict=True) if keep]
    if return_inverse and axis is None:
        place = 1 + return_index
        found[place] = reshape_to(found[place], x.dims)
    return tuple(found) if len(found) > 1 else found[0]


def _distinct(x: Tensor, equal_nan: bool, stable: bool) -> list[Callable[[], Tensor]]:
    """What makes the distinct elements of a vector, where each is first, which of them each
    element is, and how often they occur. Equal elements are neighbours once they are sorted.

    Args:
        stable: the positions of the elements are asked for, not the elements alone.
    """
    whole = cast(x, dtypes.uint8) if x.dtype.is_bool else x
    order = sorting.argsort(whole, stable=True) if stable else None
    rows = sorting.sort(whole) if order is None else gathered(whole, order)
    count = dims_tensor(x.dims[0], dtypes.int64)
    before = gathered(rows, maximum(ranges.range(count) - 1, to(0, dtypes.int64)))
    differs = rows != before
    if equal_nan and x.dtype.is_floating:
        differs &= ~(unary.is_nan(rows) & unary.is_nan(before))
    new = differs | (ranges.range(count) == 0)

    def inverse() -> Tensor:
        assert order is not None
        number = cumsum(cast(new, dtypes.int64)) - 1
        return unsorted_segment_sum(number, order, x.dims[0])

    def counts() -> Tensor:
        first = flat(selection.where(new))
        ends = concat([first, reshape_to(count, (1,))], 0)
        number = ranges.range(dims_tensor(first.dims[0], dtypes.int64))
        return gathered(ends, number + 1) - first

    return [
        lambda: cast(rows[new], x.dtype),
        lambda: cast(order[new], dtypes.int64),  # type: ignore[index]
        inverse,
        counts,
    ]


def unique_values(x: Any, /) -> Tensor:
    found: Tensor = unique(x, equal_nan=False)
    return found


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    return _edges(flat(as_array(a)), bins, range)


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """With known numbers of bins, or their edges."""
    if density:
        raise TypeError(f"np.histogram2d: density= is not supported{at(user_origin())}")
    two = bins if isinstance(bins, list | tuple) else (bins, bins)
    limits = (None, None) if range is None else range
    places, lines, counts = [], [], []
    inside: Any = True
    for given, count, limit in zip((x, y), two, limits, strict=True):
        values = cast(flat(as_array(given)), dtypes.float64)
        edges = cast(_edges(values, count, limit), dtypes.float64)
        if not isinstance(edges.dims[0], int):
            raise ValueError(f"np.histogram2d needs known numbers of bins{at(user_origin())}")
        inside = inside & (values >= edges[0]) & (values <= edges[-1])
        places.append(maximum(_place_by_search(edges, values, edges.dims[0] - 1), 0))
        lines.append(edges)
        counts.append(edges.dims[0] - 1)
    total = counts[0] * counts[1]
    place = places[0] * to(counts[1], dtypes.int64) + places[1]
    place = selection.where(inside, place, to(total, dtypes.int64))
    amount = cast(inside, dtypes.float64)
    if weights is not None:
        amount = amount * cast(flat(as_array(weights)), dtypes.float64)
    found = unsorted_segment_sum(amount, place, total + 1)[:total]
    return reshape_to(found, tuple(counts)), lines[0], lines[1]


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    x, y = promoted([as_array(element), as_array(test_elements)])
    found = reduction.reduce_any(reshape_to(x, (*x.dims, 1)) == flat(y), -1)
    return ~found if invert else found
