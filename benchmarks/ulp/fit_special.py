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

from benchmarks.ulp.fit import Real, fit64

DEFAULT = Path("src/treadle/ops/special/coefficients.py")
HEAD = '"""Coefficients of the special functions; written by benchmarks/ulp/fit_special.py."""\n'
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


def tables() -> dict[str, Sequence[float]]:
    near = fit64(log_gamma_ratio, mp.mpf("-0.3"), mp.mpf("0.3"), 21)
    return {
        "LOG_GAMMA_NEAR_ONE": near[::-1],
        "I0_SMALL": chebyshev64(lambda x: scaled_bessel(0, x), 0, 8),
        "I0_LARGE": chebyshev64(large_bessel(0), 0, 1),
        "I1_SMALL": chebyshev64(lambda x: scaled_bessel(1, x) / x if x else mp.mpf(1) / 2, 0, 8),
        "I1_LARGE": chebyshev64(large_bessel(1), 0, 1),
    }


def main() -> None:
    mp.mp.dps = 50
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    lines = [HEAD, "# fmt: off"]
    for name, values in tables().items():
        lines.append(f"{name} = (")
        rows = [values[i : i + 3] for i in range(0, len(values), 3)]
        lines += ["    " + " ".join(f"{v!r}," for v in row) for row in rows]
        lines.append(")")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
