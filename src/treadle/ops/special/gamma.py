"""lgamma and its derivatives, Hurwitz's zeta, and the incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.elementwise.unary import exp, log, log1p
from treadle.ops.op_makers import Public, needs, unary
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import Op, OpCall, run
from treadle.ops.special.coefficients import LOG_GAMMA_NEAR_ONE
from treadle.ops.special.formulas import ARRAYS, Arithmetic, formula_op, horner, series_op

# The rational function of Lanczos's approximation with N = 13 and g below (the coefficients that
# Boost and CPython use), highest power first.
_G = 6.024680040776729583740234375
_LANCZOS = (
    2.5066282746310002701649081771338, 210.82427775157934587250973392071,
    8071.6720023658162106380029022723, 186056.26539522349504029498971604,
    2876370.6289353724412254090516209, 31426415.585400194380614231628318,
    248874557.86205415651146038641322, 1439720407.3117216736632230727950,
    6039542586.3520280050642916443073, 17921034426.037209699919755754459,
    35711959237.355668049440185451547, 42919803642.649098768957899047002,
    23531376880.410759688572007674452,
)  # fmt: skip
_LANCZOS_BELOW = (
    1.0, 66.0, 1925.0, 32670.0, 357423.0, 2637558.0, 13339535.0, 45995730.0,
    105258076.0, 150917976.0, 120543840.0, 39916800.0, 0.0,
)  # fmt: skip
_NEAR = 0.3  # how far from 1 and 2 the zeros of lgamma need a series of their own

# B(2k) / 2k, with which the asymptotic series of digamma goes on, highest power first.
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_ASYMPTOTIC = 10  # from here on the series has the precision of float64

# (2k)! / B(2k), for the Euler-Maclaurin tail of zeta.
_ZETA = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9,
    7.47242496e10, -2.950130727918164224e12, 1.1646782814350067249e14,
    -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_STEPS = 10_000  # of a series that does not converge: its elements are as good as they get


def _log_gamma(m: Arithmetic, x: Any) -> Any:
    size = m.abs(x)
    shifted = size + (_G - 0.5)
    far = m.log(_lanczos_sum(m, size)) - _G + (size - 0.5) * (m.log(shifted) - 1.0)
    far = m.where(size == math.inf, math.inf, far)
    beside_one = size < 1.5
    z = m.where(beside_one, size - 1.0, size - 2.0)
    near = z * horner(LOG_GAMMA_NEAR_ONE, z) + m.where(beside_one, 0.0, m.log1p(z))
    positive = m.where(m.abs(z) < _NEAR, near, far)
    part = size - m.floor(size)  # the sine of pi x repeats, but for its sign
    part = m.where(part > 0.5, 1.0 - part, part)
    reflected = math.log(math.pi) - m.log(m.sin(math.pi * part)) - m.log(size) - positive
    pole = (part == 0.0) | (size == math.inf)
    return m.where(x > 0.0, positive, m.where(pole, math.inf, reflected))


def _lanczos_sum(m: Arithmetic, x: Any) -> Any:
    """The rational function, above 5 in powers of 1 / x, which cannot overflow."""
    inverse = 1.0 / x
    small = horner(_LANCZOS, x) / horner(_LANCZOS_BELOW, x)
    large = horner(_LANCZOS[::-1], inverse) / horner(_LANCZOS_BELOW[::-1], inverse)
    return m.where(x < 5.0, small, large)


def log_gamma(x: NDArray) -> NDArray:
    """lgamma of an array of float64."""
    return _log_gamma(ARRAYS, x)  # type: ignore[no-any-return]


def _digamma(m: Arithmetic, x: Any) -> Any:
    y = m.where(x <= 0.0, 1.0 - x, x)
    shift: Any = 0.0
    for _ in range(_ASYMPTOTIC):
        low = y < float(_ASYMPTOTIC)
        shift = shift + m.where(low, 1.0 / y, 0.0)
        y = m.where(low, y + 1.0, y)
    square = 1.0 / (y * y)
    positive = m.log(y) - 0.5 / y - square * horner(_DIGAMMA, square) - shift
    part = x - m.floor(x + 0.5)
    cotangent = m.cos(math.pi * part) / m.sin(math.pi * part)
    reflected = m.where(part == 0.0, math.nan, positive - math.pi * cotangent)
    return m.where(x > 0.0, positive, m.where(x == 0.0, -math.inf, reflected))


def _zeta(x: NDArray, q: NDArray) -> NDArray:
    """Hurwitz's zeta by Euler and Maclaurin's formula, as S. Moshier's Cephes has it."""
    allowed = (x > 1) & ((q > 0) | (x == np.floor(x)))
    pole = (q <= 0) & (q == np.floor(q))
    use = allowed & ~pole
    s, a = np.where(use, x, 2.0), np.where(use, q, 1.0)
    total = np.zeros_like(s)
    steps = 0
    while (low := a <= 9.0).any() or steps < 9:
        low |= steps < 9
        total = np.where(low, total + a**-s, total)
        a = np.where(low, a + 1.0, a)
        steps += 1
    last = a**-s  # the sum goes on with half of it and the integral from there
    total += last * a / (s - 1) + 0.5 * last
    factor, power, k = np.ones_like(s), last, 0.0
    for coefficient in _ZETA:
        factor = factor * (s + k)
        power = power / a
        total += factor * power / coefficient
        factor = factor * (s + k + 1)
        power = power / a
        k += 2.0
    even = np.floor(x / 2) * 2 == x
    total = np.where(use, total, np.nan)
    total = np.where(pole & (x > 1), np.where(even, np.inf, np.nan), total)
    return np.where(x == 1, np.inf, total)


