"""Fits the polynomials of treadle.ops.special and writes its coefficients.py.

All are interpolations at Chebyshev points with 50 digits, rounded to float64.

    python -m benchmarks.ulp.fit_special [path]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mpmath as mp

from benchmarks.ulp.fit import Real, fit32, fit64

DEFAULT = Path("src/treadle/ops/special/coefficients.py")
HEAD = '"""Coefficients of the special functions; written by benchmarks/ulp/fit_special.py."""\n'
# Where the series of functions of treadle.ops.special.integrals meet.
DAWSON_JOINT, FRESNEL_JOINT = 5.0, 1.6
EXPINT_JOINTS = 6.0, 16.0
SMALLEST = mp.mpf(2) ** -56  # a coefficient below it, of sums about 1, does not matter


def chebyshev64(function: Real, low: Any, high: Any, degree: int = 60) -> list[float]:
    """Coefficients of T0, T1, ... on [low, high] of the interpolation, those that matter."""
    n, low, high = degree + 1, mp.mpf(low), mp.mpf(high)
    angles = [(k + mp.mpf(1) / 2) * mp.pi / n for k in range(n)]
    values = [function((low + high) / 2 + (high - low) / 2 * mp.cos(a)) for a in angles]
    found = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / n
        for j in range(n)
    ]
    found[0] /= 2
    largest = max(map(abs, found))
    needed = max(j for j, c in enumerate(found) if abs(c) > SMALLEST * largest)
    return [float(c) for c in found[: needed + 1]]


def log_gamma_ratio(z: Any) -> Any:
    """lgamma(1 + z) / z."""
    return mp.loggamma(1 + z) / z if z else -mp.euler


def scaled_bessel(order: int, x: Any) -> Any:
    """exp(-x) I(x)."""
    return mp.exp(-x) * mp.besseli(order, x)


def large_bessel(order: int) -> Real:
    """sqrt(x) exp(-x) I(x) as a function of 8 / x, in (0, 1]."""

    def function(u: Any) -> Any:
        if u < mp.mpf(10) ** -6:  # the first terms of the asymptotic series
            mu, x = 4 * order**2, 8 / u if u else mp.inf
            series = 1 - (mu - 1) / (8 * x) + (mu - 1) * (mu - 9) / (2 * (8 * x) ** 2)
            return series / mp.sqrt(2 * mp.pi)
        x = 8 / u
        return mp.sqrt(x) * scaled_bessel(order, x)

    return function


def of_square(function: Real, end: Any) -> list[float]:
    """A fit on [0, end] in the square of the variable."""
    return chebyshev64(lambda s: function(mp.sqrt(s)), 0, mp.mpf(end) ** 2)


def of_inverse_square(function: Real, start: Any) -> list[float]:
    """A fit from `start` on in the square of start / x."""
    return chebyshev64(lambda t: function(start / mp.sqrt(t)), 0, 1)


def hankel(order: int, is_lag: bool) -> Real:
    """P of Hankel's form of J and Y, or x / 8 times Q."""

    def function(x: Any) -> Any:
        angle = x - mp.pi / 4 - order * mp.pi / 2
        j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
        if is_lag:
            return scale * (y * mp.cos(angle) - j * mp.sin(angle)) * x / 8
        return scale * (j * mp.cos(angle) + y * mp.sin(angle))

    return function


def hankel_tables() -> dict[str, Sequence[float]]:
    def y0(x: Any) -> Any:
        return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)

    def y1(x: Any) -> Any:
        known = 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)
        return (mp.bessely(1, x) - known) / x

    def k0(x: Any) -> Any:
        return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)

    def k1(x: Any) -> Any:
        return (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x) - 1 / x) / x

    def large_k(order: int) -> Real:
        def function(u: Any) -> Any:
            x = 2 / u
            return mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x)

        return function

    return {
        "J0_SMALL": of_square(lambda x: mp.besselj(0, x), 8),
        "J1_SMALL": of_square(lambda x: mp.besselj(1, x) / x, 8),
        "Y0_SMALL": of_square(y0, 8),
        "Y1_SMALL": of_square(y1, 8),
        "HANKEL_P0": of_inverse_square(hankel(0, False), 8),
        "HANKEL_Q0": of_inverse_square(hankel(0, True), 8),
        "HANKEL_P1": of_inverse_square(hankel(1, False), 8),
        "HANKEL_Q1": of_inverse_square(hankel(1, True), 8),
        "SMALL_I0": of_square(lambda x: mp.besseli(0, x), 2),
        "SMALL_I1": of_square(lambda x: mp.besseli(1, x) / x, 2),
        "K0_SMALL": of_square(k0, 2),
        "K1_SMALL": of_square(k1, 2),
        "K0_LARGE": chebyshev64(large_k(0), 0, 1),
        "K1_LARGE": chebyshev64(large_k(1), 0, 1),
    }


