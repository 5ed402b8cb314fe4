"""Dawson's, Fresnel's and the exponential integral, and Spence's function, by Chebyshev series."""

from __future__ import annotations

import math
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import cos, exp, log, sin, square
from treadle.ops.op_makers import Public, unary
from treadle.ops.registry import OpCall
from treadle.ops.special.coefficients import (
    DAWSON_JOINT,
    DAWSON_LARGE,
    DAWSON_SMALL,
    EXPINT_JOINTS,
    EXPINT_LARGE,
    EXPINT_MIDDLE,
    EXPINT_SMALL,
    EXPINT_ZERO,
    FRESNEL_C_SMALL,
    FRESNEL_F,
    FRESNEL_G,
    FRESNEL_JOINT,
    FRESNEL_S_SMALL,
    SPENCE,
)
from treadle.ops.special.formulas import Arithmetic, chebyshev, formula_op


def _dawsn(m: Arithmetic, x: Any) -> Any:
    """``x / (1 + 2 x x)`` times a function that is about 1 everywhere."""
    size = m.abs(x)
    near = size <= DAWSON_JOINT
    small, large = m.where(near, size, 0.0), m.where(size > DAWSON_JOINT, size, DAWSON_JOINT)
    inside = chebyshev(DAWSON_SMALL, small * small * (2.0 / DAWSON_JOINT**2) - 1.0)
    inverse = DAWSON_JOINT / large
    outside = chebyshev(DAWSON_LARGE, 2.0 * inverse * inverse - 1.0)
    found = m.where(near, small * inside / (1.0 + 2.0 * small * small), 0.5 / large * outside)
    return m.where(x == x, m.where(x < 0.0, -found, found), math.nan)


def _expint(m: Arithmetic, x: Any) -> Any:
    first, second = EXPINT_JOINTS
    small = m.where((x > 0.0) & (x <= first), x, first)
    zero, rest = EXPINT_ZERO  # where it is 0: a float64, and what that lacks
    away = (small - zero) - rest
    # the logarithm of small / zero, which log1p knows best where it is about 1
    ratio = away / zero
    logarithm = m.where(m.abs(ratio) < 0.5, m.log1p(ratio), m.log(small / zero))
    near = logarithm + away * chebyshev(EXPINT_SMALL, small * (2.0 / first) - 1.0)
    middle = m.where((x > first) & (x <= second), x, first)
    between = chebyshev(EXPINT_MIDDLE, (middle - first) * (2.0 / (second - first)) - 1.0)
    large = m.where(x > second, x, second)
    beyond = chebyshev(EXPINT_LARGE, 2.0 * second / large - 1.0)
    far = m.where(x <= second, between / middle, beyond / large)
    half = m.exp(0.5 * m.where(x <= second, middle, large))  # its square may overflow too early
    found = m.where(x <= first, near, far * half * half)
    found = m.where(x == math.inf, math.inf, found)
    return m.where(x > 0.0, found, m.where(x == 0.0, -math.inf, math.nan))


def _fresnel(m: Arithmetic, x: Any, is_sine: bool) -> Any:
    size = m.abs(x)
    near = size <= FRESNEL_JOINT
    small = m.where(near, size, 0.0)
    at = (small * small) * (small * small) * (2.0 / FRESNEL_JOINT**4) - 1.0
    if is_sine:
        inside = small * small * small * chebyshev(FRESNEL_S_SMALL, at)
    else:
        inside = small * chebyshev(FRESNEL_C_SMALL, at)
    large = m.where((size > FRESNEL_JOINT) & (size < math.inf), size, FRESNEL_JOINT)
    part = FRESNEL_JOINT / large
    at = 2.0 * part * part - 1.0
    f = chebyshev(FRESNEL_F, at) / (math.pi * large)
    g = chebyshev(FRESNEL_G, at) / (math.pi**2 * large * large * large)
    whole = large * large  # a quarter of a turn for each 1
    turn = 0.5 * math.pi * (whole - 4.0 * m.floor(0.25 * whole))
    sine, cosine = m.sin(turn), m.cos(turn)
    wave = -f * cosine - g * sine if is_sine else f * sine - g * cosine
    outside = m.where(size == math.inf, 0.5, 0.5 + wave)
    found = m.where(near, inside, outside)
    return m.where(x == x, m.where(x < 0.0, -found, found), math.nan)


def _fresnel_sin(m: Arithmetic, x: Any) -> Any:
    return _fresnel(m, x, is_sine=True)


def _fresnel_cos(m: Arithmetic, x: Any) -> Any:
    return _fresnel(m, x, is_sine=False)


def _spence(m: Arithmetic, x: Any) -> Any:
    """The dilogarithm of 1 - x: that of 1 / x and of 1 - x bring x into [1/2, 3/2]."""
    y = m.where(x > 1.5, 1.0 / m.where(x > 1.5, x, 1.0), x)
    low = y < 0.5
    w = m.where(low, -y, y - 1.0)
    series = -w * chebyshev(SPENCE, 2.0 * w)
    inner = m.where(y > 0.0, y, 1.0)
    turned = math.pi**2 / 6 - m.log(inner) * m.log1p(-m.where(low, y, 0.0)) - series
    found = m.where(low, turned, series)
    logarithm = m.log(m.where(x > 1.5, x, 1.0))
    found = m.where(x > 1.5, -0.5 * logarithm * logarithm - found, found)
    return m.where(x >= 0.0, found, math.nan)


def _grad_dawsn(call: OpCall, dy: Tensor) -> list[Any]:
    (x,), (y,) = call.inputs, call.outputs
    return [dy * (1 - 2 * x * y)]


def _grad_expint(call: OpCall, dy: Tensor) -> list[Any]:
    (x,) = call.inputs
    return [dy * exp(x) / x]


def _grad_fresnel_sin(call: OpCall, dy: Tensor) -> list[Any]:
    return [dy * sin(math.pi / 2 * square(call.inputs[0]))]


def _grad_fresnel_cos(call: OpCall, dy: Tensor) -> list[Any]:
    return [dy * cos(math.pi / 2 * square(call.inputs[0]))]


def _grad_spence(call: OpCall, dy: Tensor) -> list[Any]:
    (x,) = call.inputs
    one = equal(x, 1)
    slope = log(x) / where(one, 1, 1 - x)
    return [dy * where(one, convert_to_tensor(-1, x.dtype), slope)]


dawsn: Public = unary(
    formula_op("dawsn", _dawsn, _grad_dawsn),
    "Dawson's integral: exp(-x * x) times the integral of exp(t * t) from 0 to x.",
)
expint: Public = unary(
    formula_op("expint", _expint, _grad_expint),
    "The exponential integral Ei of positive numbers: that of exp(t) / t from -inf to x.",
)
fresnel_cos: Public = unary(
    formula_op("fresnel_cos", _fresnel_cos, _grad_fresnel_cos),
    "Fresnel's integral of cos(pi * t * t / 2) from 0 to x.",
)
fresnel_sin: Public = unary(
    formula_op("fresnel_sin", _fresnel_sin, _grad_fresnel_sin),
    "Fresnel's integral of sin(pi * t * t / 2) from 0 to x.",
)
spence: Public = unary(
    formula_op("spence", _spence, _grad_spence),
    "Spence's integral of log(t) / (1 - t) from 1 to x, for x >= 0: the dilogarithm of 1 - x.",
)
