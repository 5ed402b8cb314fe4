"""Pooling as kernel expressions: small windows unrolled, large ones as loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, compound
from treadle.kernel.ir import Expr, Index, Reduce, apply, as_index, cast, const
from treadle.ops.image.pooling_numpy import lowest, pool_spans, winner_dtype
from treadle.ops.image.windows import Span
from treadle.ops.lowering import (
    Access,
    LowerCall,
    add_index,
    dim_expr,
    divide_index,
    index_expr,
    scale_index,
    sum_index,
)  # fmt: skip

MOST_UNROLLED = 25  # larger windows become loops


def _zero(value: Expr) -> Expr:
    return const(0, value.dtype)


def _both(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return apply("and", a, b)


def _inside(position: Index, size: Dim) -> Expr:
    at = index_expr(position)
    return apply("and", apply("ge", at, _zero(at)), apply("lt", at, dim_expr(size)))


def _source(start: Index, offset: Index, s: Span) -> tuple[Index, Expr | None]:
    """The image position of one window element, and whether it is in the image."""
    position = sum_index(scale_index(start, s.stride), offset)
    if s.before == 0 and s.after == 0:
        return position, None
    position = sum_index(position, as_index(-s.before))
    return position, _inside(position, s.size)


def _element(
    access: Access, index: Sequence[Index], i: Index, j: Index, rows: Span, columns: Span, fill: Any
) -> Expr:
    """Element (i, j) of the window at `index`."""
    (h, in_rows), (w, in_columns) = _source(index[1], i, rows), _source(index[2], j, columns)
    return access([index[0], h, w, index[3]], _both(in_rows, in_columns), fill)


def _window_of(call: LowerCall) -> tuple[Span, Span]:
    attrs = call.attrs
    return pool_spans(call.specs[0].dims[1:3], attrs["window"], attrs["strides"], attrs["padding"])


def _elements(call: LowerCall, index: Sequence[Index], fill: Any, number: int = 0) -> list[Expr]:
    """The elements of a small window of input `number`, in order."""
    rows, columns = _window_of(call)
    return [
        _element(call.inputs[number], index, as_index(i), as_index(j), rows, columns, fill)
        for i in range(rows.window)
        for j in range(columns.window)
    ]


def _is_large(call: LowerCall) -> bool:
    height, width = call.attrs["window"]
    return bool(height * width > MOST_UNROLLED)


def _reduced(call: LowerCall, index: Sequence[Index], op: str, fill: Any) -> Expr:
    """A large window reduced in a loop over what of it may be in the image."""
    rows, columns = _window_of(call)
    (top, bottom), (left, right) = rows.offsets, columns.offsets
    across = right - left
    axis = call.axis((bottom - top) * across)
    i, j = divide_index(as_index(axis), across)
    value = _element(
        call.inputs[0], index, add_index(i, top), add_index(j, left), rows, columns, fill
    )
    if op != "argmax":
        return Reduce(op, (axis,), value)
    place = Reduce(op, (axis,), value, dtypes.int64)
    if (top, left, right) == (0, 0, columns.window):
        return cast(place, call.out.dtype)
    i, j = divide_index(place, across)  # the number in the whole window
    number = sum_index(scale_index(add_index(i, top), columns.window), add_index(j, left))
    return cast(index_expr(number), call.out.dtype)


def lower_max(call: LowerCall, index: Sequence[Index]) -> Expr:
    fill = lowest(call.out.dtype)
    if _is_large(call):
        return _reduced(call, index, "max", fill)
    highest, *rest = _elements(call, index, fill)
    for value in rest:
        highest = apply("max", highest, value)
    return highest


def lower_index(call: LowerCall, index: Sequence[Index]) -> Expr:
    fill = lowest(call.specs[0].dtype)
    if _is_large(call):
        winner = _reduced(call, index, "argmax", fill)
    else:
        winner = _first_highest(_elements(call, index, fill), call.out.dtype)[0]
    rows, columns = _window_of(call)
    first = _first_places(index, rows, columns)
    return winner if first is None else _not_padding(winner, first, columns)


def lower_masked_index(call: LowerCall, index: Sequence[Index]) -> Expr:
    values = _elements(call, index, lowest(call.specs[0].dtype))
    mask = _elements(call, index, False, 1)
    rows, columns = _window_of(call)
    first = _first_places(index, rows, columns)
    if first is not None:
        mask[0] = _element(call.inputs[1], index, *first, rows, columns, False)
    winner, live = _first_highest(values, call.out.dtype, mask)
    assert live is not None
    if first is not None:
        winner = _not_padding(winner, first, columns)
    return apply("select", live, winner, const(call.out.dtype.max, call.out.dtype))


def _first_places(index: Sequence[Index], rows: Span, columns: Span) -> tuple[Expr, Expr] | None:
    """Row and column in the window of its first element in the image; None where that is 0, 0."""
    if rows.before == 0 and columns.before == 0:
        return None
    zero = const(0, dtypes.int64)
    places = []
    for start, s in zip(index[1:3], (rows, columns), strict=True):
        beyond = apply("sub", dim_expr(s.before), index_expr(scale_index(start, s.stride)))
        last = const(s.window - 1, dtypes.int64)
        places.append(apply("min", apply("max", beyond, zero), last))
    return places[0], places[1]


def _not_padding(winner: Expr, first: tuple[Expr, Expr], columns: Span) -> Expr:
    """Where no element is greater than padding the first one in the image wins."""
    row = apply("mul", first[0], const(columns.window, dtypes.int64))
    number = cast(apply("add", row, first[1]), winner.dtype)
    return apply("select", apply("eq", winner, const(0, winner.dtype)), number, winner)


def _first_highest(
    values: Sequence[Expr], dtype: DType, mask: Sequence[Expr] = ()
) -> tuple[Expr, Expr | None]:
    """The number of the first maximum, and what `mask` says of it."""
    highest: Expr = values[0]
    winner: Expr = const(0, dtype)
    live = mask[0] if mask else None
    for number, value in enumerate(values[1:], start=1):
        better = apply("gt", value, highest)
        winner = apply("select", better, const(number, dtype), winner)
        live = apply("select", better, mask[number], live) if live is not None else None
        highest = apply("max", highest, value)
    return winner, live


def lower_gather(call: LowerCall, index: Sequence[Index]) -> Expr:
    rows, columns = _window_of(call)
    winner = cast(call.inputs[1](index), dtypes.int64)
    i = apply("floordiv", winner, const(columns.window, dtypes.int64))
    j = apply("mod", winner, const(columns.window, dtypes.int64))
    return _element(call.inputs[0], index, i, j, rows, columns, 0)


def _covering(position: Index, s: Span) -> Iterator[tuple[Index, Expr, Expr | None]]:
    """The windows that may cover an image position: their number, the place of the position in
    the window, and whether the window exists and covers it."""
    last, place = divide_index(sum_index(position, as_index(s.before)), s.stride)
    tiled = s.stride == s.window and s.before == 0 and s.after == 0
    for back in range(-(-s.window // s.stride)):
        window = add_index(last, -back)
        inside = add_index(place, back * s.stride)
        exact = tiled and isinstance(s.size, int) and s.size % s.window == 0
        valid = None if exact else _inside(window, s.count)
        if (back + 1) * s.stride > s.window:
            fits = apply("lt", index_expr(inside), const(s.window, dtypes.int64))
            valid = _both(valid, fits)
        yield window, index_expr(inside), valid


def _image_spans(call: LowerCall) -> tuple[Span, Span]:
    attrs = call.attrs
    return pool_spans(attrs["image"], attrs["window"], attrs["strides"], attrs["padding"])


# A place of a sum over windows: their row and column, the place of the position in them, and
# whether they exist and cover it.
Place = tuple[Index, Index, Expr, Expr, "Expr | None"]


def _over_windows(call: LowerCall, index: Sequence[Index], part: Callable[[Place], Expr]) -> Expr:
    """The sum of `part` over all windows that cover an image position."""
    rows, columns = _image_spans(call)
    if _most_covering(rows) * _most_covering(columns) > MOST_UNROLLED:
        return _looped(call, index, part)
    total: Expr | None = None
    for h, i, in_rows in _covering(index[1], rows):
        for w, j, in_columns in _covering(index[2], columns):
            value = part((h, w, i, j, _both(in_rows, in_columns)))
            total = value if total is None else apply("add", total, value)
    assert total is not None
    return total


def _most_covering(s: Span) -> int:
    return -(-s.window // s.stride)


def _looped(call: LowerCall, index: Sequence[Index], part: Callable[[Place], Expr]) -> Expr:
    """The sum over many windows in a loop."""
    rows, columns = _image_spans(call)
    down, across = (_between(1, _most_covering(s), s.count) for s in (rows, columns))
    axis = call.axis(down * across)
    backs = divide_index(as_index(axis), across)
    (h, i, in_rows), (w, j, in_columns) = (
        _window_before(p, b, s) for p, b, s in zip(index[1:3], backs, (rows, columns), strict=True)
    )
    return Reduce("sum", (axis,), part((h, w, i, j, _both(in_rows, in_columns))))


def _between(low: int, high: int, dim: Dim) -> Dim:
    if isinstance(dim, int):
        return min(max(dim, low), high)
    return compound("max", compound("min", dim, high), low)


def _window_before(position: Index, back: Index, s: Span) -> tuple[Index, Expr, Expr]:
    """Counted backwards from the last window that begins before an image position: its number, the
    place of the position in it, and whether it exists and covers the position."""
    begun, _ = divide_index(sum_index(position, as_index(s.before)), s.stride)
    last = apply("min", index_expr(begun), dim_expr(s.count - 1))
    window = apply("sub", last, index_expr(back))
    start = apply("mul", window, const(s.stride, dtypes.int64))
    inside = apply("sub", index_expr(add_index(position, s.before)), start)
    fits = apply("lt", inside, const(s.window, dtypes.int64))
    return window, inside, apply("and", fits, _inside(window, s.count))


def lower_scatter(call: LowerCall, index: Sequence[Index]) -> Expr:
    numbers, width = winner_dtype(call.attrs["window"]), call.attrs["window"][1]

    def part(place: Place) -> Expr:
        h, w, i, j, valid = place
        at = [index[0], h, w, index[3]]
        number = apply("add", apply("mul", i, const(width, dtypes.int64)), j)
        winner = call.inputs[1](at, valid, numbers.max)
        won = apply("eq", winner, cast(number, winner.dtype))
        dy = call.inputs[0](at, valid, 0)
        return apply("select", won, dy, _zero(dy))

    return _over_windows(call, index, part)


def _covered_expr(window: Index, s: Span) -> Expr:
    """How many image elements window number `window` covers, int64."""
    if s.before == 0 and s.after == 0:
        return const(s.window, dtypes.int64)
    start = index_expr(add_index(scale_index(window, s.stride), -s.before))
    stop = apply("min", apply("add", start, const(s.window, dtypes.int64)), dim_expr(s.size))
    return apply("sub", stop, apply("max", start, const(0, dtypes.int64)))


def _share(total: Expr, h: Index, w: Index, rows: Span, columns: Span) -> Expr:
    count = apply("mul", _covered_expr(h, rows), _covered_expr(w, columns))
    return apply("div", total, cast(count, total.dtype))


def lower_avg(call: LowerCall, index: Sequence[Index]) -> Expr:
    if _is_large(call):
        total = _reduced(call, index, "sum", 0)
    else:
        total, *rest = _elements(call, index, 0)
        for value in rest:
            total = apply("add", total, value)
    rows, columns = _window_of(call)
    return _share(total, index[1], index[2], rows, columns)


def lower_avg_grad(call: LowerCall, index: Sequence[Index]) -> Expr:
    rows, columns = _image_spans(call)

    def part(place: Place) -> Expr:
        h, w, _, _, valid = place
        dy = call.inputs[0]([index[0], h, w, index[3]], valid, 0)
        share = _share(dy, h, w, rows, columns)
        return share if valid is None else apply("select", valid, share, _zero(share))

    return _over_windows(call, index, part)
