"""Functions of complex numbers as kernel expressions of their real and imaginary parts.

They follow C's rules for zeros, infinities and NaN (annex G) where NumPy does, and what NumPy
computes otherwise: its products have no special cases, its quotients are Smith's. Numbers whose
squares or exponentials leave the range are scaled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from treadle.core import dtypes
from treadle.kernel.functions import join_parts
from treadle.kernel.ir import Expr, apply, cast, const

Number: TypeAlias = "Real | float"


class Real(NamedTuple):
    """A float expression, with operators."""

    expr: Expr

    def of(self, other: Number) -> Expr:
        """A number as an expression of the same dtype."""
        return other.expr if isinstance(other, Real) else const(other, self.expr.dtype)

    def call(self, fn: str, *others: Number) -> Real:
        return Real(apply(fn, self.expr, *map(self.of, others)))

    def test(self, fn: str, other: Number) -> Expr:
        return apply(fn, self.expr, self.of(other))

    def __add__(self, other: Number) -> Real:  # type: ignore[override]
        return self.call("add", other)

    def __sub__(self, other: Number) -> Real:
        return self.call("sub", other)

    def __mul__(self, other: Number) -> Real:  # type: ignore[override]
        return self.call("mul", other)

    def __truediv__(self, other: Number) -> Real:
        return self.call("div", other)

    def __neg__(self) -> Real:
        return self.call("neg")

    def __abs__(self) -> Real:
        return self.call("abs")

    @property
    def is_finite(self) -> Expr:
        return apply("isfinite", self.expr)

    @property
    def is_infinite(self) -> Expr:
        return apply("isinf", self.expr)

    @property
    def is_zero(self) -> Expr:
        return self.test("eq", 0.0)

    def same(self, value: float) -> Real:
        """A constant of this dtype."""
        return Real(const(value, self.expr.dtype))

    def signed(self, sign: Real) -> Real:
        """The magnitude with the sign of another number, which may be a zero."""
        return self.call("copysign", sign)


class Complex(NamedTuple):
    """The two parts of a complex expression."""

    real: Real
    imag: Real

    def __add__(self, other: Complex) -> Complex:  # type: ignore[override]
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def __mul__(self, other: Complex) -> Complex:  # type: ignore[override]
        a, b, c, d = *self, *other
        return Complex(a * c - b * d, a * d + b * c)

    def __neg__(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def __truediv__(self, other: Complex) -> Complex:
        """Smith's quotient; by zero, as NumPy's."""
        a, b, c, d = *self, *other
        swap = abs(c).test("lt", abs(d))
        large, small = choose(swap, d, c), choose(swap, c, d)
        first, second = choose(swap, b, a), choose(swap, a, b)
        zero = both(c.is_zero, d.is_zero)
        ratio = small / large
        scale = c.same(1.0) / (large + small * ratio)
        cross, tilted = second, first * ratio
        imag = choose(swap, tilted - cross, cross - tilted)
        real = (first + second * ratio) * scale
        by_zero = abs(c)
        return Complex(choose(zero, a / by_zero, real), choose(zero, b / by_zero, imag * scale))

    def scaled(self, factor: Number) -> Complex:
        return Complex(self.real * factor, self.imag * factor)

    @property
    def times_i(self) -> Complex:
        return Complex(-self.imag, self.real)

    @property
    def over_i(self) -> Complex:
        return Complex(self.imag, -self.real)


def both(a: Expr, b: Expr) -> Expr:
    return apply("and", a, b)


def either(a: Expr, b: Expr) -> Expr:
    return apply("or", a, b)


def no(a: Expr) -> Expr:
    return apply("not", a)


def choose(condition: Expr, yes: Real, otherwise: Real) -> Real:
    return Real(apply("select", condition, yes.expr, otherwise.expr))


def choose_complex(condition: Expr, yes: Complex, otherwise: Complex) -> Complex:
    return Complex(
        choose(condition, yes.real, otherwise.real), choose(condition, yes.imag, otherwise.imag)
    )


def constant(z: Complex, value: complex) -> Complex:
    """A number of the dtype of `z`."""
    return Complex(z.real.same(value.real), z.real.same(value.imag))


# -- magnitudes ----------------------------------------------------------------------------------


def _is_wide(x: Real) -> bool:
    return x.expr.dtype is dtypes.float64


# Squares of numbers up to 2**limit, and of those down to its inverse, stay in the normal range:
# by the size of a float. Others are scaled by 2**shift, denormal ones too.
SCALE_LIMITS = {8: 500, 4: 60}
_SHIFTS = {8: 600, 4: 100}


def _scale(a: Real, b: Real, power: int) -> tuple[Real, Real]:
    """A power of two by which squares neither overflow nor vanish, and the inverse of its
    `power`-th root."""
    largest = choose(a.test("lt", b), b, a)
    limit = SCALE_LIMITS[a.expr.dtype.size]
    shift = _SHIFTS[a.expr.dtype.size]
    huge, tiny = largest.test("gt", 2.0**limit), largest.test("lt", 2.0**-limit)

    def pick(down: int, up: int) -> Real:
        return choose(huge, a.same(2.0**down), choose(tiny, a.same(2.0**up), a.same(1.0)))

    return pick(-shift, shift), pick(shift // power, -shift // power)


def magnitude(z: Complex) -> Real:
    """``hypot(real, imag)``: infinite where a part is, even if the other is NaN."""
    a, b = abs(z.real), abs(z.imag)
    scale, back = _scale(a, b, 1)
    x, y = a * scale, b * scale
    length = (x * x + y * y).call("sqrt") * back
    return choose(either(a.is_infinite, b.is_infinite), a.same(math.inf), length)


def argument(z: Complex) -> Real:
    return z.imag.call("atan2", z.real)


def sign(z: Complex) -> Complex:
    """``z / |z|``: 0 for 0, NaN where both parts are infinite."""
    size = magnitude(z)
    x, y = (choose(size.is_infinite, _direction(p), p / size) for p in z)
    nan = either(no(size.test("eq", size)), both(z.real.is_infinite, z.imag.is_infinite))
    unit = choose_complex(nan, constant(z, complex(math.nan, math.nan)), Complex(x, y))
    return choose_complex(size.is_zero, constant(z, 0), unit)


def _direction(part: Real) -> Real:
    return choose(part.is_infinite, part.same(1.0).signed(part), part.same(0.0))


# -- roots, exponentials, logarithms -------------------------------------------------------------


def sqrt(z: Complex) -> Complex:
    """The root with a real part >= 0."""
    x, y = z
    a, b = abs(x), abs(y)
    if _is_wide(x):
        scale, back = _scale(a, b, 2)
        a, b = a * scale, b * scale
    else:
        a, b = (Real(cast(p.expr, dtypes.float64)) for p in (a, b))
        back = a.same(1.0)
    # a + hypot cannot cancel; the other part follows by division.
    large = ((a + (a * a + b * b).call("sqrt")) * 0.5).call("sqrt")
    small = choose(large.is_zero, large.same(0.0), b / (large * 2.0))
    large, small = (Real(cast((p * back).expr, x.expr.dtype)) for p in (large, small))
    left = x.test("lt", 0.0)
    real, imag = choose(left, small, large), choose(left, large, small).signed(y)
    # C's rules: an infinite imaginary part decides alone, then an infinite real one.
    real = choose(x.is_infinite, choose(left, choose(y.is_finite, x.same(0.0), y * 0.0), x), real)
    zero = choose(y.is_finite, x.same(0.0).signed(y), y * 0.0)
    imag = choose(x.is_infinite, choose(left, x.same(math.inf).signed(y), zero), imag)
    vertical = y.is_infinite
    return Complex(choose(vertical, abs(y), real), choose(vertical, y, imag))


def _limit(x: Real) -> float:
    """Beyond this exp is near the end of the range, and is taken in two factors."""
    return 700.0 if _is_wide(x) else 80.0


def _exp_in_factors(x: Real) -> tuple[Real, Real]:
    """Two factors of ``exp(x)``, which do not overflow where their product with a number below 1
    does not."""
    limit = _limit(x)
    large = x.test("gt", limit)
    rest = choose(large, x - limit, x).call("exp")
    return rest, choose(large, x.same(math.exp(limit)), x.same(1.0))


def exp(z: Complex) -> Complex:
    x, y = z
    first, second = _exp_in_factors(x)
    real = first * y.call("cos") * second
    imag = first * y.call("sin") * second
    wild = no(y.is_finite)
    nothing = both(wild, x.test("eq", -math.inf))
    real = choose(nothing, x.same(0.0), choose(both(wild, x.test("eq", math.inf)), x, real))
    real = choose(y.is_zero, first * second, real)
    return Complex(real, choose(nothing, x.same(0.0), choose(y.is_zero, y, imag)))


def expm1(z: Complex) -> Complex:
    x, y = z
    half = (y * 0.5).call("sin")
    real = x.call("expm1") * y.call("cos") - half * half * 2.0
    return Complex(real, x.call("exp") * y.call("sin"))


def log(z: Complex) -> Complex:
    """Accurate also near the unit circle, where the magnitude's logarithm cancels."""
    a, b = abs(z.real), abs(z.imag)
    swap = a.test("lt", b)
    large, small = choose(swap, b, a), choose(swap, a, b)
    near = both(large.test("gt", 0.5), large.test("lt", 2.0))
    excess = (large - 1.0) * (large + 1.0) + small * small
    size = magnitude(z)
    if _is_wide(a):
        scale, _ = _scale(a, b, 1)
        # The logarithm of the magnitude before it is scaled back: denormal ones have few bits.
        x, y = a * scale, b * scale
        shift = choose(
            scale.test("eq", 1.0), a.same(0.0),
            choose(scale.test("lt", 1.0), a.same(600 * math.log(2)), a.same(-600 * math.log(2))),
        )  # fmt: skip
        whole = (x * x + y * y).call("log") * 0.5 + shift
        whole = choose(size.is_infinite, size, whole)
    else:
        whole = size.call("log")
    return Complex(choose(near, excess.call("log1p") * 0.5, whole), argument(z))


