"""Inverse trigonometric and hyperbolic functions, sinh, cosh and erfc, in float64 lanes.

float32 operands are widened, which makes these correctly rounded but for rare ties.
"""

from __future__ import annotations

import math

from treadle.runtime.cpu import coefficients as C
from treadle.runtime.cpu.lanes import Lanes, Number
from treadle.runtime.cpu.vector_math import INF, exp, expm1, horner, log, log1p

# 64 log(2) in so few bits that taking it from a large number is exact, and half of what
# exp(_FAR) / 2**64 is.
_FAR, _HALF_FAR = 44.36141955573112, 0.499999999947309
_HALF_PI, _HALF_PI_LOW = math.pi / 2, 6.123233995736766e-17


def atan(v: Lanes, x: Number) -> str:
    a = v.abs(x)
    over = v.compare("ogt", a, 1.0)
    a = v.select(over, v.div(1.0, a), a)
    upper = v.compare("ogt", a, math.sqrt(2) - 1)  # atan(a) = pi/4 + atan((a-1)/(a+1))
    t = v.select(upper, v.div(v.sub(a, 1.0), v.add(a, 1.0)), a)
    z = v.mul(t, t)
    r = v.fma(v.mul(z, horner(v, z, C.ATAN_D)), t, t)
    r = v.select(upper, v.add(math.pi / 4, v.add(r, _HALF_PI_LOW / 2)), r)
    r = v.select(over, v.sub(_HALF_PI, v.sub(r, _HALF_PI_LOW)), r)
    return v.copysign(r, x)


def atan2(v: Lanes, y: Number, x: Number) -> str:
    ax, ay = v.abs(x), v.abs(y)
    both_infinite = v.both(v.compare("oeq", ax, INF), v.compare("oeq", ay, INF))
    ax, ay = v.select(both_infinite, 1.0, ax), v.select(both_infinite, 1.0, ay)
    both_zero = v.both(v.compare("oeq", ax, 0.0), v.compare("oeq", ay, 0.0))
    r = atan(v, v.select(both_zero, 0.0, v.div(ay, ax)))
    left = v.int_compare("slt", v.bits_of(x), 0)
    r = v.select(left, v.sub(math.pi, v.sub(r, 2 * _HALF_PI_LOW)), r)
    return v.select(v.compare("uno", x, y), v.add(x, y), v.copysign(r, y))


def asin(v: Lanes, x: Number) -> str:
    return atan(v, v.div(x, v.sqrt(v.mul(v.sub(1.0, x), v.add(1.0, x)))))


def acos(v: Lanes, x: Number) -> str:
    r = atan(v, v.sqrt(v.div(v.sub(1.0, x), v.add(1.0, x))))
    return v.add(r, r)


def sinh(v: Lanes, x: Number) -> str:
    a = v.abs(x)
    e = expm1(v, a)
    small = v.mul(v.add(e, v.div(e, v.add(e, 1.0))), 0.5)
    return v.copysign(v.select(v.compare("olt", a, 22.0), small, _half_exp(v, a)), x)


def cosh(v: Lanes, x: Number) -> str:
    h = _half_exp(v, v.abs(x))
    return v.add(h, v.div(0.25, h))


def _half_exp(v: Lanes, a: Number) -> str:
    """exp(a)/2, which may be finite where exp(a) is not."""
    far = v.compare("ogt", a, 700.0)
    e = exp(v, v.select(far, v.sub(a, _FAR), a))
    return v.mul(v.mul(e, v.select(far, _HALF_FAR, 0.5)), v.select(far, 2.0**64, 1.0))


def asinh(v: Lanes, x: Number) -> str:
    a = v.abs(x)
    big = v.compare("ogt", a, 1e8)
    b = v.select(big, 1.0, a)
    z = v.mul(b, b)
    r = log1p(v, v.add(b, v.div(z, v.add(v.sqrt(v.add(z, 1.0)), 1.0))))
    return v.copysign(v.select(big, v.add(log(v, a), math.log(2)), r), x)


def acosh(v: Lanes, x: Number) -> str:
    big = v.compare("ogt", x, 1e8)
    t = v.sub(v.select(big, 2.0, x), 1.0)
    r = log1p(v, v.add(t, v.sqrt(v.fma(t, t, v.add(t, t)))))
    r = v.select(big, v.add(log(v, x), math.log(2)), r)
    return v.select(v.compare("olt", x, 1.0), math.nan, r)


def atanh(v: Lanes, x: Number) -> str:
    a = v.abs(x)
    r = log1p(v, v.div(v.add(a, a), v.sub(1.0, a)))
    return v.copysign(v.mul(r, 0.5), x)


def erfc(v: Lanes, x: Number) -> str:
    a = v.at_most(v.abs(x), 27.5)
    z = v.mul(a, a)
    near = v.fma(horner(v, z, C.ERF_SMALL_D), a, a)  # erf, used up to 0.5
    t = v.div(v.sub(a, 2.0), v.add(a, 2.0))
    lost = v.fma(a, a, v.neg(z))
    e = exp(v, v.neg(z), nonpositive=True)
    far = v.mul(v.fma(v.neg(e), lost, e), horner(v, t, C.ERFC_WIDE_D))
    positive = v.select(v.compare("olt", a, 0.5), v.sub(1.0, near), far)
    small = v.compare("olt", a, 0.5)
    negative = v.select(small, v.add(1.0, near), v.sub(2.0, far))
    return v.select(v.compare("olt", x, 0.0), negative, positive)
