"""Arrays that a jitted function finds by name: what they hold is read at each call."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import from_array
from treadle.jitted.arrays import Array
from treadle.jitted.storage import Storage
from treadle.ops.elementwise import identity


class CapturedStorage(Storage):
    """The elements of an array that is no argument: they can be read only."""

    __slots__ = ()

    def write(self, tensor: Any) -> None:
        raise TypeError(
            "A jitted function changes an array in place that is not one of its arguments: pass "
            f"the array as an argument{at(user_origin())}"
        )


class _Captured(threading.local):
    """The arrays that the trace of this thread has captured, by id."""

    def __init__(self) -> None:
        self.arrays: dict[int, tuple[Any, Array]] = {}


captured = _Captured()


def captured_array(value: np.ndarray[Any, Any]) -> Array:
    """The traced array for one that the function found by name; one for each object."""
    from treadle.core.context import context

    builder: Any = context.recorder
    if builder is None:
        return value  # type: ignore[return-value]
    known = captured.arrays.get(id(value))
    if known is None:
        dtypes.as_dtype(value.dtype)
        tensor = from_array(value)
        root = builder
        while root.parent is not None:
            root = root.parent
        known = captured.arrays[id(value)] = value, Array(CapturedStorage(root.capture(tensor)))
    return known[1]


_ = identity
