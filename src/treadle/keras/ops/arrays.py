"""`keras.ops`: arrays made, joined, split, moved and looked up."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import sparse
from treadle.keras.config import floatx
from treadle.keras.ops.conversion import axes_of, by_numpy, tensor, tensors
from treadle.keras.ops.elementwise import positions
from treadle.keras.ops.operations import operation
from treadle.keras.promotion import dtype_of, result_type, standardize_dtype

_operation = functools.partial(operation, "numpy")


# -- making ----------------------------------------------------------------------------------------


@_operation("x")
def array(x: Any, dtype: Any = None) -> Any:
    """A tensor of values."""
    return tensor(x, dtype)


@_operation("start", "stop", "step")
def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """The numbers from start, or 0, to before stop."""
    if dtype is None:
        dtype = result_type(*(dtype_of(v) for v in (start, stop, step) if v is not None))
    kind = standardize_dtype(dtype)
    first, end = (0, start) if stop is None else (start, stop)
    inner = kind if kind in ("int32", "int64", "float32", "float64") else "float32"
    return td.cast(td.range(first, end, 1 if step is None else step, dtype=inner), kind)


def ones(shape: Any, dtype: Any = None) -> Any:
    """A tensor of ones."""
    return td.ones(shape, dtype=standardize_dtype(dtype))


def zeros(shape: Any, dtype: Any = None) -> Any:
    """A tensor of zeros."""
    return td.zeros(shape, dtype=standardize_dtype(dtype))


def empty(shape: Any, dtype: Any = None) -> Any:
    """A tensor of zeros, as there are no tensors without values."""
    return zeros(shape, dtype)


@_operation("fill_value")
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor whose elements are one value, or those of a smaller tensor."""
    return td.broadcast_to(tensor(fill_value, standardize_dtype(dtype)), shape)


def _like(x: Any, dtype: Any) -> Any:
    return tensor(x).dtype if dtype is None else standardize_dtype(dtype)


@_operation("x")
def ones_like(x: Any, dtype: Any = None) -> Any:
    """Ones in the shape of x."""
    return td.ones_like(tensor(x), _like(x, dtype))


@_operation("x")
def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of x."""
    return td.zeros_like(tensor(x), _like(x, dtype))


@_operation("x")
def empty_like(x: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of x."""
    return td.zeros_like(tensor(x), _like(x, dtype))


@_operation("x", "fill_value")
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One value in the shape of x."""
    x = tensor(x)
    return td.broadcast_to(tensor(fill_value, _like(x, dtype)), td.shape(x))


def _whole(value: Any, name: str) -> Any:
    """A number of rows or columns, an int or a tensor.

    Raises:
        TypeError: it is a number with a fraction, or none.
    """
    if isinstance(value, td.Tensor) and value.dtype.is_integer:
        return td.cast(value, td.int32)
    if not isinstance(value, int | np.integer):
        raise TypeError(f"Argument `{name}` must be an integer or an integer tensor, got {value!r}")
    return int(value)


def _above(rows: Any, columns: Any) -> td.Tensor:
    """The column number less the row's, for each element of a matrix."""
    return td.range(columns)[None, :] - td.range(rows)[:, None]


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Any:
    """A matrix with ones on the diagonal k places above the main one."""
    rows, columns = _whole(N, "N"), _whole(N if M is None else M, "M")
    return td.cast(td.equal(_above(rows, columns), _whole(k, "k")), standardize_dtype(dtype))


def identity(n: Any, dtype: Any = None) -> Any:
    """A square matrix with ones on the main diagonal."""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Any:
    """A matrix with ones on the diagonal k places above the main one and below it."""
    rows, columns = _whole(N, "N"), _whole(N if M is None else M, "M")
    return td.cast(_above(rows, columns) <= _whole(k, "k"), standardize_dtype(dtype))


