"""Functions of Python's `math` and `cmath` that the graph has no operation for, written as users
write theirs: a jitted function that calls one with numbers of the run calls these, and they are
traced with it. Where Python's raise an OverflowError, these give an infinity."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any


def isinf(x: Any) -> Any:
    return abs(x) == math.inf


def isfinite(x: Any) -> Any:
    return abs(x) < math.inf


def complex_isinf(x: Any) -> Any:
    return isinf(x.real) or isinf(x.imag)


def complex_isfinite(x: Any) -> Any:
    return isfinite(x.real) and isfinite(x.imag)


def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    distance = abs(a - b)
    near = distance <= abs_tol or distance <= rel_tol * max(abs(a), abs(b))
    return a == b or (distance < math.inf and near)


def exp2(x: Any) -> Any:
    return 2.0**x


def cbrt(x: Any) -> Any:
    """By a step of Newton's behind the power."""
    size = abs(x)
    root = size ** (1.0 / 3.0)
    if size > 0.0 and size < math.inf:
        root -= (root - size / (root * root)) / 3.0
    return math.copysign(root, x)


def gamma(x: Any) -> Any:
    is_whole = math.fmod(x, 1.0) == 0.0 if abs(x) < math.inf else False
    if x == -math.inf or (is_whole and x <= 0.0):
        raise ValueError("math domain error")
    found = math.exp(math.lgamma(x))
    if x < 0.0 and math.fmod(math.ceil(x), 2.0) == 0.0:
        found = -found
    if is_whole and found < 9007199254740992.0:
        found = float(math.floor(found + 0.5))
    return found


def rounded(x: Any, digits: Any) -> Any:
    """``round(x, digits)``: to the nearest decimal, of which a tie is decided by all bits."""
    power = 10.0 ** abs(digits)
    scaled = x * power if digits >= 0 else x / power
    found = x
    if abs(scaled) < 4503599627370496.0:
        whole = float(round(scaled))
        if abs(scaled - whole) == 0.5:  # how far the product was rounded, by halves of the bits
            high = x * 134217729.0
            high -= high - x
            by = power * 134217729.0
            by -= by - power
            if digits >= 0:
                rest = ((high * by - scaled) + high * (power - by) + (x - high) * by) + (
                    x - high
                ) * (power - by)
            else:
                rest = x - scaled * power
            if rest > 0.0:
                whole = float(math.floor(scaled)) + 1.0
            elif rest < 0.0:
                whole = float(math.ceil(scaled)) - 1.0
        found = math.copysign(whole / power if digits >= 0 else whole * power, x)
    return found


def ldexp(x: Any, i: Any) -> Any:
    """In two steps, of which neither leaves the range of numbers before the result does."""
    half = i // 2
    return x * 2.0**half * 2.0 ** (i - half)


def frexp(x: Any) -> Any:
    mantissa, exponent = x, 0
    size = abs(x)
    if size > 0.0 and size < math.inf:
        exponent = int(math.floor(math.log2(size))) + 1
        mantissa = ldexp(x, -exponent)
        if abs(mantissa) >= 1.0:
            exponent += 1
            mantissa *= 0.5
        if abs(mantissa) < 0.5:
            exponent -= 1
            mantissa *= 2.0
    return mantissa, exponent


def modf(x: Any) -> Any:
    part = math.fmod(x, 1.0) if abs(x) < math.inf else 0.0
    return math.copysign(part, x), math.copysign(x - part, x)


def remainder(x: Any, y: Any) -> Any:
    """What is left of the nearest multiple of `y`, the even one of two that are as near."""
    size, by = abs(x), abs(y)
    if (by == 0.0 and x == x) or (size == math.inf and y == y):
        raise ValueError("math domain error")
    low = math.fmod(size, by)
    high = by - low
    left = low
    if low > high:
        left = -high
    elif low == high:
        left = low - 2.0 * math.fmod(0.5 * (size - low), by)
    return math.copysign(1.0, x) * left


def gcd(*integers: Any) -> Any:
    found = 0
    for integer in integers:
        other = abs(integer)
        while other != 0:
            found, other = other, found % other
    return found


def lcm(*integers: Any) -> Any:
    found = 1
    for integer in integers:
        divisor = gcd(found, integer)
        found = abs(found * integer) // max(divisor, 1)
    return found


def isqrt(n: Any) -> Any:
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = int(math.sqrt(n))
    while root * root > n:
        root -= 1
    while (root + 1) * (root + 1) <= n:
        root += 1
    return root


def factorial(n: Any) -> Any:
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > 20:
        raise OverflowError("factorial() of more than 20 is no int of 64 bits")
    found = 1
    for i in range(2, n + 1):
        found *= i
    return found


def product(a: Any, b: Any) -> Any:
    """Of positive ints."""
    if a > 9223372036854775807 // b:
        raise OverflowError("a number of combinations is no int of 64 bits")
    return a * b


def comb(n: Any, k: Any) -> Any:
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    found = 1
    if k > n:
        found = 0
    else:
        for i in range(min(k, n - k)):
            found = product(found, n - i) // (i + 1)
    return found


def perm(n: Any, k: Any = None) -> Any:
    if k is None:
        return factorial(n)
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    found = 1
    if k > n:
        found = 0
    else:
        for i in range(k):
            found = product(found, n - i)
    return found


def dist(p: Any, q: Any) -> Any:
    """In parts of the largest distance, whose squares stay in the range of numbers."""
    distances = [abs(x - y) for x, y in zip(p, q)]  # noqa: B905
    largest = max(distances)
    if largest == 0.0 or largest == math.inf:
        return largest
    total = 0.0
    for distance in distances:
        total += (distance / largest) ** 2
    return largest * math.sqrt(total)


def modular_power(base: Any, exponent: Any, modulus: Any) -> Any:
    if exponent < 0:
        raise ValueError("pow() of three numbers takes no negative exponent in jitted functions")
    if abs(modulus) > 3037000499:
        raise OverflowError("the products of pow() of three numbers are too large for 64 bits")
    found, factor, left = 1 % modulus, base % modulus, exponent
    while left > 0:
        if left % 2 == 1:
            found = found * factor % modulus
        factor = factor * factor % modulus
        left //= 2
    return found


def phase(x: Any) -> Any:
    return math.atan2(x.imag, x.real)


def polar(x: Any) -> Any:
    return abs(x), phase(x)


def rect(r: Any, phi: Any) -> Any:
    return complex(r * math.cos(phi), r * math.sin(phi))


def _of(module: Any, names: str) -> dict[Any, Any]:
    return {getattr(module, n): globals()[n] for n in names.split() if hasattr(module, n)}


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **_of(math, "isinf isfinite isclose exp2 cbrt gamma ldexp frexp modf remainder gcd lcm isqrt"),
    **_of(math, "factorial comb perm dist"),
    **_of(cmath, "isclose phase polar rect"),
    cmath.isinf: complex_isinf,
    cmath.isfinite: complex_isfinite,
}
