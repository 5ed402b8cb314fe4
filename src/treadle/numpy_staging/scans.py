"""``ufunc.accumulate`` and ``ufunc.reduce`` of ufuncs that bring elements together in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array
from treadle.numpy_staging.shapes import moveaxis
from treadle.numpy_staging.ufuncs import call
from treadle.ops.axes import normalize_axis
from treadle.ops.shaping.joining import concat

# Ufuncs for which it does not matter which elements are brought together first.
ASSOCIATIVE = frozenset(
    {np.fmax, np.fmin, np.bitwise_and, np.bitwise_or, np.bitwise_xor,
     np.logical_and, np.logical_or, np.logical_xor, np.gcd, np.lcm}
)  # fmt: skip


def accumulate(ufunc: Any, array: Any, axis: int = 0) -> Tensor:
    """Each element with all those before it, by steps that double."""
    rows, place, count = _rows(ufunc, array, axis)
    step = 1
    while step < count:
        rows = concat([rows[:step], _call(ufunc, rows[:-step], rows[step:])], 0)
        step *= 2
    return moveaxis(rows, 0, place)


def reduce(ufunc: Any, array: Any, axis: int = 0, keepdims: bool = False) -> Tensor:
    """All elements along an axis, by halves."""
    rows, place, count = _rows(ufunc, array, axis)
    if count == 0:
        raise ValueError(
            f"np.{ufunc.__name__}.reduce of no elements is not supported{at(user_origin())}"
        )
    while count > 1:
        half = count // 2
        folded = _call(ufunc, rows[:half], rows[half : 2 * half])
        rows = concat([folded, rows[2 * half :]], 0) if count % 2 else folded
        count -= half
    return moveaxis(rows, 0, place) if keepdims else rows[0]


def _rows(ufunc: Any, array: Any, axis: int) -> tuple[Tensor, int, int]:
    x = as_array(array)
    place = normalize_axis(axis, x.ndim)
    rows = moveaxis(x, place, 0)
    count = rows.dims[0]
    if not isinstance(count, int):
        raise ValueError(
            f"np.{ufunc.__name__} along an axis needs a known size there{at(user_origin())}"
        )
    return rows, place, count


def _call(ufunc: Any, a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = call(ufunc, (a, b))
    return found