@_operation("start", "stop")
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """Numbers at one distance from start to stop; with `retstep` also that distance.

    Raises:
        ValueError: `num` is negative.
    """
    if num < 0:
        raise ValueError(f"`num` must be a non-negative integer. Received: num={num}")
    if dtype is None:
        kind = result_type(dtype_of(start), dtype_of(stop), float)
    else:
        kind = standardize_dtype(dtype)
    inner = kind if td.as_dtype(kind).is_floating else floatx()
    first, last = tensor(start, kind), tensor(stop, kind)
    first, last = td.cast(first, inner), td.cast(last, inner)
    parts = num - 1 if endpoint else num
    step = (last - first) / tensor(parts, inner) if parts > 0 else td.constant(math.nan, inner)
    end = last if endpoint or num <= 1 else last - step
    if num == 0:
        shape = td.broadcast_static_shape(first.shape, last.shape).as_list()
        shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 0)
        found = td.zeros(shape, inner)
    else:
        found = td.linspace(first, end, num, axis=axis)
    found = td.cast(found if inner == kind else td.math.floor(found), kind)
    return (found, step) if retstep else found


@_operation("start", "stop")
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10, dtype: Any = None,
    axis: int = 0,
) -> Any:  # fmt: skip
    """`base` to the powers from start to stop."""
    powers = linspace(start, stop, num, endpoint, dtype=dtype, axis=axis)
    return td.pow(td.cast(base, powers.dtype), powers)


@_operation("start", "stop")
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers from start to stop, each the one before it times a factor."""
    first, last = tensor(start), tensor(stop)
    kind = standardize_dtype(dtype)
    tens = [td.math.log(td.cast(td.abs(x), kind)) / td.constant(math.log(10.0), kind)
            for x in (first, last)]  # fmt: skip
    found = logspace(tens[0], tens[1], num, endpoint, 10, dtype, axis)
    return found * td.cast(td.sign(first), found.dtype)


def bartlett(x: Any) -> Any:
    """A triangle of so many numbers."""
    return td.constant(np.bartlett(int(x)), floatx())


def blackman(x: Any) -> Any:
    """Blackman's window of so many numbers."""
    return td.constant(np.blackman(int(x)), floatx())


def hamming(x: Any) -> Any:
    """Hamming's window of so many numbers."""
    return td.constant(np.hamming(int(x)), "float32")


def hanning(x: Any) -> Any:
    """Hann's window of so many numbers."""
    return td.constant(np.hanning(int(x)), "float32")


def kaiser(x: Any, beta: Any) -> Any:
    """Kaiser's window of so many numbers."""
    return td.constant(np.kaiser(int(x), float(beta)), "float32")


# -- shapes ----------------------------------------------------------------------------------------


@_operation("x")
def reshape(x: Any, newshape: Any) -> Any:
    """The elements in another shape; one size may be -1, which is what is left.

    Raises:
        ValueError: two sizes are -1, or one is no size.
    """
    if not isinstance(newshape, td.Tensor):
        newshape = tuple(newshape) if hasattr(newshape, "__iter__") else (newshape,)
        known = [size for size in newshape if isinstance(size, int)]
        if known.count(-1) > 1 or any(size < -1 for size in known) or None in newshape:
            raise ValueError(
                "reshape: each size is a non-negative integer, or -1 for one of them. Received: "
                f"newshape={newshape}"
            )  # fmt: skip
    return sparse.reshape(tensor(x), newshape)


@_operation("x")
def ravel(x: Any) -> Any:
    """All elements along one axis."""
    return td.reshape(tensor(x), [-1])


@_operation("x")
def expand_dims(x: Any, axis: Any) -> Any:
    """New axes of size 1, at these places of the result."""
    x = tensor(x)
    more = 1 if isinstance(axis, int) else len(axis)
    for one in sorted(axes_of(axis, len(x.shape) + more)):
        x = sparse.expand_dims(x, one)
    return x


@_operation("x")
def squeeze(x: Any, axis: Any = None) -> Any:
    """Without axes of size 1: all of them, or those that are named.

    Raises:
        ValueError: a named axis has another size.
    """
    x = tensor(x)
    if axis is None:
        return td.squeeze(x)
    named = axes_of(axis, len(x.shape))
    for one in named:
        if x.shape[one] != 1:
            raise ValueError(f"Cannot squeeze axis={one}, because the dimension is not 1.")
    return td.squeeze(x, named) if named else x


