"""Powers of two tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import common_dtype
from treadle.ops.elementwise.arithmetic import equal_zero, ones_for, zeros_for
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import log, square
from treadle.ops.op_makers import binary_op
from treadle.ops.properties import Refusal
from treadle.ops.registry import run


def _eager_pow(x: NDArray, y: NDArray) -> NDArray:
    if x.dtype.kind == "i" and y.size and y.min() < 0:
        raise errors.InvalidArgumentError(None, None, "integers to negative integer powers")
    if y.ndim == 0 and x.dtype.kind == "f" and y == 0.5:
        # NumPy takes the root, which differs from the power at -0 and at -infinity.
        return np.where(x == -np.inf, -x, np.sqrt(x + x.dtype.type(0)))
    return np.power(x, y)


def _grad_pow(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    def by_base() -> Tensor:
        # y == 0 has slope 0, also where x ** -1 is infinite.
        zero = equal_zero(y)
        exponent = where(zero, ones_for(y), y - 1)
        return dz * conj(where(zero, zeros_for(y), y) * pow(x, exponent))

    def by_exponent() -> Tensor:
        positive = x > 0 if not x.dtype.is_complex else x != 0
        safe = where(positive, x, ones_for(x))
        return dz * conj(z * where(positive, log(safe), zeros_for(x)))

    return by_base, by_exponent


POW = binary_op(
    "pow", _eager_pow, "fciu", "pow", _grad_pow, refuses=Refusal.EXPONENT, neutral=(None, 1.0)
)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x ** y. InvalidArgumentError for integers to negative powers."""
    squared: Any = y == 2 if isinstance(y, int | float) else False
    if hasattr(squared, "leave_open"):  # an exponent that only the running program knows
        squared.leave_open("an exponent, which gives other bits where it is 2")
    elif squared:
        return square(x)
    a, b = common_dtype("pow", x, y)
    return run(POW, a, b)  # type: ignore[no-any-return]
