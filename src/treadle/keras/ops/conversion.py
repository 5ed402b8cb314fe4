"""Arguments of `keras.ops` as tensors of the dtypes that Keras computes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.config import floatx
from treadle.keras.promotion import dtype_of, is_int_dtype, result_type, standardize_dtype


def tensor(x: Any, dtype: Any = None) -> td.Tensor:
    """A value as a tensor; where a dtype is given, of that dtype, whatever it was before.

    Sparse and ragged tensors stay what they are.
    """
    if isinstance(x, td.Tensor) and dtype is None:
        return x
    if dtype is None:
        return x if is_composite(x) else td.convert_to_tensor(x)
    name = standardize_dtype(dtype)
    if is_composite(x):
        return td.cast(x, name)
    if isinstance(x, td.Tensor | td.Variable | np.ndarray) or name == "bool" or is_int_dtype(name):
        return td.cast(td.convert_to_tensor(x), name)
    return td.convert_to_tensor(x, name)


def is_composite(x: Any) -> bool:
    """Whether it is a sparse or ragged tensor, which is no array."""
    return td.is_tensor(x) and not isinstance(x, td.Tensor | td.Variable)


def together(*values: Any) -> tuple[td.Tensor, ...]:
    """The values in their common dtype; Python's numbers follow the others."""
    xs = [x if type(x) in (int, float) else tensor(x) for x in values]
    dtype = result_type(*map(dtype_of, xs))
    return tuple(tensor(x, dtype) for x in xs)


def tensors(*values: Any, beside: tuple[Any, ...] = ()) -> tuple[td.Tensor, ...]:
    """The values in the common dtype that they have as tensors, and of the dtypes `beside`."""
    xs = [tensor(x) for x in values]
    dtype = result_type(*(x.dtype for x in xs), *beside)
    return tuple(td.cast(x, dtype) for x in xs)


def floats(x: Any) -> td.Tensor:
    """Integers and bools as floats, int64 among them as `floatx`."""
    x = tensor(x)
    return td.cast(x, floatx() if x.dtype == td.int64 else result_type(x.dtype, float))


def ints_as_floatx(x: Any) -> td.Tensor:
    """Integers and bools in `floatx`."""
    x = tensor(x)
    return td.cast(x, floatx()) if x.dtype.is_integer or x.dtype == td.bool else x


def wide(dtype: Any) -> str:
    """The dtype of sums and products: small integers are added up in 32 bits."""
    name = standardize_dtype(dtype)
    if name in ("bool", "int8", "int16"):
        return "int32"
    return "uint32" if name in ("uint8", "uint16") else name


def floats_of(dtype: Any) -> str:
    """`floatx` for integers of up to 32 bits and bools, float64 for int64."""
    name = standardize_dtype(dtype)
    if name == "int64":
        return "float64"
    return floatx() if name == "bool" or is_int_dtype(name) else name


def by_numpy(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function of NumPy gives, as tensors."""
    found = function(*args, **kwargs)
    return td.nest.map_structure(tensor, found)


def axes_of(axis: Any, rank: int) -> list[int]:
    """Axes counted from the first one.

    Raises:
        ValueError: there is no such axis.
    """
    listed = [axis] if isinstance(axis, int | np.integer) else list(axis)
    for one in listed:
        if not -rank <= one < rank:
            raise ValueError(f"axis {one} is out of bounds for a tensor of rank {rank}")
    return [int(one) % rank for one in listed]