@_operation("x")
def transpose(x: Any, axes: Any = None) -> Any:
    """The axes in another order, reversed when omitted.

    Raises:
        ValueError: an axis is named twice.
    """
    x = tensor(x)
    if not axes:
        return sparse.transpose(x)
    order = axes_of(axes, len(x.shape))
    if len({*order}) != len(order):
        raise ValueError(
            f"`axes` must be a valid permutation (no duplicates). Received: axes={list(axes)} for "
            f"input of rank {len(x.shape)}."
        )
    return sparse.transpose(x, order)


@_operation("x")
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    x = tensor(x)
    first, second = axes_of((axis1, axis2), len(x.shape))
    order = [*range(len(x.shape))]
    order[first], order[second] = second, first
    return td.transpose(x, order)


def moved(x: td.Tensor, source: Any, destination: Any) -> td.Tensor:
    """A tensor with axes moved to other places."""
    rank = len(x.shape)
    start, end = axes_of(source, rank), axes_of(destination, rank)
    if len(start) != len(end):
        raise ValueError(
            "Inconsistent number of `source` and `destination`. Received: "
            f"source={source}, destination={destination}"
        )
    order = [axis for axis in range(rank) if axis not in start]
    for place, axis in sorted(zip(end, start, strict=True)):
        order.insert(place, axis)
    return td.transpose(x, order)


@_operation("x")
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places; the others keep their order."""
    return moved(tensor(x), source, destination)


@_operation("x")
def broadcast_to(x: Any, shape: Any) -> Any:
    """The elements repeated to a larger shape."""
    return td.broadcast_to(tensor(x), shape)


@_operation("x")
def flip(x: Any, axis: Any = None) -> Any:
    """The elements along axes, or along all, in reversed order."""
    x = tensor(x)
    rank = len(x.shape)
    return td.reverse(x, [*range(rank)] if axis is None else axes_of(axis, rank))


@_operation("x")
def fliplr(x: Any) -> Any:
    """The columns in reversed order."""
    return td.reverse(tensor(x), [1])


@_operation("x")
def flipud(x: Any) -> Any:
    """The rows in reversed order."""
    return td.reverse(tensor(x), [0])


@_operation("array")
def rot90(array: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Turned by k quarter turns from the first to the second axis.

    Raises:
        ValueError: there are fewer than two axes, or the same one is named twice.
    """
    x = tensor(array)
    if len(x.shape) < 2:
        raise ValueError(
            f"Input array must have at least 2 dimensions. Received: array.ndim={len(x.shape)}"
        )
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    return by_numpy(np.rot90, x, k, tuple(axes))


