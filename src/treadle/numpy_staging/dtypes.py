"""NumPy's view of arguments: arrays in NumPy's dtypes, promoted as NumPy promotes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor, has_dtype, is_converted_by_user
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.python_numbers import SymbolicNumber
from treadle.ops.shaping.joining import stack

_WEAK = (int, float, complex)  # Python numbers, which take the arrays' precision


def is_weak(value: Any) -> bool:
    """Whether a value is a Python number, known or symbolic, which takes the arrays' precision."""
    return (value.kind if type(value) is SymbolicNumber else type(value)) in _WEAK


def _weak_type(value: Any) -> Any:
    return value.kind if type(value) is SymbolicNumber else type(value)


def as_array(value: Any) -> Tensor:
    """`value` as a tensor in the dtype that NumPy gives it: a Python float is float64."""
    if has_dtype(value):
        return convert_to_tensor(value)
    if type(value) is SymbolicNumber:
        return value.tensor()
    if isinstance(value, list | tuple) and holds_tensor(value):
        return stack(promoted([as_array(v) for v in value]))
    if is_converted_by_user(value):
        return convert_to_tensor(value)
    return convert_to_tensor(np.asarray(value))


def holds_tensor(value: Any) -> bool:
    """Whether NumPy would make an array of objects of a value: it is a tensor, a number of the run
    or an object that a program's function converts, or a list that holds such."""
    if isinstance(value, list | tuple):
        return any(holds_tensor(v) for v in value)
    return has_dtype(value) or type(value) is SymbolicNumber or is_converted_by_user(value)


def numpy_dtype(value: Any) -> Any:
    """The NumPy dtype of an argument, or the Python type of a plain number."""
    if is_weak(value):
        return _weak_type(value)
    return as_array(value).dtype.np_dtype if not has_dtype(value) else value.dtype.np_dtype


def result_dtype(*values: Any) -> DType:
    """What NumPy computes these arrays and numbers in."""
    kinds = [_weak_type(v)() if is_weak(v) else numpy_dtype(v) for v in values]
    return dtypes.as_dtype(np.result_type(*kinds))


def promoted(values: Sequence[Any]) -> list[Tensor]:
    """The arguments as tensors of their common dtype."""
    dtype = result_dtype(*values)
    return [to(v, dtype) for v in values]


def to(value: Any, dtype: Any) -> Tensor:
    """An argument as a tensor of a dtype."""
    wanted = dtypes.as_dtype(dtype)
    if type(value) is SymbolicNumber:
        return cast(value.tensor(), wanted)
    if is_weak(value):
        return convert_to_tensor(np.asarray(value).astype(wanted.np_dtype))
    return cast(as_array(value), wanted)


def sum_dtype(x: Tensor) -> DType:
    """The dtype of NumPy's sums and products: narrow integers are widened."""
    if x.dtype.is_bool or (x.dtype.kind == "i" and x.dtype.size < 8):
        return dtypes.int64
    return dtypes.uint64 if x.dtype.kind == "u" else x.dtype


def floating(x: Tensor) -> Tensor:
    """`x`, integers and bools as float64."""
    return cast(x, dtypes.float64) if x.dtype.is_integer or x.dtype.is_bool else x
