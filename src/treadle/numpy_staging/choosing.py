"""NumPy's functions that choose and order elements, on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array, promoted, to
from treadle.numpy_staging.reductions import flat, sum
from treadle.numpy_staging.shapes import flip, moveaxis, swapaxes
from treadle.numpy_staging.ufuncs import call, truth
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import complex_numbers, selection
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gathered
from treadle.ops.linalg import diagonals, triangles
from treadle.ops.shaping import padding
from treadle.ops.statistics import sorting


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
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    x = as_array(a)
    if low is not None:
        x = call(np.maximum, (x, low))
    return x if high is None else call(np.minimum, (x, high))


def take(a: Any, indices: Any, axis: Any = None) -> Tensor:
    x, i = as_array(a), cast(as_array(indices), dtypes.int64)
    place = 0 if axis is None else normalize_axis(axis, x.ndim)
    x = flat(x) if axis is None else x
    size = dims_tensor(x.dims[place], dtypes.int64)
    return gathered(x, selection.where(i < 0, i + size, i), axis=place)


def take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Tensor:
    x, i = as_array(arr), cast(as_array(indices), dtypes.int64)
    place = normalize_axis(axis, x.ndim)
    size = dims_tensor(x.dims[place], dtypes.int64)
    i = selection.where(i < 0, i + size, i)
    last = x.ndim - 1
    rows, places = moveaxis(x, place, last), moveaxis(i, place, last)
    return moveaxis(gathered(rows, places, batch_dims=last), last, place)


def sort(a: Any, axis: Any = -1) -> Tensor:
    x = as_array(a)
    x, place = (flat(x), 0) if axis is None else (x, axis)
    if x.dtype.is_complex:
        return take_along_axis(x, argsort(x, place), place)
    return sorting.sort(x, place)


def argsort(a: Any, axis: Any = -1) -> Tensor:
    x = as_array(a)
    x, place = (flat(x), 0) if axis is None else (x, axis)
    if x.dtype.is_complex:  # by the real parts, and where these are equal by the others
        by_imag = argsort(complex_numbers.imag(x), place)
        by_real = argsort(take_along_axis(complex_numbers.real(x), by_imag, place), place)
        return take_along_axis(by_imag, by_real, place)
    return cast(sorting.argsort(x, place, stable=True), dtypes.int64)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    x = moveaxis(a, (axis1, axis2), (-2, -1))
    x = x[..., :, offset:] if offset >= 0 else x[..., -offset:, :]
    return diagonals.diag_part(x)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def diag(v: Any, k: int = 0) -> Tensor:
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    low, high = max(-k, 0), max(k, 0)
    return padding.pad(diagonals.diag(x), [[low, high], [high, low]])


def tril(m: Any, k: int = 0) -> Tensor:
    return triangles.tril(as_array(m), k)


def triu(m: Any, k: int = 0) -> Tensor:
    return triangles.triu(as_array(m), k)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """All functions are computed for all elements, then chosen from."""
    a = as_array(x)
    conditions = [truth(as_array(c)) for c in condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"np.piecewise: {len(funclist)} functions for {len(conditions)} conditions"
            f"{at(user_origin())}"
        )
    values = [f(a, *args, **kw) if callable(f) else f for f in funclist]
    values = [to(v, a.dtype) for v in values]
    has_default = len(values) > len(conditions)
    result = broadcast_dims(values.pop() if has_default else to(0, a.dtype), a.dims)
    for condition, value in zip(conditions, values, strict=True):
        result = selection.where(condition, value, result)
    return result


def extract(condition: Any, arr: Any) -> Tensor:
    return flat(as_array(arr))[flat(truth(as_array(condition)))]


def compress(condition: Any, a: Any, axis: Any = None) -> Tensor:
    x = as_array(a)
    x, place = (flat(x), 0) if axis is None else (x, normalize_axis(axis, x.ndim))
    kept = selection.where(truth(as_array(condition)))[:, 0]
    return take(x, kept, axis=place)


def flatnonzero(a: Any) -> Tensor:
    return nonzero(flat(as_array(a)))[0]


def partition(a: Any, kth: Any, axis: Any = -1) -> Tensor:
    """Sorted, which is a partition at every place."""
    return sort(a, axis)


def delete(arr: Any, obj: Any, axis: Any = None) -> Tensor:
    """Without the elements at places that are known while tracing."""
    x = as_array(arr)
    x, place = (flat(x), 0) if axis is None else (x, normalize_axis(axis, x.ndim))
    size = x.dims[place]
    if not isinstance(size, int):
        raise ValueError(f"np.delete needs an axis of known size{at(user_origin())}")
    return take(x, np.delete(np.arange(size), obj), axis=place)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    x, (first, second) = as_array(m), axes
    match k % 4:
        case 0:
            return x
        case 1:
            return swapaxes(flip(x, second), first, second)
        case 2:
            return flip(flip(x, first), second)
    return flip(swapaxes(x, first, second), second)
