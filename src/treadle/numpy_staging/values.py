"""NumPy's functions of values, on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.numpy_staging.counting import searchsorted
from treadle.numpy_staging.dtypes import as_array, floating, is_weak, promoted, to
from treadle.numpy_staging.joining import concatenate
from treadle.numpy_staging.reductions import flat
from treadle.ops.axes import normalize_axes, normalize_axis
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import arithmetic, logic, selection, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import complex, imag, real
from treadle.ops.indexing.gather import gathered
from treadle.ops.reductions import reduction
from treadle.ops.shaping import creation
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape_to


def round(a: Any, decimals: int = 0) -> Tensor:
    x = as_array(a)
    if x.dtype.is_integer and decimals >= 0:
        return x
    if x.dtype.is_complex:
        return complex(round(real(x), decimals), round(imag(x), decimals))
    if decimals == 0 or x.dtype.is_bool:
        return unary.round(floating(x))
    factor = to(10.0 ** abs(decimals), x.dtype)
    if decimals > 0:
        return unary.round(x * factor) / factor
    return unary.round(x / factor) * factor


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    x = as_array(a)
    before = (slice(None),) * normalize_axis(axis, x.ndim)
    for _ in range(n):
        after, first = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = after != first if x.dtype.is_bool else after - first
    return x


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """A new array: `copy` only says that NumPy may do without one."""
    a = as_array(x)
    if not a.dtype.is_floating:
        return a
    high = to(a.dtype.max if posinf is None else posinf, a.dtype)
    low = to(a.dtype.min if neginf is None else neginf, a.dtype)
    finite = selection.where(a == to(np.inf, a.dtype), high, a)
    finite = selection.where(a == to(-np.inf, a.dtype), low, finite)
    return selection.where(unary.is_nan(a), to(nan, a.dtype), finite)


def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    x, y = promoted([floating(as_array(v)) if not is_weak(v) else v for v in (a, b)])
    near = unary.abs(x - y) <= to(atol, x.dtype) + to(rtol, x.dtype) * unary.abs(y)
    close = logic.logical_or(unary.is_finite(y) & near, x == y)
    both = unary.is_nan(x) & unary.is_nan(y)
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


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """Piecewise linear, in float64 or complex128; `xp` rises."""
    if period is not None:
        raise TypeError(f"np.interp: period= is not supported{at(user_origin())}")
    places, lines = (cast(as_array(v), dtypes.float64) for v in (x, xp))
    heights = as_array(fp)
    wide = dtypes.complex128 if heights.dtype.is_complex else dtypes.float64
    heights = cast(heights, wide)
    count = dims_tensor(lines.dims[0], dtypes.int64)
    above = arithmetic.minimum(
        arithmetic.maximum(searchsorted(lines, places, "right"), 1), count - 1
    )
    x0, x1 = gathered(lines, above - 1), gathered(lines, above)
    y0, y1 = gathered(heights, above - 1), gathered(heights, above)
    found = y0 + (y1 - y0) / cast(x1 - x0, wide) * cast(places - x0, wide)
    low = heights[0] if left is None else to(left, wide)
    high = heights[-1] if right is None else to(right, wide)
    found = selection.where(places < lines[0], low, found)
    found = selection.where(places > lines[-1], high, found)
    found = selection.where(places == lines[-1], heights[-1], found)
    return selection.where(unary.is_nan(places), cast(places, wide), found)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    heights = floating(as_array(y))
    before = (slice(None),) * normalize_axis(axis, heights.ndim)
    mean = heights[(*before, slice(1, None))] + heights[(*before, slice(None, -1))]
    if x is None:
        return reduction.reduce_sum(mean * to(dx, heights.dtype) / to(2, heights.dtype), axis)
    places = floating(as_array(x))
    widths = diff(places, axis=-1 if places.ndim == 1 else axis)
    if places.ndim == 1:
        after = (1,) * (heights.ndim - len(before) - 1)
        widths = reshape_to(widths, (*widths.dims, *after))
    widths, mean = promoted([widths, mean])
    return reduction.reduce_sum(widths * mean / to(2, mean.dtype), axis)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences, of first order at the edges, for even spacing."""
    x = floating(as_array(f))
    axes = list(normalize_axes(axis, x.ndim))
    steps = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if edge_order != 1 or len(steps) != len(axes) or any(np.ndim(s) for s in steps):
        raise TypeError(
            f"np.gradient: a number for each axis and edge_order=1 are supported{at(user_origin())}"
        )
    found = [
        _differences(x, place, to(step, x.dtype)) for place, step in zip(axes, steps, strict=True)
    ]
    return found[0] if len(found) == 1 else tuple(found)


def _differences(x: Tensor, place: int, step: Tensor) -> Tensor:
    def part(a: Any, b: Any) -> Tensor:
        return x[(*(slice(None),) * place, slice(a, b))]

    inside = (part(2, None) - part(None, -2)) / (step * to(2, x.dtype))
    first, last = (part(1, 2) - part(0, 1)) / step, (part(-1, None) - part(-2, -1)) / step
    return concat([first, inside, last], place)


def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """Of real arrays: the array."""
    x = as_array(a)
    if x.dtype.is_complex:
        raise TypeError(
            "np.real_if_close: the dtype would depend on the values; use np.real"
            f"{at(user_origin())}"
        )
    return x


def sinc(x: Any) -> Tensor:
    a = floating(as_array(x)) * to(np.pi, floating(as_array(x)).dtype)
    zero = a == to(0, a.dtype)
    safe = selection.where(zero, to(1, a.dtype), a)
    return selection.where(zero, to(1, a.dtype), unary.sin(safe) / safe)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    parts = [to_begin, diff(flat(as_array(ary))), to_end]
    return concatenate([flat(as_array(p)) for p in parts if p is not None])


def angle(z: Any, deg: bool = False) -> Tensor:
    x = as_array(z)
    if x.dtype.is_complex:
        found = arithmetic.atan2(imag(x), real(x))
    else:
        x = floating(x)
        found = arithmetic.atan2(creation.zeros_like(x), x)
    return found * to(180 / np.pi, found.dtype) if deg else found


def isrealobj(x: Any) -> bool:
    return not as_array(x).dtype.is_complex


def iscomplexobj(x: Any) -> bool:
    return as_array(x).dtype.is_complex


def isreal(x: Any) -> Tensor:
    return ~iscomplex(x)


def iscomplex(x: Any) -> Tensor:
    a = as_array(x)
    if not a.dtype.is_complex:
        return creation.zeros_like(a, dtypes.bool)
    part = imag(a)
    found: Tensor = part != to(0, part.dtype)
    return found


def isposinf(x: Any) -> Tensor:
    a = floating(as_array(x))
    found: Tensor = a == to(np.inf, a.dtype)
    return found


def isneginf(x: Any) -> Tensor:
    a = floating(as_array(x))
    found: Tensor = a == to(-np.inf, a.dtype)
    return found


def astype(x: Any, dtype: Any) -> Tensor:
    return cast(as_array(x), dtype)


def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = promoted([a1, a2])
    return reduction.reduce_all(x == y)
