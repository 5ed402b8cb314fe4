"""NumPy's functions that make new arrays, on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.numpy_staging.choosing import diag
from treadle.numpy_staging.dtypes import as_array, result_dtype, to
from treadle.numpy_staging.reductions import flat
from treadle.numpy_staging.shapes import broadcast_arrays, expand_dims
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise import arithmetic, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.logic import logical_and
from treadle.ops.elementwise.selection import where
from treadle.ops.numbers.python_numbers import is_symbolic_number
from treadle.ops.shaping import creation, ranges
from treadle.ops.shaping.reshaping import reshape_to


def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    return creation.zeros_like(as_array(a), dtype)


def ones_like(a: Any, dtype: Any = None) -> Tensor:
    return creation.ones_like(as_array(a), dtype)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    x = as_array(a)
    return broadcast_dims(to(fill_value, dtype or x.dtype), x.dims)


def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    wanted = result_dtype(start, stop)
    wanted = wanted if wanted.is_floating or wanted.is_complex else dtypes.float64
    first, last = to(start, wanted), to(stop, wanted)
    first, last = broadcast_arrays(first, last)
    num = size_of(num.tensor() if is_symbolic_number(num) else num, "np.linspace: num")
    if not isinstance(num, int):
        made = _open_linspace(first, last, num, endpoint, normalize_axis(axis, first.ndim + 1))
        made = made if dtype is None else (cast(made[0], dtype), made[1])
        return made if retstep else made[0]
    parts = num - 1 if endpoint else num
    step = (last - first) / to(float(max(parts, 1)), wanted)
    if endpoint and num > 1:
        result = ranges.linspace(first, last, num, axis=axis)
    else:
        place = normalize_axis(axis, first.ndim + 1)
        dims = tuple(num if i == place else 1 for i in range(first.ndim + 1))
        steps = reshape_to(to(np.arange(num), wanted), dims)
        result = expand_dims(first, place) + steps * expand_dims(step, place)
    result = result if dtype is None else cast(result, dtype)
    return (result, step) if retstep else result


def _open_linspace(
    first: Tensor, last: Tensor, num: Dim, endpoint: bool, axis: int
) -> tuple[Tensor, Tensor]:
    """Evenly spaced numbers, as many as only the run knows, and their distance."""
    count = dims_tensor(num, dtypes.int64)
    parts = arithmetic.maximum(count - 1 if endpoint else count, 1)
    step = (last - first) / cast(parts, first.dtype)
    dims: list[Dim] = [1] * (first.ndim + 1)
    dims[axis] = num
    places = reshape_to(ranges.range(count), tuple(dims))
    low, high, distance = (expand_dims(x, axis) for x in (first, last, step))
    result = low + cast(places, first.dtype) * distance
    if endpoint:  # without rounding
        is_last = logical_and(equal(places, count - 1), count > 1)
        result = where(is_last, high, result)
    return result, step


def copy(a: Any) -> Tensor:
    return unary.identity(as_array(a))


def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    return tuple(ranges.meshgrid(*(flat(as_array(x)) for x in xi), indexing=indexing))


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Tensor:  # fmt: skip
    powers = linspace(start, stop, num, endpoint, axis=axis)
    found = to(base, powers.dtype) ** powers
    return found if dtype is None else cast(found, dtype)


def empty_like(prototype: Any, dtype: Any = None) -> Tensor:
    """Zeros: a tensor always has values."""
    return zeros_like(prototype, dtype)


def diagflat(v: Any, k: int = 0) -> Tensor:
    return diag(flat(as_array(v)), k)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Tensor:
    """Numbers whose logarithms are evenly spaced; `start` and `stop` have the same sign."""
    first, last = (cast(as_array(v), dtypes.float64) for v in (start, stop))
    steps = linspace(0.0, 1.0, num, endpoint)
    steps = reshape_to(steps, (*steps.dims, *(1,) * first.ndim))
    found: Tensor = first * unary.exp(steps * unary.log(last / first))
    return found