def log1p(z: Complex) -> Complex:
    return log(Complex(z.real + 1.0, z.imag))


def rsqrt(z: Complex) -> Complex:
    return reciprocal(sqrt(z))


def reciprocal(z: Complex) -> Complex:
    return constant(z, 1) / z


def square(z: Complex) -> Complex:
    a, b = z
    cross = a * b
    return Complex(a * a - b * b, cross + cross)


def squared_difference(z: Complex, w: Complex) -> Complex:
    difference = z - w
    return Complex(difference.real, -difference.imag) * difference


def divide_no_nan(z: Complex, w: Complex) -> Complex:
    zero = both(w.real.is_zero, w.imag.is_zero)
    return choose_complex(zero, constant(z, 0), z / choose_complex(zero, constant(w, 1), w))


def sigmoid(z: Complex) -> Complex:
    return reciprocal(constant(z, 1) + exp(-z))


MOST_POWER = 99  # a whole exponent up to this is a product, as in NumPy


def power(z: Complex, w: Complex) -> Complex:
    """Products for small whole exponents, ``exp(w * log(z))`` for others."""
    one = constant(z, 1)
    exponent, size = w.real, abs(w.real)
    whole = both(w.imag.is_zero, exponent.test("eq", exponent.call("trunc")))
    whole = both(whole, size.test("le", float(MOST_POWER)))
    bits = cast(choose(whole, size, size.same(0.0)).expr, dtypes.int32)
    product, factor = one, z
    for k in range(MOST_POWER.bit_length()):
        taken = apply("ne", apply("and", bits, const(1 << k, dtypes.int32)), _zero)
        product = choose_complex(taken, product * factor, product)
        factor = square(factor)
    product = choose_complex(exponent.test("lt", 0.0), one / product, product)
    result = choose_complex(whole, product, exp(w * log(z)))
    # Powers of zero: 1 for 0, 0 for a positive real part, NaN otherwise.
    nothing = both(z.real.is_zero, z.imag.is_zero)
    undefined = constant(z, complex(math.nan, math.nan))
    of_zero = choose_complex(exponent.test("gt", 0.0), constant(z, 0), undefined)
    result = choose_complex(nothing, of_zero, result)
    return choose_complex(both(exponent.is_zero, w.imag.is_zero), one, result)