@_operation("x")
def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved along axes, the last ones to the front."""
    x = tensor(x)
    if axis is None:
        return td.reshape(td.roll(td.reshape(x, [-1]), shift, 0), td.shape(x))
    shifts = [shift] * len(axis) if isinstance(shift, int) and not isinstance(axis, int) else shift
    return td.roll(x, shifts, axis)


@_operation("x")
def view(x: Any, dtype: Any = None) -> Any:
    """The bytes as elements of another dtype; the last axis grows or shrinks.

    Raises:
        ValueError: the bytes along the last axis are no whole number of elements.
    """
    x = tensor(x)
    old, new = x.dtype, td.as_dtype(standardize_dtype(dtype or x.dtype))
    if old.size == new.size:
        return td.bitcast(x, new)
    last = x.shape[-1] if len(x.shape) else None
    if last is None or last * old.size % new.size:
        raise ValueError(
            f"Cannot view array of shape {x.shape} and dtype {old.name} as dtype {new.name} "
            "because the total number of bytes is not divisible by the new itemsize."
        )
    front = [*td.unstack(td.shape(x))[:-1]] if None in x.shape else x.shape.as_list()[:-1]
    if old.size > new.size:
        return td.reshape(td.bitcast(x, new), [*front, last * (old.size // new.size)])
    parts = new.size // old.size
    return td.bitcast(td.reshape(x, [*front, last // parts, parts]), new)


@_operation("x")
def ndim(x: Any) -> Any:
    """The number of axes."""
    return len(tensor(x).shape)


@_operation("x")
def size(x: Any) -> Any:
    """The number of elements."""
    return td.size(tensor(x))


# -- joining and splitting -------------------------------------------------------------------------


@_operation("xs")
def concatenate(xs: Any, axis: int = 0) -> Any:
    """The tensors one after the other along the axis."""
    return sparse.concat(tensors(*xs), axis)


@_operation("x1", "x2")
def append(x1: Any, x2: Any, axis: int | None = None) -> Any:
    """x2 after x1 along the axis; all their elements in a row where none is given."""
    a, b = tensors(x1, x2)
    if axis is None:
        a, b, axis = td.reshape(a, [-1]), td.reshape(b, [-1]), 0
    return td.concat([a, b], axis)


@_operation("x")
def stack(x: Any, axis: int = 0) -> Any:
    """The tensors one after the other along a new axis."""
    return td.stack(tensors(*x), axis)


@_operation("xs")
def hstack(xs: Any) -> Any:
    """The tensors side by side: along the second axis, of vectors the first."""
    rows = tensors(*xs)
    return td.concat(rows, 0 if len(rows[0].shape) == 1 else 1)


@_operation("xs")
def vstack(xs: Any) -> Any:
    """The tensors below one another: along the first axis."""
    return td.concat(tensors(*xs), 0)


@_operation("xs")
def dstack(xs: Any) -> Any:
    """The tensors one behind the other: along the third axis."""
    layers = [
        x if len(x.shape) > 2 else x[:, :, None] if len(x.shape) == 2
        else td.reshape(x, [1, -1, 1])
        for x in tensors(*xs)
    ]  # fmt: skip
    return td.concat(layers, 2)


def _split(x: Any, indices_or_sections: Any, axis: int) -> list[Any]:
    x = tensor(x)
    if isinstance(indices_or_sections, int):
        return list(td.split(x, indices_or_sections, axis))
    ends = [int(i) for i in np.asarray(indices_or_sections)]
    (at,) = axes_of(axis, len(x.shape))
    front = (slice(None),) * at
    parts = []
    for start, end in zip([0, *ends], [*ends, None], strict=True):
        part = x[(*front, slice(start, end))]
        if x.shape[at] is None and end is not None:  # the size is known all the same
            shape = part.shape.as_list()
            shape[at] = end - start
            part = td.ensure_shape(part, shape)
        parts.append(part)
    return parts


@_operation("x")
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """So many equal parts along the axis, or the parts between positions."""
    return _split(x, indices_or_sections, axis)


@_operation("x")
def array_split(x: Any, indices_or_sections: int, axis: int = 0) -> Any:
    """So many parts along the axis, whose sizes differ by one at most.

    Raises:
        TypeError: an argument is no int.
        ValueError: there are no parts.
    """
    if not isinstance(indices_or_sections, int) or not isinstance(axis, int):
        raise TypeError("array_split: `indices_or_sections` and `axis` must be of type `int`")
    if indices_or_sections <= 0:
        raise ValueError(
            "Argument `indices_or_sections` must be a positive integer. Received: "
            f"indices_or_sections={indices_or_sections}"
        )
    x = tensor(x)
    count = x.shape[axis]
    if count is not None:
        whole, more = divmod(count, indices_or_sections)
        sizes = [whole + 1] * more + [whole] * (indices_or_sections - more)
        return list(td.split(x, sizes, axis))
    count = td.shape(x)[axis]
    whole, more = count // indices_or_sections, count % indices_or_sections
    ends = [i * whole + td.minimum(i, more) for i in range(indices_or_sections + 1)]
    front = (slice(None),) * axes_of(axis, len(x.shape))[0]
    return [x[(*front, slice(*ends[i : i + 2]))] for i in range(indices_or_sections)]


@_operation("x")
def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """Parts along the second axis, of a vector the first."""
    x = tensor(x)
    return _split(x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


@_operation("x")
def vsplit(x: Any, indices_or_sections: Any) -> Any:
    """Parts along the first axis."""
    return _split(x, indices_or_sections, 0)


@_operation("x")
def dsplit(x: Any, indices_or_sections: Any) -> Any:
    """Parts along the third axis."""
    return _split(x, indices_or_sections, 2)


@_operation("x")
def tile(x: Any, repeats: Any) -> Any:
    """Copies side by side along axes."""
    x = tensor(x)
    times = [repeats] if isinstance(repeats, int) else list(repeats)
    times = [1] * (len(x.shape) - len(times)) + times
    for _ in range(len(times) - len(x.shape)):
        x = td.expand_dims(x, 0)
    return td.tile(x, td.stack(times) if any(isinstance(t, td.Tensor) for t in times) else times)


@_operation("x")
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element several times in a row."""
    return td.repeat(tensor(x), repeats, axis)


