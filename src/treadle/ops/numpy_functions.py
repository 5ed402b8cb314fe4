"""NumPy's functions on tensors that build, move, choose and multiply, with NumPy's signatures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import SymbolicDim, broadcast
from treadle.core.tensor import Tensor
from treadle.ops import (
    arithmetic,
    creation,
    elementwise,
    joining,
    linalg,
    logic,
    reduction,
    selection,
    shaping,
    slicing,
    sorting,
)
from treadle.ops.axes import normalize_axes, normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.casting import cast
from treadle.ops.dims import dims_tensor
from treadle.ops.numpy_dtypes import as_array, floating, is_weak, promoted, result_dtype, to
from treadle.ops.numpy_reductions import flat
from treadle.ops.numpy_ufuncs import matmul, truth
from treadle.ops.shaping import reshape_to

# -- shapes --------------------------------------------------------------------------------------


def shape(a: Any) -> tuple[Any, ...]:
    """Ints, and scalar tensors for dims that only a run can tell."""
    dims = as_array(a).dims
    return tuple(d if isinstance(d, int) else dims_tensor(d, dtypes.int32) for d in dims)


def size(a: Any, axis: Any = None) -> Any:
    x = as_array(a)
    dims = [x.dims[i] for i in normalize_axes(axis, x.ndim)]
    if any(isinstance(d, SymbolicDim) for d in dims):
        return dims_tensor(math.prod(dims), dtypes.int32)
    return math.prod(dims)


def ndim(a: Any) -> int:
    return as_array(a).ndim


def reshape(a: Any, shape: Any = None, *, newshape: Any = None) -> Tensor:
    return shaping.reshape(as_array(a), newshape if shape is None else shape)


def ravel(a: Any) -> Tensor:
    return flat(as_array(a))


def transpose(a: Any, axes: Any = None) -> Tensor:
    return shaping.transpose(as_array(a), axes)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    x = as_array(a)
    order = list(range(x.ndim))
    i, j = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    order[i], order[j] = order[j], order[i]
    return shaping.transpose(x, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    x = as_array(a)
    taken = [normalize_axis(i, x.ndim) for i in np.atleast_1d(source)]
    places = [normalize_axis(i, x.ndim) for i in np.atleast_1d(destination)]
    order = [i for i in range(x.ndim) if i not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return shaping.transpose(x, order)


def expand_dims(a: Any, axis: Any) -> Tensor:
    x = as_array(a)
    rank = x.ndim + np.size(axis)
    places = {normalize_axis(i, rank) for i in np.atleast_1d(axis)}
    dims = iter(x.dims)
    return reshape_to(x, tuple(1 if i in places else next(dims) for i in range(rank)))


def squeeze(a: Any, axis: Any = None) -> Tensor:
    return shaping.squeeze(as_array(a), axis)


def atleast_1d(*arrays: Any) -> Any:
    return _each(arrays, lambda x: x if x.ndim else reshape_to(x, (1,)))


def atleast_2d(*arrays: Any) -> Any:
    return _each(arrays, lambda x: reshape_to(x, (1,) * (2 - x.ndim) + x.dims))


def atleast_3d(*arrays: Any) -> Any:
    def cube(x: Tensor) -> Tensor:
        dims = (1, *x.dims, 1) if x.ndim == 1 else x.dims + (1,) * (3 - x.ndim)
        return reshape_to(x, dims)

    return _each(arrays, cube)


def _each(arrays: Sequence[Any], fn: Any) -> Any:
    found = tuple(fn(as_array(x)) for x in arrays)
    return found[0] if len(found) == 1 else found


def broadcast_to(array: Any, shape: Any) -> Tensor:
    return shaping.broadcast_to(as_array(array), shape)


def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    arrays = [as_array(x) for x in args]
    dims = broadcast(*(x.dims for x in arrays))
    return tuple(broadcast_dims(x, dims) for x in arrays)


def flip(m: Any, axis: Any = None) -> Tensor:
    x = as_array(m)
    return shaping.reverse(x, list(normalize_axes(axis, x.ndim)))


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    x = as_array(a)
    if axis is None:
        return reshape_to(joining.roll(flat(x), shift, 0), x.dims)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    return joining.roll(x, shifts.tolist(), axes.tolist())


def tile(A: Any, reps: Any) -> Tensor:
    x, counts = as_array(A), np.atleast_1d(reps).tolist()
    rank = max(x.ndim, len(counts))
    wide = reshape_to(x, (1,) * (rank - x.ndim) + x.dims)
    return shaping.tile(wide, [1] * (rank - len(counts)) + counts)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    return joining.repeat(as_array(a), repeats, axis)


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    x = as_array(array)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    return slicing.pad(x, widths, mode.upper(), constant_values)


# -- joining and splitting -----------------------------------------------------------------------


def concatenate(arrays: Any, axis: Any = 0, *, dtype: Any = None) -> Tensor:
    parts = _together(arrays, dtype)
    if axis is None:
        return joining.concat([flat(p) for p in parts], 0)
    return joining.concat(parts, axis)


def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Tensor:
    return joining.stack(_together(arrays, dtype), axis)


def _together(arrays: Any, dtype: Any = None) -> list[Tensor]:
    parts = [as_array(a) for a in arrays]
    return promoted(parts) if dtype is None else [cast(p, dtype) for p in parts]


def vstack(tup: Any, *, dtype: Any = None) -> Tensor:
    return joining.concat([atleast_2d(a) for a in _together(tup, dtype)], 0)


def hstack(tup: Any, *, dtype: Any = None) -> Tensor:
    parts = [atleast_1d(a) for a in _together(tup, dtype)]
    return joining.concat(parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tup: Any) -> Tensor:
    return joining.concat([atleast_3d(a) for a in _together(tup)], 2)


def column_stack(tup: Any) -> Tensor:
    parts = [reshape_to(a, (*a.dims, 1)) if a.ndim == 1 else a for a in _together(tup)]
    return joining.concat(parts, 1)


def append(arr: Any, values: Any, axis: Any = None) -> Tensor:
    return concatenate([arr, values], axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x = as_array(ary)
    if isinstance(indices_or_sections, int | np.integer):
        return joining.split(x, int(indices_or_sections), axis)
    return _cut_at(x, list(indices_or_sections), axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x = as_array(ary)
    if not isinstance(indices_or_sections, int | np.integer):
        return _cut_at(x, list(indices_or_sections), axis)
    count, length = int(indices_or_sections), x.dims[normalize_axis(axis, x.ndim)]
    if not isinstance(length, int):
        raise ValueError(f"np.array_split needs an axis of known size{at(user_origin())}")
    each, extra = divmod(length, count)
    return joining.split(x, [each + 1] * extra + [each] * (count - extra), axis)


def _cut_at(x: Tensor, places: list[Any], axis: int) -> list[Tensor]:
    before = (slice(None),) * normalize_axis(axis, x.ndim)
    return [
        x[(*before, slice(a, b))] for a, b in zip([None, *places], [*places, None], strict=True)
    ]


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    return split(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    return split(ary, indices_or_sections, 1 if as_array(ary).ndim > 1 else 0)


# -- making --------------------------------------------------------------------------------------


def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    return creation.zeros_like(as_array(a), dtype)


def ones_like(a: Any, dtype: Any = None) -> Tensor:
    return creation.ones_like(as_array(a), dtype)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    x = as_array(a)
    return broadcast_dims(to(fill_value, dtype or x.dtype), x.dims)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    wanted = result_dtype(start, stop)
    wanted = wanted if wanted.is_floating or wanted.is_complex else dtypes.float64
    first, last = to(start, wanted), to(stop, wanted)
    first, last = broadcast_arrays(first, last)
    parts = num - 1 if endpoint else num
    step = (last - first) / to(float(max(parts, 1)), wanted)
    if endpoint and num > 1:
        result = creation.linspace(first, last, num, axis=axis)
    else:
        place = normalize_axis(axis, first.ndim + 1)
        dims = tuple(num if i == place else 1 for i in range(first.ndim + 1))
        steps = reshape_to(to(np.arange(num), wanted), dims)
        result = expand_dims(first, place) + steps * expand_dims(step, place)
    result = result if dtype is None else cast(result, dtype)
    return (result, step) if retstep else result


def copy(a: Any) -> Tensor:
    return elementwise.identity(as_array(a))


def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    return tuple(creation.meshgrid(*(flat(as_array(x)) for x in xi), indexing=indexing))


# -- choosing ------------------------------------------------------------------------------------


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    mask = truth(as_array(condition))
    if x is None and y is None:
        return nonzero(mask)
    a, b = promoted([x, y])
    return selection.where(mask, a, b)


def nonzero(a: Any) -> tuple[Tensor, ...]:
    mask = truth(as_array(a))
    found = selection.where(mask)
    return tuple(found[:, i] for i in range(mask.ndim))


def argwhere(a: Any) -> Tensor:
    return selection.where(truth(as_array(a)))


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    *choices, result = promoted([*choicelist, default])
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        result = selection.where(as_array(condition), choice, result)
    return result


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    from treadle.ops.numpy_ufuncs import call

    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    x = as_array(a)
    if low is not None:
        x = call(np.maximum, (x, low))
    return x if high is None else call(np.minimum, (x, high))


def take(a: Any, indices: Any, axis: Any = None) -> Tensor:
    from treadle.ops.gather import gather

    x, i = as_array(a), cast(as_array(indices), dtypes.int64)
    place = 0 if axis is None else normalize_axis(axis, x.ndim)
    x = flat(x) if axis is None else x
    size = dims_tensor(x.dims[place], dtypes.int64)
    return gather(x, selection.where(i < 0, i + size, i), axis=place)


def take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Tensor:
    x, i = as_array(arr), cast(as_array(indices), dtypes.int64)
    place = normalize_axis(axis, x.ndim)
    size = dims_tensor(x.dims[place], dtypes.int64)
    i = selection.where(i < 0, i + size, i)
    from treadle.ops.gather import gather

    last = x.ndim - 1
    rows, places = moveaxis(x, place, last), moveaxis(i, place, last)
    return moveaxis(gather(rows, places, batch_dims=last), last, place)


def sort(a: Any, axis: Any = -1) -> Tensor:
    x = as_array(a)
    return sorting.sort(flat(x), 0) if axis is None else sorting.sort(x, axis)


def argsort(a: Any, axis: Any = -1) -> Tensor:
    x = as_array(a)
    x, place = (flat(x), 0) if axis is None else (x, axis)
    return cast(sorting.argsort(x, place, stable=True), dtypes.int64)


def searchsorted(a: Any, v: Any, side: str = "left") -> Tensor:
    rows, values = promoted([as_array(a), as_array(v)])
    found = sorting.searchsorted(rows, flat(values), side, dtypes.int64)
    return reshape_to(found, values.dims)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    x = moveaxis(a, (axis1, axis2), (-2, -1))
    x = x[..., :, offset:] if offset >= 0 else x[..., -offset:, :]
    return linalg.diag_part(x)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    from treadle.ops.numpy_reductions import sum

    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def diag(v: Any, k: int = 0) -> Tensor:
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    low, high = max(-k, 0), max(k, 0)
    return slicing.pad(linalg.diag(x), [[low, high], [high, low]])


def _triangle(m: Any, k: int, upper: bool) -> Tensor:
    x = as_array(m)
    rows = creation.range(dims_tensor(x.dims[-2], dtypes.int64))[:, None]
    distance = creation.range(dims_tensor(x.dims[-1], dtypes.int64)) - rows
    kept = distance >= k if upper else distance <= k
    return selection.where(kept, x, to(0, x.dtype))


def tril(m: Any, k: int = 0) -> Tensor:
    return _triangle(m, k, upper=False)


def triu(m: Any, k: int = 0) -> Tensor:
    return _triangle(m, k, upper=True)


# -- products ------------------------------------------------------------------------------------


def dot(a: Any, b: Any) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    if not x.ndim or not y.ndim:
        return x * y
    if y.ndim <= 2:
        return matmul(x, y)
    return linalg.tensordot(x, y, [[-1], [-2]])


def inner(a: Any, b: Any) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    return linalg.tensordot(x, y, [[-1], [-1]]) if x.ndim and y.ndim else x * y


def vdot(a: Any, b: Any) -> Tensor:
    from treadle.ops.complex_numbers import conj

    x, y = promoted([as_array(a), as_array(b)])
    return reduction.reduce_sum(conj(flat(x)) * flat(y))


def outer(a: Any, b: Any) -> Tensor:
    x, y = (flat(t) for t in promoted([as_array(a), as_array(b)]))
    return reshape_to(x, (*x.dims, 1)) * y


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    return linalg.tensordot(x, y, axes)


def einsum(*operands: Any, optimize: Any = None) -> Tensor:
    from treadle.ops.einsum import einsum as contract

    if not isinstance(operands[0], str):
        raise TypeError(f"np.einsum takes its equation as a string{at(user_origin())}")
    return contract(operands[0], *promoted([as_array(x) for x in operands[1:]]))


# -- values --------------------------------------------------------------------------------------


def round(a: Any, decimals: int = 0) -> Tensor:
    x = as_array(a)
    if x.dtype.is_integer and decimals >= 0:
        return x
    if decimals == 0 or x.dtype.is_bool:
        return elementwise.round(floating(x))
    factor = to(10.0 ** abs(decimals), x.dtype)
    if decimals > 0:
        return elementwise.round(x * factor) / factor
    return elementwise.round(x / factor) * factor


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    x = as_array(a)
    before = (slice(None),) * normalize_axis(axis, x.ndim)
    for _ in range(n):
        after, first = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = after != first if x.dtype.is_bool else after - first
    return x


def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    a = as_array(x)
    if not a.dtype.is_floating:
        return a
    high = to(a.dtype.max if posinf is None else posinf, a.dtype)
    low = to(a.dtype.min if neginf is None else neginf, a.dtype)
    finite = selection.where(a == to(np.inf, a.dtype), high, a)
    finite = selection.where(a == to(-np.inf, a.dtype), low, finite)
    return selection.where(elementwise.is_nan(a), to(nan, a.dtype), finite)


def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    x, y = promoted([floating(as_array(v)) if not is_weak(v) else v for v in (a, b)])
    near = elementwise.abs(x - y) <= to(atol, x.dtype) + to(rtol, x.dtype) * elementwise.abs(y)
    close = logic.logical_or(elementwise.is_finite(y) & near, x == y)
    both = elementwise.is_nan(x) & elementwise.is_nan(y)
    return logic.logical_or(close, both) if equal_nan else close


def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    return reduction.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any) -> Any:
    x, y = promoted([a1, a2])
    if x.ndim != y.ndim or x.shape.is_compatible_with(y.shape) is False:
        return False
    return reduction.reduce_all(x == y)


def polyval(p: Any, x: Any) -> Tensor:
    coefficients, place = promoted([as_array(p), x])
    count = coefficients.dims[0]
    if not isinstance(count, int):
        raise ValueError(f"np.polyval needs a known number of coefficients{at(user_origin())}")
    total: Tensor = creation.zeros_like(place)
    for i in range(count):
        total = arithmetic.add(arithmetic.multiply(total, place), coefficients[i])
    return total