_zero = const(0, dtypes.int32)


# -- trigonometric and hyperbolic functions ------------------------------------------------------


def _cosh_sinh_in_factors(x: Real) -> tuple[Real, Real, Real]:
    """cosh and sinh without a common factor, and that factor (1 but near the end of the range)."""
    limit, size = _limit(x), abs(x)
    large = size.test("gt", limit)
    half = (size - limit).call("exp") * 0.5
    factor = choose(large, x.same(math.exp(limit)), x.same(1.0))
    inner = choose(large, x.same(0.0), x)
    cosh_x = choose(large, half, inner.call("cosh"))
    sinh_x = choose(large, choose(x.test("lt", 0.0), -half, half), inner.call("sinh"))
    return cosh_x, choose(x.is_zero, x, sinh_x), factor


def sinh(z: Complex) -> Complex:
    x, y = z
    cosh_x, sinh_x, factor = _cosh_sinh_in_factors(x)
    real = sinh_x * y.call("cos") * factor
    imag = cosh_x * y.call("sin") * factor
    wild = both(no(y.is_finite), either(x.is_zero, x.is_infinite))
    limit = choose(x.is_zero, x, abs(x))
    real = choose(y.is_zero, sinh_x * factor, choose(wild, limit, real))
    return Complex(real, choose(y.is_zero, y, imag))