def _polygamma(n: NDArray, x: NDArray) -> NDArray:
    whole = (n == np.floor(n)) & (n >= 0)
    order = np.where(whole, n, 1.0)
    sign = np.where(np.floor(order / 2) * 2 == order, -1.0, 1.0)
    high = sign * np.exp(_log_gamma(ARRAYS, order + 1.0)) * _zeta(order + 1.0, x)
    return np.where(whole, np.where(n == 0, _digamma(ARRAYS, x), high), np.nan)


class _IncompleteGamma:
    """The regularized incomplete gamma functions of arrays of one axis, with their derivative with
    respect to `a`: the power series below ``max(1, a)``, the continued fraction above (A. Gil,
    J. Segura, N. Temme, Numerical Methods for Special Functions, 2007).

    Attributes:
        lower, upper: P(a, x) and Q(a, x).
        slope: the derivative of P with respect to `a`.
        sample_slope: that of the x for which P stays the same.
    """

    def __init__(self, a: NDArray, x: NDArray) -> None:
        self.lower, self.upper, self.slope, self.sample_slope = np.full((4, *x.shape), np.nan)
        self._set((a > 0) & (x == 0), 0.0)
        self._set((a > 0) & (x == np.inf), 1.0)
        self._set((a == np.inf) & (x >= 0), 0.0)
        inside = (a > 0) & (x > 0) & (x < np.inf) & (a < np.inf)
        by_fraction = inside & (x > 1) & (x > a)
        self._by_series(np.flatnonzero(inside & ~by_fraction), a, x)
        self._by_fraction(np.flatnonzero(by_fraction), a, x)

    def _set(self, where: NDArray, lower: float) -> None:
        self.lower[where], self.upper[where] = lower, 1.0 - lower
        self.slope[where] = self.sample_slope[where] = 0.0

    def _by_series(self, which: NDArray, all_a: NDArray, all_x: NDArray) -> None:
        a, x = all_a[which], all_x[which]
        term, total = np.ones_like(a), np.ones_like(a)
        term_slope, total_slope = np.zeros_like(a), np.zeros_like(a)
        r, going = a.copy(), np.ones(a.shape, bool)
        for _ in range(_MOST_STEPS):
            if not going.any():
                break
            r += 1
            term_slope = (term_slope - term / r) * (x / r)
            term = term * (x / r)
            total, total_slope = total + term, total_slope + term_slope
            going = (term > _EPSILON * total) | (
                np.abs(term_slope) > _EPSILON * np.abs(total_slope)
            )
        logarithm = np.log(x)
        factor = np.exp(a * logarithm - x - _log_gamma(ARRAYS, a + 1))
        self.lower[which] = factor * total
        self.upper[which] = 1 - factor * total
        relative = total * (logarithm - _digamma(ARRAYS, a + 1)) + total_slope
        self.slope[which] = factor * relative
        self.sample_slope[which] = -x / a * relative

    def _by_fraction(self, which: NDArray, all_a: NDArray, all_x: NDArray) -> None:
        """Numerator p and denominator q of the convergents, and their derivatives."""
        a, x = all_a[which], all_x[which]
        y, z = 1 - a, x - a + 2
        p, q = [np.ones_like(a), x + 1], [x.copy(), z * x]
        dp, dq = [np.zeros_like(a), np.zeros_like(a)], [np.zeros_like(a), -x]
        value = p[1] / q[1]
        slope = (dp[1] - value * dq[1]) / q[1]
        going = np.ones(a.shape, bool)
        for c in range(1, _MOST_STEPS):
            if not going.any():
                break
            y, z = y + 1, z + 2
            yc = y * c
            dp = [dp[1], dp[1] * z - p[1] - dp[0] * yc + p[0] * c]
            dq = [dq[1], dq[1] * z - q[1] - dq[0] * yc + q[0] * c]
            p, q = [p[1], p[1] * z - p[0] * yc], [q[1], q[1] * z - q[0] * yc]
            ratio = p[1] / q[1]
            new_slope = (dp[1] - ratio * dq[1]) / q[1]
            going = going & (
                (np.abs(ratio - value) > _EPSILON * np.abs(ratio))
                | (np.abs(new_slope - slope) > _EPSILON * np.abs(new_slope))
            )
            value = np.where(going, ratio, value)
            slope = np.where(going, new_slope, slope)
            small = np.where(np.abs(p[1]) > 2.0**52, 2.0**-52, 1.0)  # they grow without bound
            p, q, dp, dq = ([part * small for part in pair] for pair in (p, q, dp, dq))
        logarithm = np.log(x)
        factor = np.exp(a * logarithm - x - _log_gamma(ARRAYS, a))
        self.upper[which] = factor * value
        self.lower[which] = 1 - factor * value
        relative = slope + value * (logarithm - _digamma(ARRAYS, a))
        self.slope[which] = -factor * relative
        self.sample_slope[which] = x * relative