@_operation("x")
def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Any:
    """Margins around a tensor.

    Args:
        pad_width: (before, after) of each axis, or one such pair or one int for all.
        mode: "constant", "reflect" or "symmetric".
        constant_values: of margins in the mode "constant"; 0 when omitted.

    Raises:
        ValueError: `constant_values` with another mode.
    """
    x = tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    known = pad_width
    if isinstance(pad_width, td.Tensor):
        known = td.get_static_value(pad_width)
    widths: Any = pad_width  # of a tensor that only a run tells
    if known is not None:
        widths = np.broadcast_to(np.asarray(known), (len(x.shape), 2)).tolist()
    value = 0 if constant_values is None else constant_values
    if x.dtype == td.bool and mode == "constant":
        return td.cast(td.pad(td.cast(x, td.int8), widths, "CONSTANT", int(value)), td.bool)
    if mode != "constant":
        return td.pad(x, widths, mode.upper())
    return td.pad(x, widths, "CONSTANT", tensor(value, x.dtype))


@_operation("x")
def meshgrid(*x: Any, indexing: str = "xy") -> Any:
    """The coordinates of the points of a grid, a tensor for each axis."""
    return td.meshgrid(*map(tensor, x), indexing=indexing)


@_operation("a")
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """The differences of neighbours along the axis, taken n times.

    Raises:
        ValueError: n is negative, or there is no axis.
    """
    x = tensor(a)
    if n < 0:
        raise ValueError(f"Order `n` must be non-negative. Received n={n}")
    if n and not len(x.shape):
        raise ValueError(f"`diff` requires input that is at least one dimensional. Received: a={a}")
    for _ in range(n):
        front = (slice(None),) * axes_of(axis, len(x.shape))[0]
        after, before = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = td.not_equal(after, before) if x.dtype == td.bool else after - before
    return x


@_operation("x")
def sort(x: Any, axis: int | None = -1) -> Any:
    """The elements in ascending order."""
    x = tensor(x)
    if axis is None:
        x, axis = td.reshape(x, [-1]), 0
    if x.dtype == td.bool:
        return td.cast(td.sort(td.cast(x, td.int8), axis), td.bool)
    return td.sort(x, axis)


@_operation("x")
def argsort(x: Any, axis: int | None = -1) -> Any:
    """The positions of the elements in ascending order, as int32."""
    x = tensor(x)
    x = td.cast(x, td.uint8) if x.dtype == td.bool else x
    if not len(x.shape):
        return td.constant([0], td.int32)
    if axis is None:
        x, axis = td.reshape(x, [-1]), 0
    return td.argsort(x, axis)


@_operation("x")
def argpartition(x: Any, kth: int, axis: int | None = -1) -> Any:
    """Positions so that those of lesser elements than the kth one come first, as int32.

    Raises:
        ValueError: `kth` is no int.
    """
    if not isinstance(kth, int):
        raise ValueError(f"kth must be an integer. Received: kth={kth}")
    return argsort(tensor(x), axis)


