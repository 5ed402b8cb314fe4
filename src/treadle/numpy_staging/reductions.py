"""NumPy's reductions and scans on tensors, with NumPy's signatures and result dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array, floating, sum_dtype, to
from treadle.numpy_staging.ufuncs import truth
from treadle.ops.axes import normalize_axes
from treadle.ops.elementwise import complex_numbers, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.reductions import reduction, scan
from treadle.ops.reductions.reduction import dim_tensor
from treadle.ops.shaping.reshaping import expand_dims, reshape_to
from treadle.ops.statistics import running_extremes


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
    distance = unary.abs(x - reduction.reduce_mean(x, axis, keepdims=True))
    total = reduction.reduce_sum(unary.square(distance), axis, keepdims)
    return total / (dim_tensor(_count(x, axis), total.dtype) - to(float(ddof), total.dtype))


def std(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Tensor:
    return unary.sqrt(var(a, axis, dtype, ddof, keepdims=keepdims))


def max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = as_array(a)
    if x.dtype.is_complex:
        return _of_complex(x, axis, keepdims, reduction.reduce_max, -np.inf)
    function = reduction.reduce_any if x.dtype.is_bool else reduction.reduce_max
    return function(x, axis, keepdims)


def min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = as_array(a)
    if x.dtype.is_complex:
        return _of_complex(x, axis, keepdims, reduction.reduce_min, np.inf)
    function = reduction.reduce_all if x.dtype.is_bool else reduction.reduce_min
    return function(x, axis, keepdims)


def _of_complex(x: Tensor, axis: Any, keepdims: bool, extreme: Any, worst: float) -> Tensor:
    """The extreme real part, and of the elements that have it the extreme imaginary part."""
    first, second = complex_numbers.real(x), complex_numbers.imag(x)
    found = extreme(first, axis, True)
    rest = extreme(where(first == found, second, to(worst, second.dtype)), axis, True)
    if not keepdims:
        found, rest = extreme(found, axis), extreme(rest, axis)
    return complex_numbers.complex(found, rest)


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


def cummax(a: Any, axis: Any = 0) -> Tensor:
    """``np.maximum.accumulate``."""
    x = as_array(a)
    return cumulative_any(x, axis) if x.dtype.is_bool else running_extremes.cummax(x, axis)


def cummin(a: Any, axis: Any = 0) -> Tensor:
    """``np.minimum.accumulate``."""
    x = as_array(a)
    return cumulative_all(x, axis) if x.dtype.is_bool else running_extremes.cummin(x, axis)


def cumulative_any(a: Any, axis: Any = 0) -> Tensor:
    """``np.logical_or.accumulate``."""
    return truth(running_extremes.cummax(cast(truth(as_array(a)), dtypes.uint8), axis))


def cumulative_all(a: Any, axis: Any = 0) -> Tensor:
    """``np.logical_and.accumulate``."""
    return truth(running_extremes.cummin(cast(truth(as_array(a)), dtypes.uint8), axis))


def cumulative_logsumexp(a: Any, axis: Any = 0) -> Tensor:
    """``np.logaddexp.accumulate``."""
    return scan.cumulative_logsumexp(floating(as_array(a)), axis)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None) -> Tensor:
    return cumsum(x, axis, dtype)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None) -> Tensor:
    return cumprod(x, axis, dtype)
