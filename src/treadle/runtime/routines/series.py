"""Special functions by series and fractions, each element until its own has converged.

`treadle.ops.special.gamma` does the same with NumPy and says where the methods are from. A routine
gets, for each operand, how many elements it moves on for one of the result: 0 for a single number.
"""

from __future__ import annotations

import math

from treadle.runtime.routines.language import (
    Apart,
    Array,
    T,
    cos,
    exp,
    f64,
    floor,
    i64,
    local,
    log,
    log1p,
    sin,
)  # fmt: skip

INF, NAN = math.inf, math.nan
PI = math.pi
# Numbers of the methods, on any machine.
MOST_STEPS = 10_000  # of a series that does not converge
EPSILON = 2.0**-52
LARGE = 2.0**52
TINY = 1e-300
ASYMPTOTIC = 10.0  # from here on asymptotic series have the precision of float64
HALF_LOG_TURN = 0.5 * math.log(2.0 * math.pi)
LOWER, UPPER, SLOPE, SAMPLE_SLOPE = 0, 1, 2, 3  # what `incomplete_gamma` gives
TERMS = 12  # of the tail of zeta


# -- gamma -----------------------------------------------------------------------------------------


def beyond(x: f64) -> f64:
    """What Stirling's formula leaves out of log(gamma(x)), for x from 10 on."""
    y = 1.0 / (x * x)
    rest = 1.0 / 1188.0 + y * (-691.0 / 360360.0 + y * (1.0 / 156.0))
    rest = 1.0 / 1260.0 + y * (-1.0 / 1680.0 + y * rest)
    return (1.0 / 12.0 + y * (-1.0 / 360.0 + y * rest)) / x


def log_gamma(x: f64) -> f64:
    """log(gamma(x)) for positive x."""
    product, y = f64(1), x
    while y < ASYMPTOTIC:
        product *= y
        y += 1.0
    if y == INF:
        return y
    return (y - 0.5) * log(y) - y + HALF_LOG_TURN + beyond(y) - log(product)


def positive_digamma(x: f64) -> f64:
    shift, y = f64(0), x
    while y < ASYMPTOTIC:
        shift += 1.0 / y
        y += 1.0
    z = 1.0 / (y * y)
    series = 1.0 / 132.0 + z * (-691.0 / 32760.0 + z / 12.0)
    series = 1.0 / 252.0 + z * (-1.0 / 240.0 + z * series)
    series = z * (1.0 / 12.0 + z * (-1.0 / 120.0 + z * series))
    return log(y) - 0.5 / y - series - shift


def real_digamma(x: f64) -> f64:
    if x > 0.0:
        return positive_digamma(x)
    if x == 0.0:
        return -f64(INF)
    part = x - floor(x + 0.5)
    if part == 0.0:
        return NAN
    return positive_digamma(1.0 - x) - PI * (cos(PI * part) / sin(PI * part))


def incomplete_gamma(a: f64, x: f64, found: Array[f64]) -> None:
    """P(a, x), Q(a, x), the derivative of P with respect to a, and that of the x for which P stays
    the same."""
    for k in range(4):
        found[k] = f64(NAN)
    if a > 0.0 and x == 0.0:
        set_end(0.0, 1.0, found)
    if a > 0.0 and x == INF:
        set_end(1.0, 0.0, found)
    if a == INF and x >= 0.0:
        set_end(0.0, 1.0, found)
    if a > 0.0 and x > 0.0 and x < INF and a < INF:
        if x > 1.0 and x > a:
            by_fraction(a, x, found)
        else:
            by_series(a, x, found)


def set_end(lower: f64, upper: f64, found: Array[f64]) -> None:
    found[LOWER], found[UPPER], found[SLOPE], found[SAMPLE_SLOPE] = lower, upper, 0.0, 0.0


def log_density(a: f64, x: f64) -> f64:
    """The logarithm of x**a exp(-x) / gamma(a + 1), without large terms that nearly cancel."""
    if a < ASYMPTOTIC:
        return a * log(x) - x - log_gamma(a + 1.0)
    away_from_a = (x - a) / a
    if away_from_a > -0.5:
        change = log1p(away_from_a) - away_from_a
    else:
        change = log(x / a) - away_from_a
    return a * change - 0.5 * log(a) - HALF_LOG_TURN - beyond(a)