def cosh(z: Complex) -> Complex:
    x, y = z
    cosh_x, sinh_x, factor = _cosh_sinh_in_factors(x)
    real = cosh_x * y.call("cos") * factor
    real = choose(both(no(y.is_finite), x.is_infinite), abs(x), real)
    real = choose(y.is_zero, cosh_x * factor, real)
    imag = sinh_x * y.call("sin") * factor
    imag = choose(both(x.is_zero, no(y.is_finite)), x, imag)
    return Complex(real, choose(y.is_zero, y * x.same(1.0).signed(x), imag))


def tanh(z: Complex) -> Complex:
    """Kahan's formula; far from 0 the real part is 1 and the imaginary one vanishes."""
    x, y = z
    tan_y, sinh_x = y.call("tan"), choose(abs(x).test("gt", 20.0), x.same(0.0), x).call("sinh")
    beta = tan_y * tan_y + 1.0
    rho = (sinh_x * sinh_x + 1.0).call("sqrt")
    below = beta * sinh_x * sinh_x + 1.0
    real, imag = beta * rho * sinh_x / below, tan_y / below
    far = abs(x).test("gt", 20.0)
    turn = y.call("sin") * y.call("cos") * 4.0 * (abs(x) * -2.0).call("exp")
    flat = y.same(0.0).signed(choose(y.is_finite, turn, y))
    imag = choose(far, choose(x.is_infinite, flat, turn), imag)
    real = choose(far, choose(both(x.is_finite, no(y.is_finite)), y - y, x.same(1.0)), real)
    real = choose(far, real.signed(x), real)
    real = choose(x.is_zero, x, choose(y.is_zero, x.call("tanh"), real))
    return Complex(real, choose(y.is_zero, y, imag))


def sin(z: Complex) -> Complex:
    return sinh(z.over_i).times_i


def cos(z: Complex) -> Complex:
    return cosh(z.times_i)