# -- looking up ------------------------------------------------------------------------------------


@_operation("x", "key")
def get_item(x: Any, key: Any) -> Any:
    """``x[key]``."""
    return x[key] if isinstance(x, td.Tensor | td.Variable) else tensor(x)[key]


@_operation("x", "indices")
def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """The elements at positions along the axis, negative ones from the end."""
    x = tensor(x)
    if axis is None:
        x, axis = td.reshape(x, [-1]), 0
    places = tensor(indices)
    places = td.cast(places, td.int32) if places.dtype.size < 4 else places
    if places.dtype.is_floating:
        places = td.cast(places, td.int32)
    count = td.cast(td.shape(x)[axis], places.dtype)
    return td.gather(x, td.where(places < 0, places + count, places), axis=axis)


@_operation("x", "indices")
def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Any:
    """For each position of `indices` the element there, in the same row.

    Raises:
        ValueError: no axis is given and the indices are no vector.
    """
    x, places = tensor(x), tensor(indices, td.int64)
    if axis is None:
        if len(places.shape) != 1:
            raise ValueError(
                f"`indices` must be 1D if axis=None. Received: indices.shape={places.shape}"
            )
        x, axis = td.reshape(x, [-1]), 0
    (at,) = axes_of(axis, len(x.shape))
    others = [v.shape[:at] + [1] + v.shape[at + 1 :] for v in (x, places)]
    outer: Any = td.broadcast_static_shape(*others)
    if not outer.is_fully_defined():
        shapes = [td.shape(v) for v in (x, places)]
        run = td.broadcast_dynamic_shape(
            *(td.concat([s[:at], [1], s[at + 1 :]], 0) for s in shapes)
        )
        outer = [run[i] if size is None else size for i, size in enumerate(outer)]
    x, places = (
        td.broadcast_to(v, td.stack([*outer[:at], td.shape(v)[at], *outer[at + 1 :]]))
        if x.shape.as_list() != places.shape.as_list() else v
        for v in (x, places)
    )  # fmt: skip
    return by_numpy(np.take_along_axis, x, places, at)


@_operation("x")
def nonzero(x: Any) -> Any:
    """The indices of elements that are not 0, an int32 vector for each axis."""
    return positions(td.cast(tensor(x), td.bool))


@_operation("indices")
def unravel_index(indices: Any, shape: Any) -> Any:
    """Positions in a row as indices of an array of that shape, a tensor for each axis.

    Raises:
        ValueError: a size is not known.
    """
    if None in shape:
        raise ValueError(f"`shape` argument cannot contain `None`. Received: shape={shape}")
    places = tensor(indices)
    total = td.constant(math.prod(shape), places.dtype)
    places = td.where(places < 0, places + total, places)
    found = []
    for count in reversed(tuple(shape)):
        count = td.constant(count, places.dtype)
        found.append(td.math.floormod(places, count))
        places = td.math.floordiv(places, count)
    return tuple(reversed(found))


@_operation("sorted_sequence", "values", name="SearchSorted")
def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Any:
    """Where in a sorted vector values belong.

    Raises:
        ValueError: it is no vector.
    """
    edges = tensor(sorted_sequence)
    if len(edges.shape) != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use "
            "`keras.ops.vectorized_map` to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={edges.shape}"
        )
    values = tensor(values, edges.dtype)
    kind = td.int64 if edges.shape[0] is None else td.int32
    found = td.searchsorted(edges, td.reshape(values, [-1]), side=side, out_type=kind)
    return td.reshape(found, td.shape(values))


