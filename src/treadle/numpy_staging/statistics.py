"""NumPy's statistics on tensors: averages, quantiles, what ignores NaN, covariances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.numpy_staging.choosing import take_along_axis
from treadle.numpy_staging.dtypes import as_array, floating, promoted, to
from treadle.numpy_staging.reductions import (
    argmax,
    argmin,
    cumprod,
    cumsum,
    flat,
    max,
    mean,
    min,
    prod,
    sum,
)
from treadle.numpy_staging.shapes import moveaxis
from treadle.ops.axes import normalize_axes, normalize_axis
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import complex_numbers, unary
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.logic import logical_or
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gathered
from treadle.ops.indexing.transposing import transpose
from treadle.ops.linalg.diagonals import diag_part
from treadle.ops.linalg.matrices import matmul
from treadle.ops.reductions import reduction
from treadle.ops.shaping.creation import zeros_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.statistics.sorting import sort


def _without_nan(x: Tensor, fill: float) -> tuple[Tensor, Tensor]:
    if x.dtype.is_complex:
        missing = logical_or(
            unary.is_nan(complex_numbers.real(x)), unary.is_nan(complex_numbers.imag(x))
        )
    elif x.dtype.is_floating:
        missing = unary.is_nan(x)
    else:
        missing = zeros_like(x, dtypes.bool)
    return where(missing, to(fill, x.dtype), x), missing


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


def nanargmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Where all elements are NaN, the first one: NumPy raises."""
    x = as_array(a)
    whole = _without_nan(x, -np.inf)[0] if x.dtype.is_floating else x
    return argmax(whole, axis, keepdims=keepdims)


def nanargmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Where all elements are NaN, the first one: NumPy raises."""
    x = as_array(a)
    whole = _without_nan(x, np.inf)[0] if x.dtype.is_floating else x
    return argmin(whole, axis, keepdims=keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    return prod(_without_nan(as_array(a), 1)[0], axis, dtype, keepdims=keepdims)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Tensor:
    x = floating(as_array(a)) if dtype is None else cast(as_array(a), dtype)
    kept, missing = _without_nan(x, 0)
    present = cast(~missing, x.dtype)
    count = reduction.reduce_sum(present, axis, True)
    distance = (kept - reduction.reduce_sum(kept, axis, True) / count) * present
    if x.dtype.is_complex:
        real, imag = complex_numbers.real(distance), complex_numbers.imag(distance)
        squares, count = real * real + imag * imag, complex_numbers.real(count)
    else:
        squares = distance * distance
    total = reduction.reduce_sum(squares, axis, keepdims)
    freedom = count if keepdims else reshape_to(count, total.dims)
    return total / (freedom - to(float(ddof), total.dtype))


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Tensor:
    return unary.sqrt(nanvar(a, axis, dtype, ddof, keepdims=keepdims))


# -- quantiles -----------------------------------------------------------------------------------

# Method -> the position among n sorted elements, counted from 0, of the quantile q.
_POSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda q, n: q * (n - 1),
    "lower": lambda q, n: unary.floor(q * (n - 1)),
    "higher": lambda q, n: unary.ceil(q * (n - 1)),
    "nearest": lambda q, n: unary.round(q * (n - 1)),
    "hazen": lambda q, n: q * n - 0.5,
    "weibull": lambda q, n: q * (n + 1) - 1,
    "median_unbiased": lambda q, n: q * (n + 1 / 3) - 2 / 3,
    "normal_unbiased": lambda q, n: q * (n + 0.25) - 0.625,
}


def quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Along one axis or all. NaN where an element is NaN, as in NumPy."""
    x, q = floating(as_array(a)), _fractions(q)
    if method == "midpoint":
        low = quantile(x, q, axis, method="lower", keepdims=keepdims)
        return (low + quantile(x, q, axis, method="higher", keepdims=keepdims)) * 0.5
    if method not in _POSITIONS:
        known = ", ".join(sorted([*_POSITIONS, "midpoint"]))
        raise ValueError(f"np.quantile: method={method!r} is not one of {known}{at(user_origin())}")
    rows = flat(x) if axis is None else moveaxis(x, axis, -1)
    size = cast(dims_tensor(rows.dims[-1], dtypes.int64), dtypes.float64)
    found = _at_positions(sort(rows, -1), _POSITIONS[method](q, size), size)
    found = moveaxis(found, range(-q.ndim, 0), range(q.ndim)) if q.ndim else found
    if not keepdims:
        return found
    return reshape_to(found, (*q.dims, *_kept_dims(x, axis)))


