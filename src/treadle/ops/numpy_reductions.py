"""NumPy's reductions and scans on tensors, with NumPy's signatures and result dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.ops import elementwise, reduction, scan
from treadle.ops.axes import normalize_axes, normalize_axis
from treadle.ops.casting import cast
from treadle.ops.numpy_dtypes import as_array, floating, promoted, sum_dtype, to
from treadle.ops.numpy_ufuncs import truth
from treadle.ops.reduction import dim_tensor
from treadle.ops.selection import where
from treadle.ops.shaping import expand_dims, reshape_to


def _in_dtype(x: Tensor, dtype: Any) -> Tensor:
    return cast(x, sum_dtype(x) if dtype is None else dtype)


def sum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.reduce_sum(_in_dtype(as_array(a), dtype), axis, keepdims)


def prod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.reduce_prod(_in_dtype(as_array(a), dtype), axis, keepdims)


def mean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    x = as_array(a)
    x = floating(x) if dtype is None else cast(x, dtype)
    return reduction.reduce_mean(x, axis, keepdims)


def _count(x: Tensor, axis: Any) -> Dim:
    return product(x.dims[i] for i in normalize_axes(axis, x.ndim))


def var(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Tensor:
    x = as_array(a)
    x = floating(x) if dtype is None else cast(x, dtype)
    distance = elementwise.abs(x - reduction.reduce_mean(x, axis, keepdims=True))
    total = reduction.reduce_sum(elementwise.square(distance), axis, keepdims)
    return total / (dim_tensor(_count(x, axis), total.dtype) - to(float(ddof), total.dtype))


def std(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Tensor:
    return elementwise.sqrt(var(a, axis, dtype, ddof, keepdims=keepdims))


def max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = as_array(a)
    function = reduction.reduce_any if x.dtype.is_bool else reduction.reduce_max
    return function(x, axis, keepdims)


def min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = as_array(a)
    function = reduction.reduce_all if x.dtype.is_bool else reduction.reduce_min
    return function(x, axis, keepdims)


def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def any(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.reduce_any(truth(as_array(a)), axis, keepdims)


def all(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.reduce_all(truth(as_array(a)), axis, keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.reduce_sum(cast(truth(as_array(a)), dtypes.int64), axis, keepdims)


def flat(x: Tensor) -> Tensor:
    """All elements on one axis."""
    return reshape_to(x, (product(x.dims),))


def _position(function: Any, a: Any, axis: Any, keepdims: bool) -> Tensor:
    x = as_array(a)
    found: Tensor = function(flat(x) if axis is None else x, 0 if axis is None else axis)
    if not keepdims:
        return found
    return reshape_to(found, (1,) * x.ndim) if axis is None else expand_dims(found, axis)


def argmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return _position(reduction.argmax, a, axis, keepdims)


def argmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return _position(reduction.argmin, a, axis, keepdims)


def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    x = _in_dtype(as_array(a), dtype)
    return scan.cumsum(flat(x), 0) if axis is None else scan.cumsum(x, axis)


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    x = _in_dtype(as_array(a), dtype)
    return scan.cumprod(flat(x), 0) if axis is None else scan.cumprod(x, axis)


def _without_nan(x: Tensor, fill: float) -> tuple[Tensor, Tensor]:
    kept = elementwise.is_nan(x) if x.dtype.is_floating else to(False, dtypes.bool)
    return where(kept, to(fill, x.dtype), x), kept


def nansum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    return sum(_without_nan(as_array(a), 0)[0], axis, dtype, keepdims=keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    x = floating(as_array(a)) if dtype is None else cast(as_array(a), dtype)
    kept, missing = _without_nan(x, 0)
    total = reduction.reduce_sum(kept, axis, keepdims)
    return total / reduction.reduce_sum(cast(~missing, x.dtype), axis, keepdims)


def nanmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = as_array(a)
    return max(_without_nan(x, -np.inf)[0] if x.dtype.is_floating else x, axis, keepdims=keepdims)


def nanmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = as_array(a)
    return min(_without_nan(x, np.inf)[0] if x.dtype.is_floating else x, axis, keepdims=keepdims)


def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Tensor:
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    x, w = promoted([floating(as_array(a)), as_array(weights)])
    if w.ndim == 1 and x.ndim > 1 and isinstance(axis, int):
        place = normalize_axis(axis, x.ndim)
        w = reshape_to(w, tuple(w.dims[0] if i == place else 1 for i in range(x.ndim)))
    total = reduction.reduce_sum(x * w, axis, keepdims)
    return total / reduction.reduce_sum(w + x * to(0, x.dtype), axis, keepdims)


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    from treadle.ops.sorting import sort

    x = floating(as_array(a))
    place = 0 if axis is None else normalize_axis(axis, x.ndim)
    rank, x = x.ndim, flat(x) if axis is None else x
    size = x.dims[place]
    if not isinstance(size, int):
        raise ValueError(f"np.median needs an axis of known size{at(user_origin())}")
    middle = (slice(None),) * place + (slice((size - 1) // 2, size // 2 + 1),)
    found = reduction.reduce_mean(sort(x, place)[middle], place, keepdims)
    return reshape_to(found, (1,) * rank) if keepdims and axis is None else found


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """``np.linalg.norm`` of vectors, and of matrices by the sum of squares."""
    tensor = elementwise.abs(floating(as_array(x)))
    axes = normalize_axes(axis, tensor.ndim)
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return elementwise.sqrt(reduction.reduce_sum(tensor * tensor, axes, keepdims))
    if len(axes) != 1:
        raise TypeError(
            f"np.linalg.norm: ord={ord!r} of matrices is not supported{at(user_origin())}"
        )
    if ord in (np.inf, -np.inf):
        function = reduction.reduce_max if ord > 0 else reduction.reduce_min
        return function(tensor, axes, keepdims)
    if ord == 0:
        return reduction.reduce_sum(cast(truth(tensor), tensor.dtype), axes, keepdims)
    powers = reduction.reduce_sum(tensor ** to(float(ord), tensor.dtype), axes, keepdims)
    return powers ** to(1.0 / ord, tensor.dtype)
