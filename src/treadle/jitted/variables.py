"""Variables that stand for memory which a jitted function changes in place."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import BufferSpec
from treadle.ops.state import Variable, VariableAggregation, VariableSynchronization


def is_ready(array: Any) -> bool:
    return bool(array.flags.c_contiguous and array.dtype.isnative and type(array) is np.ndarray)


def native(array: Any) -> Any:
    """An array as programs read it: in row order, in the machine's byte order."""
    plain = np.asarray(array)
    return np.ascontiguousarray(plain, plain.dtype.newbyteorder("=")).reshape(plain.shape)


@functools.lru_cache(1024)
def _spec(dtype: Any, shape: tuple[int, ...]) -> BufferSpec:
    return BufferSpec(shape, dtypes.as_dtype(dtype))


def variable_over(array: Any) -> Variable:
    """A variable whose buffer is the array's own memory, which programs can write."""
    made = object.__new__(Variable)
    made._stands_for, made.told_apart = None, False
    made.spec = _spec(array.dtype, array.shape)
    made._use(array, shared=False)
    made.trainable, made.name, made.path, made.constraint = False, "array:0", None, None
    made.synchronization = VariableSynchronization.AUTO
    made.aggregation = VariableAggregation.NONE
    return made
