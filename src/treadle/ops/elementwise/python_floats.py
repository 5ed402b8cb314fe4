"""What Python and NumPy compute of floats otherwise than TensorFlow."""

from __future__ import annotations

import math

import numpy as np

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise import arithmetic, complex_numbers, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where


def _like(value: float, x: Tensor) -> Tensor:
    return convert_to_tensor(value, x.dtype)


def floor_quotient(x: Tensor, y: Tensor) -> Tensor:
    """``x // y``, which is what the remainder leaves: ``1.0 // 0.1`` is 9."""
    zero, one, half = (_like(v, x) for v in (0.0, 1.0, 0.5))
    rest = arithmetic.truncatemod(x, y)
    quotient = (x - rest) / y
    opposite = (rest != zero) & ((rest < zero) != (y < zero))
    quotient = where(opposite, quotient - one, quotient)
    whole = unary.floor(quotient)
    whole = where(quotient - whole > half, whole + one, whole)
    plain = x / y
    whole = where(quotient == zero, plain * zero, whole)
    return where(y == zero, plain, whole)


def log_of_base(x: Tensor, base: float) -> Tensor:
    """A logarithm that is whole for powers of the base."""
    found = unary.log(x) / _like(math.log(base), x)
    whole = unary.round(found)
    near = _like(2 * float(np.finfo(x.dtype.np_dtype).eps), x) * unary.abs(whole)
    return where(unary.abs(found - whole) <= near, whole, found)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """``sqrt(x * x + y * y)`` without overflow of the squares."""
    wide = x.dtype if x.dtype.size >= 4 else dtypes.float32
    return cast(unary.abs(complex_numbers.complex(cast(x, wide), cast(y, wide))), x.dtype)
