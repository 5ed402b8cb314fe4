"""NumPy's convolutions, polynomials and sets, on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops import arithmetic, creation, selection
from treadle.ops.dims import dims_tensor
from treadle.ops.gather import gather
from treadle.ops.joining import concat, stack
from treadle.ops.linalg import matvec
from treadle.ops.numpy_counting import isin, unique
from treadle.ops.numpy_dtypes import as_array, promoted, to
from treadle.ops.numpy_reductions import flat
from treadle.ops.shaping import reverse


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Of two vectors of known sizes."""
    x, kernel = promoted([as_array(a), as_array(v)])
    n, m = x.dims[0], kernel.dims[0]
    if not isinstance(n, int) or not isinstance(m, int):
        raise ValueError(f"np.convolve needs vectors of known sizes{at(user_origin())}")
    if m > n:
        x, kernel, n, m = kernel, x, m, n
    first, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[
        mode
    ]
    places = np.arange(first, first + count)[:, None] - np.arange(m)
    inside = (places >= 0) & (places < n)
    windows = gather(x, to(np.clip(places, 0, n - 1), dtypes.int64))
    windows = selection.where(to(inside, dtypes.bool), windows, to(0, x.dtype))
    return matvec(windows, kernel)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    from treadle.ops.complex_numbers import conj

    x, kernel = promoted([as_array(a), as_array(v)])
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


# -- sets ----------------------------------------------------------------------------------------


def union1d(ar1: Any, ar2: Any) -> Tensor:
    found: Tensor = unique(concat([flat(x) for x in promoted([as_array(ar1), as_array(ar2)])], 0))
    return found


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    first, second = promoted([as_array(ar1), as_array(ar2)])
    return _kept(first, second, inside=True)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    return _kept(ar1, ar2, inside=False)


def _kept(a: Any, b: Any, inside: bool) -> Tensor:
    """The distinct elements of `a` that are in `b`, or are not."""
    first = unique(as_array(a))
    found: Tensor = first[isin(first, b, invert=not inside)]
    return found


def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    x = as_array(arr)
    return (creation.range(dims_tensor(x.dims[0], dtypes.int64)),) * x.ndim
