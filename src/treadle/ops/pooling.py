"""Max and average pooling of NHWC images, and the ops that their gradients are made of.

The gradient of max pooling goes to the first maximum of each window. It is three linear ops:
`max_pool_index` gives each window's winner as its number in the window, `max_pool_scatter` sends
gradients there and `max_pool_gather`, its transpose, reads from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, Reduce, apply, as_index, cast, const
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.families import require_kinds
from treadle.ops.lowering import (
    Access, Compute, LowerCall, add_index, dim_expr, divide_index, index_expr, scale_index,
    sum_index,
)  # fmt: skip
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.softmax import wide
from treadle.ops.windows import (
    Padding, Pair, Span, check_format, check_images, check_windows, cropped, from_nhwc, pair,
    padded, padding_attr, spans, static, tap, to_nhwc,
)  # fmt: skip

_MOST_UNROLLED = 25  # larger windows become loops
_ONES = (1, 1)


def _spans(dims: Sequence[Dim], window: Pair, strides: Pair, padding: Padding) -> tuple[Span, Span]:
    return spans(dims, window, strides, padding, _ONES)


def _infer(x: TensorSpec, *, window: Pair, strides: Pair, padding: Padding) -> TensorSpec:
    require_kinds("fiu", x)
    check_images(x)
    found = _spans(x.dims[1:3], window, strides, padding)
    check_windows(found)
    return TensorSpec((x.dims[0], *(s.count for s in found), x.dims[3]), x.dtype)


def _lowest(dtype: DType) -> Any:
    return float("-inf") if dtype.is_floating else dtype.min


# -- max: NumPy ------------------------------------------------------------------------------------


def _taps(x: NDArray, rows: Span, columns: Span) -> Iterator[NDArray]:
    """The elements of the windows, one window position after the other."""
    for i in range(rows.window):
        for j in range(columns.window):
            yield x[tap(i, j, rows, columns)]


def _framed(x: NDArray, rows: Span, columns: Span) -> NDArray:
    return padded(x, rows, columns, _lowest(dtypes.from_numpy(x.dtype)))


def _eager_max(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = _spans(x.shape[1:3], window, strides, padding)
    taps = _taps(_framed(x, rows, columns), rows, columns)
    highest = next(taps).copy()
    for values in taps:
        np.maximum(highest, values, out=highest)
    return highest


def _eager_index(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = _spans(x.shape[1:3], window, strides, padding)
    taps = _taps(_framed(x, rows, columns), rows, columns)
    highest = next(taps).copy()
    winner = np.zeros(highest.shape, np.int32)
    for number, values in enumerate(taps, start=1):
        winner[values > highest] = number
        np.maximum(highest, values, out=highest)
    return winner


def _eager_scatter(
    dy: NDArray, winner: NDArray, *, image: Pair, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = _spans(image, window, strides, padding)
    framed = padded(np.zeros((dy.shape[0], *image, dy.shape[3]), dy.dtype), rows, columns)
    zero = dy.dtype.type(0)
    for number, place in enumerate(_places(rows, columns)):
        framed[place] += np.where(winner == number, dy, zero)
    return cropped(framed, rows, columns)


def _places(rows: Span, columns: Span) -> Iterator[tuple[slice[Any, Any, Any], ...]]:
    for i in range(rows.window):
        for j in range(columns.window):
            yield tap(i, j, rows, columns)


def _eager_gather(
    x: NDArray, winner: NDArray, *, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = _spans(x.shape[1:3], window, strides, padding)
    picked = np.zeros(winner.shape, x.dtype)
    for number, values in enumerate(_taps(padded(x, rows, columns), rows, columns)):
        np.copyto(picked, values, where=winner == number)
    return picked


# -- as kernel expressions -------------------------------------------------------------------------


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
    return _spans(
        call.specs[0].dims[1:3], attrs["window"], attrs["strides"], attrs["padding"]
    )


def _elements(call: LowerCall, index: Sequence[Index], fill: Any) -> list[Expr]:
    """The elements of a small window, in order."""
    rows, columns = _window_of(call)
    return [
        _element(call.inputs[0], index, as_index(i), as_index(j), rows, columns, fill)
        for i in range(rows.window)
        for j in range(columns.window)
    ]


def _is_large(call: LowerCall) -> bool:
    height, width = call.attrs["window"]
    return bool(height * width > _MOST_UNROLLED)


def _reduced(call: LowerCall, index: Sequence[Index], op: str, fill: Any) -> Expr:
    """A large window reduced in a loop."""
    rows, columns = _window_of(call)
    axis = call.axis(rows.window * columns.window)
    i, j = divide_index(as_index(axis), columns.window)
    value = _element(call.inputs[0], index, i, j, rows, columns, fill)
    return Reduce(op, (axis,), value, call.out.dtype if op == "argmax" else None)


def _lower_max(call: LowerCall, index: Sequence[Index]) -> Expr:
    fill = _lowest(call.out.dtype)
    if _is_large(call):
        return _reduced(call, index, "max", fill)
    highest, *rest = _elements(call, index, fill)
    for value in rest:
        highest = apply("max", highest, value)
    return highest


def _lower_index(call: LowerCall, index: Sequence[Index]) -> Expr:
    fill = _lowest(call.specs[0].dtype)
    if _is_large(call):
        return _reduced(call, index, "argmax", fill)
    highest, *rest = _elements(call, index, fill)
    winner: Expr = const(0, dtypes.int32)
    for number, value in enumerate(rest, start=1):
        better = apply("gt", value, highest)
        winner = apply("select", better, const(number, dtypes.int32), winner)
        highest = apply("max", highest, value)
    return winner


def _lower_gather(call: LowerCall, index: Sequence[Index]) -> Expr:
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
    return _spans(attrs["image"], attrs["window"], attrs["strides"], attrs["padding"])


def _lower_scatter(call: LowerCall, index: Sequence[Index]) -> Expr:
    rows, columns = _image_spans(call)
    total: Expr | None = None
    for h, i, in_rows in _covering(index[1], rows):
        for w, j, in_columns in _covering(index[2], columns):
            at, valid = [index[0], h, w, index[3]], _both(in_rows, in_columns)
            number = apply("add", apply("mul", i, const(columns.window, dtypes.int64)), j)
            won = apply("eq", call.inputs[1](at, valid, -1), cast(number, dtypes.int32))
            dy = call.inputs[0](at, valid, 0)
            part = apply("select", won, dy, _zero(dy))
            total = part if total is None else apply("add", total, part)
    assert total is not None
    return total


# -- max: records ----------------------------------------------------------------------------------


def _infer_index(x: TensorSpec, *, window: Pair, strides: Pair, padding: Padding) -> TensorSpec:
    pooled = _infer(x, window=window, strides=strides, padding=padding)
    return TensorSpec(pooled.dims, dtypes.int32)


def _infer_scatter(
    dy: TensorSpec,
    winner: TensorSpec,
    *,
    image: tuple[Dim, Dim],
    window: Pair,
    strides: Pair,
    padding: Padding,
) -> TensorSpec:
    check_images(dy)
    return TensorSpec((dy.dims[0], *image, dy.dims[3]), dy.dtype)


def _infer_gather(
    x: TensorSpec, winner: TensorSpec, *, window: Pair, strides: Pair, padding: Padding
) -> TensorSpec:
    return _infer(x, window=window, strides=strides, padding=padding)


def _attrs_of(call: OpCall) -> dict[str, Any]:
    return {key: call.attrs[key] for key in ("window", "strides", "padding")}


def _grad_max(call: OpCall, dy: Tensor) -> list[Any]:
    x, attrs = call.inputs[0], _attrs_of(call)
    winner = run(INDEX, x, **attrs)
    return [run(SCATTER, dy, winner, image=tuple(x.dims[1:3]), **attrs)]


def _grad_scatter(call: OpCall, g: Tensor) -> list[Any]:
    return [run(GATHER, g, call.inputs[1], **_attrs_of(call)), None]


def _grad_gather(call: OpCall, dy: Tensor) -> list[Any]:
    x, winner = call.inputs
    return [run(SCATTER, dy, winner, image=tuple(x.dims[1:3]), **_attrs_of(call)), None]


MAX = register(Op("max_pool", _infer, _eager_max, _grad_max, Compute(_lower_max, "reduce")))
INDEX = register(
    Op("max_pool_index", _infer_index, _eager_index, lower=Compute(_lower_index, "reduce"))
)
SCATTER = register(
    Op(
        "max_pool_scatter", _infer_scatter, _eager_scatter, _grad_scatter,
        Compute(_lower_scatter, "gather"),
    )
)  # fmt: skip
GATHER = register(
    Op(
        "max_pool_gather", _infer_gather, _eager_gather, _grad_gather,
        Compute(_lower_gather, "gather"),
    )
)  # fmt: skip


# -- average ---------------------------------------------------------------------------------------


def _covered(s: Span) -> NDArray:
    """How many image elements each window along an axis covers."""
    start = np.arange(static(s.count)) * s.stride - static(s.before)
    covered: NDArray = np.minimum(start + s.window, static(s.size)) - np.maximum(start, 0)
    return covered


def _shares(rows: Span, columns: Span) -> NDArray:
    return (_covered(rows)[:, None] * _covered(columns))[None, :, :, None]


def _eager_avg(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = _spans(x.shape[1:3], window, strides, padding)
    taps = _taps(padded(wide(x), rows, columns), rows, columns)
    total = next(taps).copy()
    for values in taps:
        total += values
    total /= _shares(rows, columns).astype(total.dtype)
    return total.astype(x.dtype, copy=False)


def _eager_avg_grad(
    dy: NDArray, *, image: Pair, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = _spans(image, window, strides, padding)
    values = wide(dy)
    shares = values / _shares(rows, columns).astype(values.dtype)
    framed = padded(np.zeros((dy.shape[0], *image, dy.shape[3]), values.dtype), rows, columns)
    for place in _places(rows, columns):
        framed[place] += shares
    return cropped(framed, rows, columns).astype(dy.dtype, copy=False)


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


def _lower_avg(call: LowerCall, index: Sequence[Index]) -> Expr:
    if _is_large(call):
        total = _reduced(call, index, "sum", 0)
    else:
        total, *rest = _elements(call, index, 0)
        for value in rest:
            total = apply("add", total, value)
    rows, columns = _window_of(call)
    return _share(total, index[1], index[2], rows, columns)


def _lower_avg_grad(call: LowerCall, index: Sequence[Index]) -> Expr:
    rows, columns = _image_spans(call)
    total: Expr | None = None
    for h, _, in_rows in _covering(index[1], rows):
        for w, _, in_columns in _covering(index[2], columns):
            valid = _both(in_rows, in_columns)
            dy = call.inputs[0]([index[0], h, w, index[3]], valid, 0)
            part = _share(dy, h, w, rows, columns)
            if valid is not None:
                part = apply("select", valid, part, _zero(part))
            total = part if total is None else apply("add", total, part)
    assert total is not None
    return total


def _infer_avg(x: TensorSpec, *, window: Pair, strides: Pair, padding: Padding) -> TensorSpec:
    require_kinds("f", x)
    return _infer(x, window=window, strides=strides, padding=padding)


def _infer_avg_grad(
    dy: TensorSpec, *, image: tuple[Dim, Dim], window: Pair, strides: Pair, padding: Padding
) -> TensorSpec:
    check_images(dy)
    return TensorSpec((dy.dims[0], *image, dy.dims[3]), dy.dtype)


def _grad_avg(call: OpCall, dy: Tensor) -> list[Any]:
    return [run(AVG_GRAD, dy, image=tuple(call.inputs[0].dims[1:3]), **_attrs_of(call))]


AVG = register(Op("avg_pool", _infer_avg, _eager_avg, _grad_avg, Compute(_lower_avg, "reduce")))
AVG_GRAD = register(
    Op(
        "avg_pool_grad", _infer_avg_grad, _eager_avg_grad,
        lambda call, g: [run(AVG, g, **_attrs_of(call))], Compute(_lower_avg_grad, "gather"),
    )
)  # fmt: skip


# -- public functions ------------------------------------------------------------------------------


def _pool(op: Op, input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any) -> Tensor:
    data_format = check_format(data_format)
    x = to_nhwc(convert_to_tensor(input), data_format)
    window = pair(ksize, "ksize", data_format)
    steps = pair(ksize if strides is None else strides, "strides", data_format)
    pads = padding_attr(padding, data_format)
    return from_nhwc(run(op, x, window=window, strides=steps, padding=pads), data_format)


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The maximum of each window; its gradient goes to the window's first maximum.

    Args:
        input: [batch, height, width, channels], or NCHW by `data_format`.
        ksize: the window: an int or a list of 1, 2 or 4.
        strides: as ksize; None takes ksize.
        padding: "SAME", "VALID" or four (before, after) pairs; padding never wins.
        data_format: "NHWC" or "NCHW".
        name: accepted for TensorFlow programs.
    """
    return _pool(MAX, input, ksize, strides, padding, data_format)


def avg_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window over the elements that lie in the image; arguments as max_pool2d."""
    return _pool(AVG, input, ksize, strides, padding, data_format)


max_pool, avg_pool = max_pool2d, avg_pool2d
