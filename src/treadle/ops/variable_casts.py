"""``td.cast``, which gives variables of the dtype back themselves."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.keras_generation import generation
from treadle.core.tensor import Tensor
from treadle.ops.elementwise import casting
from treadle.ops.state import Variable


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`x` in another dtype; of `IndexedSlices` the rows.

    A variable that has the dtype is given back itself, so that who reads it later sees what was
    assigned in between; of Keras's weights and of variables of strategies the value.

    Floats become integers by truncation towards zero, saturating at the range's ends (NaN gives
    0); complex numbers become real by dropping the imaginary part; anything but 0 is True.
    """
    if isinstance(x, Variable) and x.dtype is dtypes.as_dtype(dtype) and _is_given_back(x):
        return x  # type: ignore[return-value]
    return casting.cast(x, dtype)


def _is_given_back(x: Variable) -> bool:
    return x._is_plain and (x.path is None or generation.is_2)