def by_series(a: f64, x: f64, found: Array[f64]) -> None:
    term, total, term_slope, total_slope, r = f64(1), f64(1), f64(0), f64(0), a
    for _ in range(MOST_STEPS):
        r += 1.0
        term_slope = (term_slope - term / r) * (x / r)
        term = term * (x / r)
        total += term
        total_slope += term_slope
        if not (term > EPSILON * total or abs(term_slope) > EPSILON * abs(total_slope)):
            break
    factor = exp(log_density(a, x))
    relative = total * (log(x) - positive_digamma(a + 1.0)) + total_slope
    found[LOWER] = factor * total
    found[UPPER] = 1.0 - factor * total
    found[SLOPE] = factor * relative
    found[SAMPLE_SLOPE] = -x / a * relative


def by_fraction(a: f64, x: f64, found: Array[f64]) -> None:
    """Numerators p and denominators q of the convergents, and their derivatives dp and dq."""
    y, z = 1.0 - a, x - a + 2.0
    p0, p1, q0, q1 = f64(1), x + 1.0, x, z * x
    dp0, dp1, dq0, dq1 = f64(0), f64(0), f64(0), -x
    value = p1 / q1
    slope = (dp1 - value * dq1) / q1
    c = f64(0)
    for _ in range(MOST_STEPS):
        c += 1.0
        y += 1.0
        z += 2.0
        yc = y * c
        dp0, dp1 = dp1, dp1 * z - p1 - dp0 * yc + p0 * c
        dq0, dq1 = dq1, dq1 * z - q1 - dq0 * yc + q0 * c
        p0, p1 = p1, p1 * z - p0 * yc
        q0, q1 = q1, q1 * z - q0 * yc
        ratio = p1 / q1
        new_slope = (dp1 - ratio * dq1) / q1
        moved = abs(ratio - value) > EPSILON * abs(ratio)
        if not (moved or abs(new_slope - slope) > EPSILON * abs(new_slope)):
            break
        value, slope = ratio, new_slope
        if abs(p1) > LARGE:  # they grow without bound
            p0, p1, q0, q1 = p0 / LARGE, p1 / LARGE, q0 / LARGE, q1 / LARGE
            dp0, dp1, dq0, dq1 = dp0 / LARGE, dp1 / LARGE, dq0 / LARGE, dq1 / LARGE
    factor = exp(log_density(a, x)) * a
    relative = slope + value * (log(x) - positive_digamma(a))
    found[UPPER] = factor * value
    found[LOWER] = 1.0 - factor * value
    found[SLOPE] = -factor * relative
    found[SAMPLE_SLOPE] = x * relative


def igamma(
    a: Array[T], x: Array[T], found: Apart[T], step0: i64, step1: i64, first: i64, last: i64
) -> None:
    values = local(f64, 4)
    for k in range(first, last):
        incomplete_gamma(f64(a[k * step0]), f64(x[k * step1]), values)
        found[k] = T(values[LOWER])


def igammac(
    a: Array[T], x: Array[T], found: Apart[T], step0: i64, step1: i64, first: i64, last: i64
) -> None:
    values = local(f64, 4)
    for k in range(first, last):
        incomplete_gamma(f64(a[k * step0]), f64(x[k * step1]), values)
        found[k] = T(values[UPPER])


def igamma_grad_a(
    a: Array[T], x: Array[T], found: Apart[T], step0: i64, step1: i64, first: i64, last: i64
) -> None:
    values = local(f64, 4)
    for k in range(first, last):
        incomplete_gamma(f64(a[k * step0]), f64(x[k * step1]), values)
        found[k] = T(values[SLOPE])


def random_gamma_grad(
    a: Array[T], x: Array[T], found: Apart[T], step0: i64, step1: i64, first: i64, last: i64
) -> None:
    values = local(f64, 4)
    for k in range(first, last):
        incomplete_gamma(f64(a[k * step0]), f64(x[k * step1]), values)
        found[k] = T(values[SAMPLE_SLOPE])


# -- beta ------------------------------------------------------------------------------------------