def _fractions(q: Any) -> Tensor:
    return cast(as_array(q), dtypes.float64)


def _at_positions(rows: Tensor, position: Tensor, size: Tensor) -> Tensor:
    """Elements of sorted `rows` at fractional positions, interpolated; NaNs are sorted last."""
    position = maximum(minimum(position, size - 1), to(0.0, dtypes.float64))
    low = unary.floor(position)
    weight = cast(position - low, rows.dtype)
    below = gathered(rows, cast(low, dtypes.int64), axis=-1)
    above = gathered(rows, cast(unary.ceil(position), dtypes.int64), axis=-1)
    found = where(weight == 0, below, below + (above - below) * weight)
    last = rows[..., -1]
    if position.ndim:
        last = reshape_to(last, (*last.dims, *(1,) * position.ndim))
    return where(unary.is_nan(last), last, found)


def percentile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    fractions = _fractions(q) / to(100.0, dtypes.float64)
    return quantile(a, fractions, axis, method=method, keepdims=keepdims)


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return quantile(a, 0.5, axis, keepdims=keepdims)


# -- covariances ---------------------------------------------------------------------------------


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None) -> Tensor:
    """Of variables in rows (in columns with ``rowvar=False``)."""
    x = _variables(m, rowvar)
    if y is not None:
        x = concat(promoted([x, _variables(y, rowvar)]), 0)
    x = x - mean(x, axis=1, keepdims=True)
    freedom = (0 if bias else 1) if ddof is None else ddof
    count = cast(dims_tensor(x.dims[1], dtypes.int64), x.dtype) - to(float(freedom), x.dtype)
    found = matmul(x, transpose(x)) / count
    return reshape_to(found, ()) if found.dims == (1, 1) else found


def _variables(m: Any, rowvar: bool) -> Tensor:
    x = cast(as_array(m), dtypes.float64)
    if x.ndim < 2:
        return reshape_to(x, (1, *x.dims) if x.ndim else (1, 1))
    return x if rowvar else transpose(x)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    deviation = unary.sqrt(diag_part(c))
    return c / deviation[:, None] / deviation[None, :]


# -- NaNs left out -------------------------------------------------------------------------------


def nanquantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """NaN where nothing else is in a row."""
    x, fractions = floating(as_array(a)), _fractions(q)
    rows = sort(flat(x) if axis is None else moveaxis(x, axis, -1), -1)
    there = cast(~unary.is_nan(rows), dtypes.float64)
    count = reduction.reduce_sum(there, -1, keepdims=True)
    positions = _POSITIONS[method](flat(fractions), count)
    positions = maximum(minimum(positions, count - 1), to(0.0, dtypes.float64))
    low = unary.floor(positions)
    below = take_along_axis(rows, cast(low, dtypes.int64), -1)
    above = take_along_axis(rows, cast(unary.ceil(positions), dtypes.int64), -1)
    weight = cast(positions - low, rows.dtype)
    found = moveaxis(where(weight == 0, below, below + (above - below) * weight), -1, 0)
    kept = _kept_dims(x, axis) if keepdims else found.dims[1:]
    return reshape_to(found, (*fractions.dims, *kept))


def _kept_dims(x: Tensor, axis: Any) -> tuple[Any, ...]:
    gone = {i % x.ndim for i in normalize_axes(axis, x.ndim)}
    return tuple(1 if i in gone else d for i, d in enumerate(x.dims))


def nanpercentile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    fractions = _fractions(q) / to(100.0, dtypes.float64)
    return nanquantile(a, fractions, axis, method=method, keepdims=keepdims)


def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    return cumsum(_without_nan(as_array(a), 0)[0], axis, dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    return cumprod(_without_nan(as_array(a), 1)[0], axis, dtype)
