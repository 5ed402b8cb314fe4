"""Modified Bessel functions of the first kind, of orders 0 and 1, by Chebyshev series: exp(-x) I(x)
up to 8 and sqrt(x) exp(-x) I(x) in powers of 8 / x beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import sign
from treadle.ops.op_makers import Public, unary
from treadle.ops.registry import OpCall
from treadle.ops.special.coefficients import I0_LARGE, I0_SMALL, I1_LARGE, I1_SMALL
from treadle.ops.special.formulas import Arithmetic, chebyshev, formula_op

_JOINT = 8.0


def _scaled(
    m: Arithmetic, size: Any, small: Sequence[float], large: Sequence[float], factor: Any
) -> Any:
    near = factor * chebyshev(small, m.where(size <= _JOINT, size, 0.0) * (2 / _JOINT) - 1.0)
    inverse = _JOINT / m.where(size > _JOINT, size, _JOINT)
    far = chebyshev(large, 2.0 * inverse - 1.0) / m.sqrt(size)
    return m.where(size <= _JOINT, near, far)


def _i0e(m: Arithmetic, x: Any) -> Any:
    return _scaled(m, m.abs(x), I0_SMALL, I0_LARGE, 1.0)


def _i1e(m: Arithmetic, x: Any) -> Any:
    size = m.abs(x)
    found = _scaled(m, size, I1_SMALL, I1_LARGE, size)
    return m.where(x < 0.0, -found, found)


def _grown(m: Arithmetic, scaled: Any, x: Any) -> Any:
    """A scaled function times exp(abs(x)), which may be infinite where their product is not."""
    half = m.exp(0.5 * m.abs(x))
    return m.where(
        m.abs(x) == math.inf, m.where(scaled < 0.0, -math.inf, x * x), scaled * half * half
    )


def _i0(m: Arithmetic, x: Any) -> Any:
    return _grown(m, _i0e(m, x), x)


def _i1(m: Arithmetic, x: Any) -> Any:
    return _grown(m, _i1e(m, x), x)


def _over(y: Tensor, x: Tensor) -> Tensor:
    """``y / x`` for a function y of x with slope 1/2 at 0."""
    zero = equal(x, 0)
    return where(zero, convert_to_tensor(0.5, x.dtype), y / where(zero, 1, x))


def _grad_i0e(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (bessel_i1e(x) - sign(x) * y)]


def _grad_i1e(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (bessel_i0e(x) - sign(x) * y - _over(y, x))]


def _grad_i1(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (bessel_i0(x) - _over(y, x))]


bessel_i0e: Public = unary(
    formula_op("bessel_i0e", _i0e, _grad_i0e),
    "exp(-abs(x)) times the modified Bessel function of order 0.",
)
bessel_i1e: Public = unary(
    formula_op("bessel_i1e", _i1e, _grad_i1e),
    "exp(-abs(x)) times the modified Bessel function of order 1.",
)
bessel_i0: Public = unary(
    formula_op("bessel_i0", _i0, lambda call, dy: [dy * bessel_i1(call.inputs[0])]),
    "The modified Bessel function of the first kind, of order 0.",
)
bessel_i1: Public = unary(
    formula_op("bessel_i1", _i1, _grad_i1),
    "The modified Bessel function of the first kind, of order 1.",
)