@_operation("x1", "x2", name="IsIn")
def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether elements are among those of x2; with `invert` whether they are not."""
    a, b = tensors(x1, x2)
    found = td.reduce_any(td.equal(a[..., None], td.reshape(b, [-1])), -1)
    return ~found if invert else found


@_operation("x")
def unique(
    x: Any, sorted: bool = True, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """The different elements, or along an axis the different slices.

    Args:
        sorted: accepted; they are always in ascending order.
        return_index: also where each comes first.
        return_inverse: also which of them each element is.
        return_counts: also how often each comes.
        size: so many of them, filled up with `fill_value`, 0 when omitted.
    """
    x = tensor(x)
    flags = {
        "return_index": return_index, "return_inverse": return_inverse,
        "return_counts": return_counts,
    }  # fmt: skip
    found = by_numpy(np.unique, x, axis=axis, equal_nan=False, **flags)
    parts = list(found) if isinstance(found, list | tuple) else [found]
    names = [name for name, wanted in flags.items() if wanted]
    parts = [parts[0], *(td.cast(part, td.int32) for part in parts[1:])]
    if size is not None:
        for place, name in enumerate(["values", *names]):
            if name == "return_inverse":
                continue
            value = {"values": fill_value or 0, "return_index": 1}.get(name, 0)
            parts[place] = _to_size(parts[place], size, axis or 0 if not place else 0, value)
    if return_inverse:
        place = 1 + names.index("return_inverse")
        shape = td.shape(x) if axis is None else [-1]
        parts[place] = td.reshape(parts[place], shape)
    return tuple(parts) if len(parts) > 1 else parts[0]


def _to_size(x: td.Tensor, size: int, axis: int, value: Any) -> td.Tensor:
    """So many elements along an axis, the rest being left out or `value` added."""
    axis %= len(x.shape)
    kept = x[(*(slice(None),) * axis, slice(None, size))]
    widths = [[0, 0] for _ in x.shape]
    shape = td.shape(kept)
    paddings = td.stack([
        td.stack([0, size - shape[i] if i == axis else 0]) for i, _ in enumerate(widths)
    ])  # fmt: skip
    found = td.pad(kept, paddings, constant_values=tensor(value, x.dtype))
    return td.ensure_shape(found, [size if i == axis else d for i, d in enumerate(x.shape)])


# -- diagonals -------------------------------------------------------------------------------------


@_operation("x")
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal of matrices, along the last axis."""
    return by_numpy(np.diagonal, tensor(x), offset, axis1, axis2)


@_operation("x")
def diag(x: Any, k: int = 0) -> Any:
    """A matrix with a vector on a diagonal, or a matrix's diagonal.

    Raises:
        ValueError: it is neither a vector nor a matrix.
    """
    x = tensor(x)
    if len(x.shape) not in (1, 2):
        raise ValueError(f"`x` must be 1d or 2d. Received: x.shape={x.shape}")
    return by_numpy(np.diag, x, k)


@_operation("x")
def diagflat(x: Any, k: int = 0) -> Any:
    """A matrix with all elements on a diagonal."""
    return by_numpy(np.diag, td.reshape(tensor(x), [-1]), k)


def _below(x: Any, keep: Callable[[Any], Any]) -> td.Tensor:
    """The elements of matrices whose column number less the row's is one to be kept."""
    x = tensor(x)
    if len(x.shape) < 2:
        raise ValueError(f"A matrix is needed, got a tensor of shape {x.shape}")
    above = _above(td.shape(x)[-2], td.shape(x)[-1])
    return td.where(keep(above), x, td.zeros_like(x))


@_operation("x")
def tril(x: Any, k: Any = 0) -> Any:
    """Matrices with zeros above the diagonal k places above the main one."""
    return _below(x, lambda above: above <= k)


@_operation("x")
def triu(x: Any, k: Any = 0) -> Any:
    """Matrices with zeros below the diagonal k places above the main one."""
    return _below(x, lambda above: above >= k)


@_operation("x")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element, in rows."""
    x = tensor(x)
    count = td.shape(x)[0] if N is None and x.shape[0] is None else x.shape[0] if N is None else N
    kind = result_type(x.dtype, "float32")
    powers = td.range(count) if increasing else td.range(count - 1, -1, -1)
    found = td.pow(td.cast(x, kind)[..., None], td.cast(powers, kind))
    return td.cast(found, result_type(x.dtype))