def tan(z: Complex) -> Complex:
    return tanh(z.times_i).over_i


# -- inverse functions: Kahan's formulas, whose branch cuts follow the sign of zero --------------


def _one_minus(z: Complex) -> Complex:
    return Complex(-z.real + 1.0, -z.imag)


def _one_plus(z: Complex) -> Complex:
    return Complex(z.real + 1.0, z.imag)


def _against(z: Complex, w: Complex) -> Complex:
    """``conj(z) * w``."""
    return Complex(z.real, -z.imag) * w


def _is_far(size: Real) -> Expr:
    """Where ``1 / z**2`` is nothing beside 1."""
    return size.test("gt", 1e9 if _is_wide(size) else 1e5)


def _log_of_twice(size: Real) -> Real:
    return size.call("log") + math.log(2)


def _upright(z: Complex, angle: Real) -> Real:
    """A right angle where the real part is 0 and the imaginary one NaN, which C's rules want."""
    unknown = both(z.real.is_zero, z.imag.test("ne", z.imag))
    return choose(unknown, angle.same(math.pi / 2), angle)


def asin(z: Complex) -> Complex:
    x, y = z
    left, right, size = sqrt(_one_minus(z)), sqrt(_one_plus(z)), magnitude(z)
    far = Complex(x.call("atan2", abs(y)), _log_of_twice(size).signed(y))
    real = choose(x.is_zero, x, x.call("atan2", (left * right).real))
    near = Complex(real, _against(left, right).imag.call("asinh"))
    return choose_complex(_is_far(size), far, near)


def acos(z: Complex) -> Complex:
    x, y = z
    left, right, size = sqrt(_one_minus(z)), sqrt(_one_plus(z)), magnitude(z)
    far = Complex(abs(y).call("atan2", x), -_log_of_twice(size).signed(y))
    real = _upright(z, left.real.call("atan2", right.real) * 2.0)
    near = Complex(real, _against(right, left).imag.call("asinh"))
    return choose_complex(_is_far(size), far, near)


def acosh(z: Complex) -> Complex:
    x, y = z
    below, above, size = sqrt(Complex(x - 1.0, y)), sqrt(_one_plus(z)), magnitude(z)
    far = Complex(_log_of_twice(size), y.call("atan2", x))
    real = _against(below, above).real.call("asinh")
    near = Complex(real, _upright(z, below.imag.call("atan2", above.real) * 2.0))
    return choose_complex(_is_far(size), far, near)


def asinh(z: Complex) -> Complex:
    return asin(z.times_i).over_i


def atanh(z: Complex) -> Complex:
    x, y = z
    a, size = abs(x), magnitude(z)
    below, squares = -a + 1.0, y * y
    real = (a * 4.0 / (below * below + squares)).call("log1p") * 0.25
    at_pole = both(below.is_zero, squares.test("lt", 1e-290 if _is_wide(x) else 1e-30))
    real = choose(at_pole, (a.same(2.0) / abs(y)).call("log") * 0.5, real)
    imag = (y * 2.0).call("atan2", below * (a + 1.0) - squares) * 0.5
    far = Complex(
        choose(size.is_infinite, a.same(0.0), a / size / size), y.same(math.pi / 2).signed(y)
    )
    near = Complex(choose(x.is_zero, a, real), imag)
    real, imag = choose_complex(_is_far(size), far, near)
    return Complex(real.signed(x), choose(y.test("eq", y), imag, y))


def atan(z: Complex) -> Complex:
    return atanh(z.times_i).over_i


def parts_of(values: Any) -> list[Complex]:
    """Expressions two by two as complex numbers."""
    reals = [Real(v) for v in values]
    return [Complex(a, b) for a, b in zip(reals[::2], reals[1::2], strict=True)]


def joined(arrays: Any) -> list[np.ndarray[Any, Any]]:
    """Arrays two by two as complex ones."""
    return [join_parts(a, b) for a, b in zip(arrays[::2], arrays[1::2], strict=True)]