def fresnel_part(is_g: bool) -> Real:
    """pi x times the auxiliary function f of Fresnel's integrals, or pi**2 x**3 times g."""

    def function(x: Any) -> Any:
        s, c = mp.mpf(1) / 2 - mp.fresnels(x), mp.mpf(1) / 2 - mp.fresnelc(x)
        sine, cosine = mp.sin(mp.pi * x * x / 2), mp.cos(mp.pi * x * x / 2)
        if is_g:
            return (c * cosine + s * sine) * mp.pi**2 * x**3
        return (s * cosine - c * sine) * mp.pi * x

    return function


def scaled_erfc(t: Any) -> Any:
    """erfc(a) exp(a * a) as a function of (a - 2) / (a + 2)."""
    a = 2 * (1 + t) / (1 - t)
    return mp.erfc(a) * mp.exp(a * a)


def integral_tables() -> dict[str, Any]:
    (first, second), joint, end = EXPINT_JOINTS, DAWSON_JOINT, FRESNEL_JOINT
    zero = mp.findroot(mp.ei, 0.37)

    def dawson(x: Any) -> Any:
        return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)

    return {
        "DAWSON_JOINT": joint,
        "EXPINT_JOINTS": EXPINT_JOINTS,
        "EXPINT_ZERO": (float(zero), float(zero - mp.mpf(float(zero)))),
        "FRESNEL_JOINT": end,
        "DAWSON_SMALL": of_square(lambda x: dawson(x) * (1 + 2 * x * x) / x, joint),
        "DAWSON_LARGE": of_inverse_square(lambda x: dawson(x) * 2 * x, joint),
        "EXPINT_SMALL": chebyshev64(
            lambda x: (mp.ei(x) - mp.log(x / zero)) / (x - zero), 0, first
        ),
        "EXPINT_MIDDLE": chebyshev64(lambda x: x * mp.exp(-x) * mp.ei(x), first, second),
        "EXPINT_LARGE": chebyshev64(
            lambda u: second / u * mp.exp(-second / u) * mp.ei(second / u), 0, 1
        ),
        "FRESNEL_S_SMALL": of_square(lambda s: mp.fresnels(mp.sqrt(s)) / mp.sqrt(s) ** 3, end**2),
        "FRESNEL_C_SMALL": of_square(lambda s: mp.fresnelc(mp.sqrt(s)) / mp.sqrt(s), end**2),
        "FRESNEL_F": of_inverse_square(fresnel_part(False), end),
        "FRESNEL_G": of_inverse_square(fresnel_part(True), end),
        "SPENCE": chebyshev64(
            lambda w: mp.polylog(2, -w) / -w if w else mp.mpf(1), -mp.mpf(1) / 2, mp.mpf(1) / 2
        ),
    }


def tables() -> dict[str, Any]:
    near = fit64(log_gamma_ratio, mp.mpf("-0.3"), mp.mpf("0.3"), 21)
    return {
        "LOG_GAMMA_NEAR_ONE": near[::-1],
        "I0_SMALL": chebyshev64(lambda x: scaled_bessel(0, x), 0, 8),
        "I0_LARGE": chebyshev64(large_bessel(0), 0, 1),
        "I1_SMALL": chebyshev64(lambda x: scaled_bessel(1, x) / x if x else mp.mpf(1) / 2, 0, 8),
        "I1_LARGE": chebyshev64(large_bessel(1), 0, 1),
        "SCALED_ERFC_FLOAT32": fit32(
            scaled_erfc, -1.0, 0.68, 9, weight=lambda t: 1 / float(scaled_erfc(mp.mpf(float(t))))
        )[::-1],
        **hankel_tables(),
        **integral_tables(),
    }


def main() -> None:
    mp.mp.dps = 50
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    lines = [HEAD, "# fmt: off"]
    for name, values in tables().items():
        if isinstance(values, float):
            lines.append(f"{name} = {values!r}")
            continue
        lines.append(f"{name} = (")
        rows = [values[i : i + 3] for i in range(0, len(values), 3)]
        lines += ["    " + " ".join(f"{v!r}," for v in row) for row in rows]
        lines.append(")")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
