"""NumPy's convolutions, polynomials and sets, on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.numpy_staging.counting import isin, unique
from treadle.numpy_staging.dtypes import as_array, floating, promoted, to
from treadle.numpy_staging.linalg import lstsq
from treadle.numpy_staging.reductions import cumsum, flat
from treadle.numpy_staging.shapes import moveaxis
from treadle.numpy_staging.values import diff
from treadle.ops.axes import normalize_axis
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import arithmetic, selection, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.indexing.gather import gathered
from treadle.ops.linalg.correlation import sliding_products
from treadle.ops.reductions import reduction
from treadle.ops.shaping import creation, ranges
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.permuting import reverse


def _vectors(a: Any, v: Any) -> tuple[Tensor, Tensor]:
    x, kernel = promoted([as_array(a), as_array(v)])
    if x.ndim != 1 or kernel.ndim != 1:
        shapes = f"{x.shape} and {kernel.shape}"
        raise errors.InvalidArgumentError(
            None, None, f"sliding products of arrays of shapes {shapes}: both must be vectors"
            f"{at(user_origin())}",
        )  # fmt: skip
    return x, kernel


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Of two vectors of known sizes."""
    x, kernel = _vectors(a, v)
    n, m = x.dims[0], kernel.dims[0]
    if not isinstance(n, int) or not isinstance(m, int):
        raise ValueError(f"np.convolve needs vectors of known sizes{at(user_origin())}")
    if m > n:
        x, kernel, n, m = kernel, x, m, n
    before, after = {"full": (m - 1, m - 1), "same": (m // 2, (m - 1) // 2), "valid": (0, 0)}[mode]
    wide = pad(x, [[before, after]]) if before or after else x
    return sliding_products(wide, reverse(kernel, [0]))


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    x, kernel = _vectors(a, v)
    turned = reverse(conj(kernel) if kernel.dtype.is_complex else kernel, [0])
    n, m = x.dims[0], kernel.dims[0]
    if mode == "same" and isinstance(n, int) and isinstance(m, int) and n < m and n % 2 == 0:
        return convolve(x, turned)[n // 2 : n // 2 + m]
    return convolve(x, turned, mode)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Tensor:
    values = as_array(x)
    count = values.dims[0] if N is None else N
    if not isinstance(count, int):
        raise ValueError(f"np.vander needs a known number of columns{at(user_origin())}")
    columns: list[Tensor] = [creation.ones_like(values)]
    for _ in range(count - 1):
        columns.append(arithmetic.multiply(columns[-1], values))
    return stack(columns if increasing else columns[::-1], 1)


def polyder(p: Any, m: int = 1) -> Tensor:
    found = as_array(p)
    for _ in range(m):
        count = found.dims[0]
        if not isinstance(count, int):
            raise ValueError(f"np.polyder needs a known number of terms{at(user_origin())}")
        powers = to(np.arange(count - 1, 0, -1), found.dtype)
        found = found[:-1] * powers
    return found


def polymul(a1: Any, a2: Any) -> Tensor:
    return convolve(a1, a2)


def polyadd(a1: Any, a2: Any) -> Tensor:
    x, y = _aligned(a1, a2)
    return x + y


def polysub(a1: Any, a2: Any) -> Tensor:
    x, y = _aligned(a1, a2)
    return x - y


def _aligned(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Coefficients of two polynomials, with zeros for the powers that one of them lacks."""
    x, y = promoted([as_array(a), as_array(b)])
    n, m = x.dims[0], y.dims[0]
    if not isinstance(n, int) or not isinstance(m, int):
        raise ValueError(f"polynomials need known numbers of terms{at(user_origin())}")
    count = max(n, m)
    return pad(x, [[count - n, 0]]), pad(y, [[count - m, 0]])


def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    found = floating(as_array(p))
    if k is not None:
        raise TypeError(f"np.polyint: k= is not supported{at(user_origin())}")
    for _ in range(m):
        count = found.dims[0]
        if not isinstance(count, int):
            raise ValueError(f"np.polyint needs a known number of terms{at(user_origin())}")
        found = pad(found / to(np.arange(count, 0, -1), found.dtype), [[0, 1]])
    return found


def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None,
    cov: bool = False,
) -> Tensor:  # fmt: skip
    """The coefficients of the polynomial of a known degree with the least squares."""
    if full or cov:
        raise TypeError(f"np.polyfit: full= and cov= are not supported{at(user_origin())}")
    places, values = (cast(as_array(v), dtypes.float64) for v in (x, y))
    rows = vander(places, int(deg) + 1)
    if w is not None:
        weights = cast(as_array(w), dtypes.float64)
        rows = rows * weights[:, None]
        values = values * (weights if values.ndim == 1 else weights[:, None])
    scale = unary.sqrt(reduction.reduce_sum(rows * rows, 0))
    found: Tensor = lstsq(rows / scale, values, rcond)[0]
    return found / scale if found.ndim == 1 else found / scale[:, None]


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Tensor:
    """Jumps of more than half a period become the smaller step."""
    x = floating(as_array(p))
    half, whole = to(period / 2, x.dtype), to(period, x.dtype)
    step = diff(x, axis=axis)
    turned = arithmetic.mod(step + half, whole) - half
    turned = selection.where((turned == -half) & (step > to(0, x.dtype)), half, turned)
    limit = half if discont is None else to(max(float(discont), period / 2), x.dtype)
    near = unary.abs(step) < limit
    correction = selection.where(near, to(0, x.dtype), turned - step)
    place = normalize_axis(axis, x.ndim)
    sides = [[1, 0] if i == place else [0, 0] for i in range(x.ndim)]
    return x + pad(cumsum(correction, place), sides)


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Tensor:
    """The windows as a new array, along one axis (of a vector or given)."""
    rows = as_array(x)
    size = window_shape[0] if isinstance(window_shape, tuple | list) else window_shape
    if axis is None and rows.ndim != 1 or not isinstance(size, int | np.integer):
        raise TypeError(
            f"np.lib.stride_tricks.sliding_window_view along one axis, with a known size, is "
            f"supported{at(user_origin())}"
        )
    place = normalize_axis(0 if axis is None else axis, rows.ndim)
    count = dims_tensor(rows.dims[place] - int(size) + 1, dtypes.int64)
    first = ranges.range(count)
    places = first[:, None] + ranges.range(to(size, dtypes.int64))[None, :]
    return moveaxis(gathered(rows, places, axis=place), place + 1, -1)


# -- sets ----------------------------------------------------------------------------------------


def union1d(ar1: Any, ar2: Any) -> Tensor:
    found: Tensor = unique(concat([flat(x) for x in promoted([as_array(ar1), as_array(ar2)])], 0))
    return found


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    first, second = promoted([as_array(ar1), as_array(ar2)])
    return _kept(first, second, inside=True)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    return _kept(ar1, ar2, inside=False)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    first, second = promoted([as_array(ar1), as_array(ar2)])
    alone = [_kept(first, second, inside=False), _kept(second, first, inside=False)]
    found: Tensor = unique(concat(alone, 0))
    return found


def _kept(a: Any, b: Any, inside: bool) -> Tensor:
    """The distinct elements of `a` that are in `b`, or are not."""
    first = unique(as_array(a))
    found: Tensor = first[isin(first, b, invert=not inside)]
    return found


def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    x = as_array(arr)
    return (ranges.range(dims_tensor(x.dims[0], dtypes.int64)),) * x.ndim