def _incomplete_beta(a: NDArray, b: NDArray, x: NDArray) -> NDArray:
    """The regularized incomplete beta function by the continued fraction 8.17.22 of the NIST
    Digital Library of Mathematical Functions, evaluated by Lentz's method."""
    result = np.full(x.shape, np.nan)
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
    result[(a > 0) & (b > 0) & (x == 0)] = 0.0
    result[(a > 0) & (b > 0) & (x == 1)] = 1.0
    which = np.flatnonzero(inside)
    a, b, x = a[which], b[which], x[which]
    turned = x >= (a + 1) / (a + b + 2)  # where that of 1 - x converges faster
    a, b, x = np.where(turned, b, a), np.where(turned, a, b), np.where(turned, 1 - x, x)
    tiny = 1e-300
    c, d = np.ones_like(x), _away_from(1 - (a + b) * x / (a + 1), tiny)
    d = 1 / d
    fraction, going = d.copy(), np.ones(x.shape, bool)
    for k in range(1, _MOST_STEPS):
        if not going.any():
            break
        even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        step = np.ones_like(x)
        for numerator in (even, odd):
            d = 1 / _away_from(1 + numerator * d, tiny)
            c = _away_from(1 + numerator / c, tiny)
            step = c * d
            fraction = np.where(going, fraction * step, fraction)
        going = going & (np.abs(step - 1) > _EPSILON)
    beta = _log_gamma(ARRAYS, a) + _log_gamma(ARRAYS, b) - _log_gamma(ARRAYS, a + b)
    value = np.exp(a * np.log(x) + b * np.log1p(-x) - beta) * fraction / a
    result[which] = np.where(turned, 1 - value, value)
    return result


def _away_from(x: NDArray, tiny: float) -> NDArray:
    return np.where(np.abs(x) < tiny, tiny, x)


def _grad_digamma(call: OpCall, dy: Tensor) -> list[Any]:
    return [dy * run(POLYGAMMA, convert_to_tensor(1.0, dy.dtype), call.inputs[0])]


def _grad_polygamma(call: OpCall, dy: Tensor) -> list[Any]:
    n, x = call.inputs
    return [None, unbroadcast(dy * run(POLYGAMMA, n + 1, x), x)]


def _grad_zeta(call: OpCall, dy: Tensor) -> list[Any]:
    x, q = call.inputs
    return [None, unbroadcast(-dy * x * run(ZETA, x + 1, q), q)]


def _grad_incomplete(sign: float) -> Callable[..., list[Any]]:
    def rule(call: OpCall, dy: Tensor) -> list[Any]:
        a, x = call.inputs
        by_a = unbroadcast(sign * dy * run(SLOPE, a, x), a) if needs(call, 0) else None
        by_x = sign * dy * exp((a - 1) * log(x) - x - lgamma(a)) if needs(call, 1) else None
        return [by_a, None if by_x is None else unbroadcast(by_x, x)]

    return rule