def betainc(
    a: Array[T], b: Array[T], x: Array[T], found: Apart[T], step0: i64, step1: i64, step2: i64,
    first: i64, last: i64,
) -> None:  # fmt: skip
    for k in range(first, last):
        found[k] = T(
            incomplete_beta(f64(a[k * step0]), f64(b[k * step1]), f64(x[k * step2]))
        )


def incomplete_beta(a: f64, b: f64, x: f64) -> f64:
    """By its continued fraction, evaluated by Lentz's method."""
    if not (a > 0.0 and b > 0.0 and x >= 0.0 and x <= 1.0):
        return NAN
    if x == 0.0 or x == 1.0:
        return x
    if a == INF or b == INF:
        return NAN
    if x >= (a + 1.0) / (a + b + 2.0):  # that of 1 - x converges faster
        return 1.0 - beta_fraction(b, a, 1.0 - x)
    return beta_fraction(a, b, x)


def beta_fraction(a: f64, b: f64, x: f64) -> f64:
    c = f64(1)
    d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    k = f64(0)
    for _ in range(MOST_STEPS):
        k += 1.0
        even = k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k))
        odd = -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0))
        d = 1.0 / away(1.0 + even * d)
        c = away(1.0 + even / c)
        step = c * d
        fraction *= step
        d = 1.0 / away(1.0 + odd * d)
        c = away(1.0 + odd / c)
        step *= c * d
        fraction *= c * d
        if not (abs(step - 1.0) > EPSILON):
            break
    beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
    return exp(a * log(x) + b * log1p(-x) - beta) * fraction / a


def away(x: f64) -> f64:
    """Not zero."""
    if abs(x) < TINY:
        return TINY
    return x


# -- zeta ------------------------------------------------------------------------------------------


def zeta(
    x: Array[T], q: Array[T], found: Apart[T], step0: i64, step1: i64, first: i64, last: i64
) -> None:
    terms = local(f64, TERMS)
    set_terms(terms)
    for k in range(first, last):
        found[k] = T(hurwitz(f64(x[k * step0]), f64(q[k * step1]), terms))


def polygamma(
    n: Array[T], x: Array[T], found: Apart[T], step0: i64, step1: i64, first: i64, last: i64
) -> None:
    terms = local(f64, TERMS)
    set_terms(terms)
    for k in range(first, last):
        order, y = f64(n[k * step0]), f64(x[k * step1])
        value = f64(NAN)
        if order == 0.0:
            value = real_digamma(y)
        if order > 0.0 and order == floor(order):
            value = exp(log_gamma(order + 1.0)) * hurwitz(order + 1.0, y, terms)
            if floor(order * 0.5) * 2.0 == order:
                value = -value
        found[k] = T(value)


def set_terms(terms: Array[f64]) -> None:
    """(2k)! / B(2k), for the Euler-Maclaurin tail."""
    terms[0] = f64(12.0)
    terms[1] = f64(-720.0)
    terms[2] = f64(30240.0)
    terms[3] = f64(-1209600.0)
    terms[4] = f64(47900160.0)
    terms[5] = f64(-1.8924375803183791606e9)
    terms[6] = f64(7.47242496e10)
    terms[7] = f64(-2.950130727918164224e12)
    terms[8] = f64(1.1646782814350067249e14)
    terms[9] = f64(-4.5979787224074726105e15)
    terms[10] = f64(1.8152105401943546773e17)
    terms[11] = f64(-7.1661652561756670113e18)


def hurwitz(s: f64, q: f64, terms: Array[f64]) -> f64:
    """Hurwitz's zeta by Euler and Maclaurin's formula."""
    if s == 1.0:
        return INF
    if not (s > 1.0):
        return NAN
    if q <= 0.0 and q == floor(q):
        if floor(s * 0.5) * 2.0 == s:
            return INF
        return NAN
    if not (q > 0.0) and s != floor(s):
        return NAN
    total, a, steps = f64(0), q, 0
    while a <= 9.0 or steps < 9:
        total += pow(a, -s)
        a += 1.0
        steps += 1
    power = pow(a, -s)  # the sum goes on with half of it and the integral from there
    total += power * a / (s - 1.0) + 0.5 * power
    factor, k = f64(1), f64(0)
    for j in range(TERMS):
        factor *= s + k
        power = power / a
        total += factor * power / terms[j]
        factor *= s + k + 1.0
        power = power / a
        k += 2.0
    return total
