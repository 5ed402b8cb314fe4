"""NumPy's functions that make arrays: in a jitted function each call makes a storage of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import (
    Array,
    CopiedStorage,
    Traced,
    is_traced,
    unwrapped,
    unwrapped_bound,
)
from treadle.jitted.records import Records, is_supported
from treadle.jitted.storage import Storage
from treadle.numpy_staging.dtypes import as_array, is_weak, result_dtype, to
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise import unary
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import identity
from treadle.ops.indexing.gather import gathered
from treadle.ops.shaping import creation, ranges
from treadle.ops.shaping.reshaping import reshape_to


def known(value: Any) -> Any:
    """A result that NumPy computed while the function was traced: arrays become constants."""
    if isinstance(value, np.ndarray):
        return Array(Storage(convert_to_tensor(value)))
    if type(value) in (list, tuple):
        return type(value)(known(v) for v in value)
    return value


def dtype_of(dtype: Any, default: DType) -> DType:
    """A dtype argument; None stands for the default.

    Raises:
        TypeError: it is not a dtype that arrays of the graph can have.
    """
    if dtype is None:
        return default
    if dtype in (int, float, complex, bool) or not isinstance(dtype, DType):
        kind = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "type", dtype)
        dtype = np.dtype(kind)
    try:
        return dtypes.as_dtype(dtype)
    except TypeError:
        raise TypeError(
            f"arrays of dtype {dtype} are not supported in jitted functions{at(user_origin())}"
        ) from None


def record_dtype(dtype: Any) -> np.dtype[Any] | None:
    """A dtype argument that has fields which the graph can hold; None for others."""
    if not isinstance(dtype, np.dtype | list | dict):
        return None
    found: np.dtype[Any] = np.dtype(dtype)  # type: ignore[arg-type]
    return found if is_supported(found) else None


def _shape(shape: Any) -> list[Any]:
    if isinstance(shape, Traced) and shape.ndim:
        return shape.tensor  # type: ignore[return-value]
    given = shape if isinstance(shape, tuple | list) else (shape,)
    return [_size(s) for s in given]


def _size(size: Any) -> Any:
    return unwrapped_bound(size) if is_traced(size) else int(size)


def _fresh(tensor: Tensor) -> Array:
    return Array(Storage(tensor))


def zeros(shape: Any, dtype: Any = None, order: str = "C", **options: Any) -> Any:
    of_records = record_dtype(dtype)
    if of_records is not None:
        return Records.made(of_records, shape, zeros)
    return _fresh(creation.zeros(_shape(shape), dtype_of(dtype, dtypes.float64)))


def ones(shape: Any, dtype: Any = None, order: str = "C", **options: Any) -> Any:
    of_records = record_dtype(dtype)
    if of_records is not None:
        return Records.made(of_records, shape, ones)
    return _fresh(creation.ones(_shape(shape), dtype_of(dtype, dtypes.float64)))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any) -> Array:
    value = as_array(unwrapped(fill_value))
    wanted = dtype_of(dtype, value.dtype)
    if value.ndim == 0:
        return _fresh(creation.fill(_shape(shape), cast(value, wanted)))
    base = creation.zeros(_shape(shape), wanted)
    made = _fresh(base)
    made[...] = fill_value
    return made


def _like(a: Any, dtype: Any, shape: Any) -> tuple[list[Any], DType]:
    x = as_array(unwrapped(a))
    dims = list(x.dims) if shape is None else _shape(shape)
    return dims, dtype_of(dtype, x.dtype)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, **options: Any) -> Any:
    if isinstance(a, Records) or record_dtype(dtype) is not None:
        of_fields = a.dtype if dtype is None else dtype
        return zeros(a.shape if shape is None else shape, of_fields)
    dims, wanted = _like(a, dtype, shape)
    return _fresh(creation.zeros(dims, wanted))


def ones_like(a: Any, dtype: Any = None, shape: Any = None, **options: Any) -> Any:
    dims, wanted = _like(a, dtype, shape)
    return _fresh(creation.ones(dims, wanted))


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
    shape: Any = None,
) -> Any:  # fmt: skip
    dims, wanted = _like(a, dtype, shape)
    made = _fresh(creation.zeros(dims, wanted))
    made[...] = fill_value
    return made


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, **options: Any) -> Array:
    wanted = dtype_of(dtype, dtypes.float64)
    if not is_traced((N, M, k)):
        return _fresh(convert_to_tensor(np.eye(N, M, k, wanted.np_dtype)))
    rows, columns = _size(N), _size(N if M is None else M)
    i = ranges.range(rows)
    j = ranges.range(columns)
    return _fresh(cast(i[:, None] + cast(_size(k), i.dtype) == j[None, :], wanted))


def identity_matrix(n: Any, dtype: Any = None, **options: Any) -> Array:
    return eye(n, dtype=float if dtype is None else dtype)


def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False,
    ndmin: int = 0, like: Any = None,
) -> Any:  # fmt: skip
    """``np.array`` of numbers, arrays and nested lists of them, with elements of its own."""
    if isinstance(object, Records):
        return object.copy()
    if not is_traced(object):
        kind = None if dtype is None else dtype_of(dtype, dtypes.float64).np_dtype
        return known(np.array(object, kind, ndmin=ndmin))
    x = as_array(unwrapped(object))
    x = x if dtype is None else cast(x, dtype_of(dtype, x.dtype))
    if ndmin > x.ndim:
        x = reshape_to(x, ((1,) * (ndmin - x.ndim)) + x.dims)
    return _fresh(identity(x))


def asarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    """``np.asarray``: the array itself where its dtype is the wanted one."""
    if isinstance(a, Records):
        return a
    if isinstance(a, Array) and dtype_of(dtype, a.tensor.dtype) is a.tensor.dtype:
        return a
    return array(a, dtype)


def arange(
    start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None, **options: Any
) -> Array:
    """``np.arange``: int64 for ints, float64 for floats."""
    if not is_traced((start, stop, step)):
        kind = None if dtype is None else dtype_of(dtype, dtypes.int64).np_dtype
        given = {"start": start, "stop": stop, "step": step}
        named = {k: v for k, v in given.items() if v is not None}
        alone = () if "stop" in named or "start" not in named else (named.pop("start"),)
        return Array(Storage(convert_to_tensor(np.arange(*alone, dtype=kind, **named))))
    start, stop = (0, start) if stop is None else (0 if start is None else start, stop)
    parts = [unwrapped(v) for v in (start, stop, 1 if step is None else step)]
    counted = result_dtype(*parts)
    wanted = dtype_of(dtype, counted)
    if counted.is_floating:
        first, last, by = (to(v, dtypes.float64) for v in parts)
        count = cast(unary.ceil((last - first) / by), dtypes.int64)
        if wanted.is_integer:  # NumPy's steps are between the first two numbers as ints
            second = cast(cast(first + by, wanted), dtypes.int64)
            first = cast(cast(first, wanted), dtypes.int64)
            by = second - first
    elif all(is_weak(v) for v in parts) or counted.is_integer:
        first, last, by = (to(v, dtypes.int64) for v in parts)
        count = -((first - last) // by)
    else:
        raise TypeError(f"np.arange of {counted.name} is not supported{at(user_origin())}")
    steps = ranges.range(maximum(count, to(0, dtypes.int64)))
    return _fresh(cast(first + cast(steps, first.dtype) * by, wanted))


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return array(a)


def require(a: Any, dtype: Any = None, requirements: Any = None, **options: Any) -> Any:
    return asarray(a, dtype)


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True,
    **options: Any,
) -> Any:  # fmt: skip
    """``as_strided``: elements of an array by their distance in memory, to read until it changes.

    Raises:
        TypeError: the array is not contiguous, or sizes or strides are only known to the run.
    """
    array = x if isinstance(x, Array) else asarray(x)
    sizes = array.shape if shape is None else shape
    steps = array.strides if strides is None else strides
    if is_traced([*sizes, *steps]) or not array.is_contiguous:
        raise TypeError(
            "as_strided() takes contiguous arrays, and sizes and strides that are known while the "
            f"function is traced: use np.lib.stride_tricks.sliding_window_view{at(user_origin())}"
        )
    positions = convert_to_tensor(np.int64(0))
    for axis, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        if step % array.itemsize:
            raise ValueError(f"a stride of {step} bytes ends in an element{at(user_origin())}")
        along = ranges.range(convert_to_tensor(np.int64(size))) * (step // array.itemsize)
        positions = positions + reshape_to(along, (size, *(1,) * (len(sizes) - axis - 1)))
    found = gathered(reshape_to(array.tensor, (product(array.dims),)), positions)
    return Array(CopiedStorage(found, [array.storage]))


def isscalar(element: Any) -> bool:
    """Whether a value is a number and no array."""
    return bool(np.isscalar(element)) or (is_traced(element) and not isinstance(element, Array))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.lib.stride_tricks.as_strided: as_strided,
    np.require: require, np.asfortranarray: asarray, np.isscalar: isscalar,
    np.iterable: lambda y: bool(getattr(y, "ndim", 1)) if is_traced(y) else np.iterable(y),
    np.zeros: zeros, np.ones: ones, np.empty: zeros, np.full: full, np.eye: eye,
    np.identity: identity_matrix, np.array: array, np.asarray: asarray, np.arange: arange,
    np.asanyarray: asarray, np.ascontiguousarray: asarray, np.copy: copy,
    np.zeros_like: zeros_like, np.ones_like: ones_like, np.empty_like: zeros_like,
    np.full_like: full_like,
}  # fmt: skip
