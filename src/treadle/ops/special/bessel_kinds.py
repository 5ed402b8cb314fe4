"""Bessel functions of orders 0 and 1: those of the first and second kind, J and Y, and modified
ones of the second kind, K.

J and Y are Chebyshev series in the square of x up to 8, and beyond a wave whose amplitude and
phase are series in powers of 8 / x (Hankel's form). K is a series in the square of x and a
logarithm up to 2, and sqrt(x) exp(x) K(x) a series in powers of 2 / x beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.op_makers import Public, unary
from treadle.ops.registry import OpCall
from treadle.ops.special.coefficients import (
    HANKEL_P0,
    HANKEL_P1,
    HANKEL_Q0,
    HANKEL_Q1,
    J0_SMALL,
    J1_SMALL,
    K0_LARGE,
    K0_SMALL,
    K1_LARGE,
    K1_SMALL,
    SMALL_I0,
    SMALL_I1,
    Y0_SMALL,
    Y1_SMALL,
)
from treadle.ops.special.formulas import Arithmetic, chebyshev, formula_op

_WAVES = 8.0  # from here on J and Y are waves
_DECAY = 2.0  # from here on K is an exponential
_HALVED = math.sqrt(0.5)


def _of_square(coefficients: Sequence[float], x: Any, end: float) -> Any:
    """A Chebyshev series in the square of x, for x in [0, end]."""
    return chebyshev(coefficients, x * x * (2.0 / end**2) - 1.0)


def _wave(m: Arithmetic, size: Any, order: int) -> tuple[Any, Any]:
    """J and Y of numbers from 8 on."""
    p, q = ((HANKEL_P0, HANKEL_Q0), (HANKEL_P1, HANKEL_Q1))[order]
    inverse = _WAVES / size
    at = 2.0 * inverse * inverse - 1.0
    amplitude, lag = chebyshev(p, at), inverse * chebyshev(q, at)
    sine, cosine = m.sin(size), m.cos(size)
    # cos and sin of x - pi / 4 - order * pi / 2, without the rounding of that difference
    along, across = (cosine + sine) * _HALVED, (sine - cosine) * _HALVED
    if order:
        along, across = across, -along
    scale = m.sqrt((2.0 / math.pi) / size)
    return scale * (amplitude * along - lag * across), scale * (amplitude * across + lag * along)


def _parts(m: Arithmetic, x: Any, end: float) -> tuple[Any, Any, Any]:
    """Where abs(x) is at most `end`, and abs(x) within it and beyond it: elsewhere `end`, where all
    of the series are finite."""
    size = m.abs(x)
    near = size <= end
    return near, m.where(near, size, end), m.where(size > end, size, end)


def _j0(m: Arithmetic, x: Any) -> Any:
    near, small, large = _parts(m, x, _WAVES)
    far = m.where(large == math.inf, 0.0, _wave(m, large, 0)[0])
    return m.where(near, _of_square(J0_SMALL, small, _WAVES), m.where(x == x, far, math.nan))


def _j1(m: Arithmetic, x: Any) -> Any:
    size, (near, small, large) = m.abs(x), _parts(m, x, _WAVES)
    far = m.where(large == math.inf, 0.0, _wave(m, large, 1)[0])
    found = m.where(near, small * _of_square(J1_SMALL, small, _WAVES), far)
    found = m.where(size == 0.0, x, m.where(x < 0.0, -found, found))  # -0 of -0
    return m.where(x == x, found, math.nan)


def _positive(m: Arithmetic, x: Any, found: Any, at_zero: float) -> Any:
    """A function of positive numbers; NaN for NaN."""
    return m.where(x > 0.0, found, m.where(x == x, at_zero, math.nan))


def _y0(m: Arithmetic, x: Any) -> Any:
    near, small, large = _parts(m, x, _WAVES)
    known = (2.0 / math.pi) * m.log(small) * _of_square(J0_SMALL, small, _WAVES)
    far = m.where(large == math.inf, 0.0, _wave(m, large, 0)[1])
    found = m.where(near, known + _of_square(Y0_SMALL, small, _WAVES), far)
    return _positive(m, x, found, -math.inf)


def _y1(m: Arithmetic, x: Any) -> Any:
    near, small, large = _parts(m, x, _WAVES)
    j1 = small * _of_square(J1_SMALL, small, _WAVES)
    known = (2.0 / math.pi) * (m.log(small) * j1 - 1.0 / small)
    far = m.where(large == math.inf, 0.0, _wave(m, large, 1)[1])
    found = m.where(near, known + small * _of_square(Y1_SMALL, small, _WAVES), far)
    return _positive(m, x, found, -math.inf)


def _k0_near(m: Arithmetic, small: Any) -> Any:
    known = m.log(0.5 * small) * _of_square(SMALL_I0, small, _DECAY)
    return _of_square(K0_SMALL, small, _DECAY) - known


def _k1_near(m: Arithmetic, small: Any) -> Any:
    known = m.log(0.5 * small) * small * _of_square(SMALL_I1, small, _DECAY)
    return known + 1.0 / small + small * _of_square(K1_SMALL, small, _DECAY)


def _decaying(
    m: Arithmetic, x: Any, near: Any, coefficients: Sequence[float], scaled: bool
) -> Any:
    """K of positive numbers, times exp(x) if it is `scaled`."""
    is_near, small, large = _parts(m, x, _DECAY)
    close, far = near(m, small), chebyshev(coefficients, 2.0 * _DECAY / large - 1.0)
    far = far / m.sqrt(large)
    if scaled:
        close = close * m.exp(small)
    else:
        far = far * m.exp(-large)
    return _positive(m, x, m.where(is_near, close, far), math.inf)


def _k0(m: Arithmetic, x: Any) -> Any:
    return _decaying(m, x, _k0_near, K0_LARGE, scaled=False)


def _k0e(m: Arithmetic, x: Any) -> Any:
    return _decaying(m, x, _k0_near, K0_LARGE, scaled=True)


def _k1(m: Arithmetic, x: Any) -> Any:
    return _decaying(m, x, _k1_near, K1_LARGE, scaled=False)


def _k1e(m: Arithmetic, x: Any) -> Any:
    return _decaying(m, x, _k1_near, K1_LARGE, scaled=True)


def _grad_j1(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    zero = equal(x, 0)
    slope = bessel_j0(x) - y / where(zero, 1, x)
    return [dy * where(zero, convert_to_tensor(0.5, x.dtype), slope)]


def _grad_k0e(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (y - bessel_k1e(x))]


def _grad_k1(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (-bessel_k0(x) - y / x)]


def _grad_k1e(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (y * (1 - 1 / x) - bessel_k0e(x))]


def _grad_y1(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (bessel_y0(x) - y / x)]


bessel_j0: Public = unary(
    formula_op("bessel_j0", _j0, lambda call, dy: [-dy * bessel_j1(call.inputs[0])]),
    "The Bessel function of the first kind, of order 0.",
)
bessel_j1: Public = unary(
    formula_op("bessel_j1", _j1, _grad_j1), "The Bessel function of the first kind, of order 1."
)
bessel_y0: Public = unary(
    formula_op("bessel_y0", _y0, lambda call, dy: [-dy * bessel_y1(call.inputs[0])]),
    "The Bessel function of the second kind, of order 0, of positive numbers.",
)
bessel_y1: Public = unary(
    formula_op("bessel_y1", _y1, _grad_y1),
    "The Bessel function of the second kind, of order 1, of positive numbers.",
)
bessel_k0: Public = unary(
    formula_op("bessel_k0", _k0, lambda call, dy: [-dy * bessel_k1(call.inputs[0])]),
    "The modified Bessel function of the second kind, of order 0, of positive numbers.",
)
bessel_k0e: Public = unary(
    formula_op("bessel_k0e", _k0e, _grad_k0e),
    "exp(x) times the modified Bessel function of the second kind, of order 0.",
)
bessel_k1: Public = unary(
    formula_op("bessel_k1", _k1, _grad_k1),
    "The modified Bessel function of the second kind, of order 1, of positive numbers.",
)
bessel_k1e: Public = unary(
    formula_op("bessel_k1e", _k1e, _grad_k1e),
    "exp(x) times the modified Bessel function of the second kind, of order 1.",
)