def _grad_slope(call: OpCall, dy: Tensor) -> list[Any]:
    a, x = call.inputs
    if needs(call, 0):
        raise errors.UnimplementedError(
            None, call.op,
            "the second derivative of igamma and igammac with respect to a is not implemented; "
            f"stop_gradient(a) leaves it out{at(user_origin())}",
        )  # fmt: skip
    density = exp((a - 1) * log(x) - x - lgamma(a))
    return [None, unbroadcast(dy * density * (log(x) - digamma(a)), x)]


def _grad_sample_slope(call: OpCall, dy: Tensor) -> list[Any]:
    raise errors.UnimplementedError(
        None, call.op,
        "the second derivative of gamma distributed numbers with respect to alpha is not "
        f"implemented; stop_gradient leaves it out{at(user_origin())}",
    )  # fmt: skip


def _grad_betainc(call: OpCall, dy: Tensor) -> list[Any]:
    a, b, x = call.inputs
    beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    density = exp((b - 1) * log1p(-x) + (a - 1) * log(x) - beta)
    return [None, None, unbroadcast(dy * density, x)]


LGAMMA = formula_op("lgamma", _log_gamma, lambda call, dy: [dy * digamma(call.inputs[0])])
DIGAMMA = formula_op("digamma", _digamma, _grad_digamma)
ZETA = series_op("zeta", _zeta, _grad_zeta)
POLYGAMMA = series_op("polygamma", _polygamma, _grad_polygamma)
SLOPE = series_op("igamma_grad_a", lambda a, x: _IncompleteGamma(a, x).slope, _grad_slope)
SAMPLE_SLOPE = series_op(
    "random_gamma_grad", lambda a, x: _IncompleteGamma(a, x).sample_slope, _grad_sample_slope
)
IGAMMA = series_op("igamma", lambda a, x: _IncompleteGamma(a, x).lower, _grad_incomplete(1.0))
IGAMMAC = series_op("igammac", lambda a, x: _IncompleteGamma(a, x).upper, _grad_incomplete(-1.0))
BETAINC = series_op("betainc", _incomplete_beta, _grad_betainc)

lgamma: Public = unary(LGAMMA, "log(abs(gamma(x))); infinite at 0 and at negative integers.")
digamma: Public = unary(
    DIGAMMA, "The derivative of lgamma; NaN at negative integers, minus infinity at 0."
)


def _binary(op: Op, x: Any, y: Any) -> Tensor:
    a, b = common_dtype(op.name, x, y)
    return run(op, a, b)  # type: ignore[no-any-return]


def gamma_slope(a: Tensor, x: Tensor) -> Tensor:
    """The derivative with respect to `a` of the number x for which P(a, x) stays the same."""
    return run(SAMPLE_SLOPE, a, x)  # type: ignore[no-any-return]


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Derivative number `a` of digamma at `x`; NaN where `a` is not 0, 1, 2, ...

    Both are floats whose shapes broadcast. The gradient with respect to `a` is None.
    """
    return _binary(POLYGAMMA, a, x)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """Hurwitz's zeta function, the sum of ``(q + k) ** -x`` over k = 0, 1, 2, ...

    Infinite for x = 1, NaN for x < 1. Both are floats whose shapes broadcast. The gradient with
    respect to `x` is None.
    """
    return _binary(ZETA, x, q)


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """P(a, x), the lower incomplete gamma function divided by gamma(a).

    Both are floats whose shapes broadcast; NaN unless a > 0 and x >= 0. Differentiable once with
    respect to `a`, any number of times with respect to `x`.
    """
    return _binary(IGAMMA, a, x)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Q(a, x) = 1 - P(a, x), accurate where it is small; see `igamma`."""
    return _binary(IGAMMAC, a, x)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The incomplete beta function divided by beta(a, b), for x in [0, 1].

    All are floats whose shapes broadcast. The gradients with respect to `a` and `b` are None.
    """
    first, second = common_dtype("betainc", a, b)
    first, third = common_dtype("betainc", first, x)
    return run(BETAINC, first, second, third)  # type: ignore[no-any-return]


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of the numbers in the last axis:
    ``sum(lgamma(x)) - lgamma(sum(x))``, in the shape without that axis."""
    numbers = convert_to_tensor(x)
    return reduce_sum(lgamma(numbers), -1) - lgamma(reduce_sum(numbers, -1))
