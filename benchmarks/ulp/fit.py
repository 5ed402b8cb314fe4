"""Fits the polynomials and tables of treadle.runtime.cpu.vector_math and writes coefficients.py.

float32: weighted least squares on Chebyshev points in float64, towards minimax by Lawson's
iteration, rounding one coefficient at a time to float32 and refitting the rest. float64:
interpolation at Chebyshev points with 50 digits, then rounding.

    python -m benchmarks.ulp.fit [path]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

DEFAULT = Path("src/treadle/runtime/cpu/coefficients.py")
Real = Callable[[Any], Any]


def fit32(
    function: Real, low: float, high: float, degree: int, fixed: Sequence[float] = (),
    weight: Real | None = None, points: int = 600,
) -> list[float]:  # fmt: skip
    """Float32 coefficients c0..c[degree] for `function` on [low, high]; the first ones fixed."""
    angles = (np.arange(points) + 0.5) * np.pi / points
    x = (low + high) / 2 + (high - low) / 2 * np.cos(angles)
    y = np.array([float(function(mp.mpf(float(v)))) for v in x])
    w = np.ones(points) if weight is None else np.array([float(weight(v)) for v in x])
    scale = max(abs(low), abs(high))
    found = [float(np.float32(v)) for v in fixed]
    while len(found) <= degree:
        rest = y - sum(c * x**n for n, c in enumerate(found))
        powers = range(len(found), degree + 1)
        solution = lawson(np.stack([(x / scale) ** p for p in powers], 1), rest, w)
        found.append(float(np.float32(solution[0] / scale ** powers[0])))
    return found


def lawson(matrix: Any, rest: Any, weight: Any) -> Any:
    """Least squares reweighted by the errors: nearly minimax."""
    emphasis = np.ones(len(rest))
    for _ in range(12):
        total = weight * np.sqrt(emphasis)
        solution = np.linalg.lstsq(matrix * total[:, None], rest * total, rcond=None)[0]
        error = np.abs((matrix @ solution - rest) * weight)
        emphasis = emphasis * (error + 1e-30)
        emphasis /= emphasis.mean()
    return solution


def fit64(function: Real, low: Any, high: Any, degree: int) -> list[float]:
    """Float64 coefficients of the interpolation at Chebyshev points."""
    n, low, high = degree + 1, mp.mpf(low), mp.mpf(high)
    angles = [(k + mp.mpf(1) / 2) * mp.pi / n for k in range(n)]
    xs = [(low + high) / 2 + (high - low) / 2 * mp.cos(a) for a in angles]
    matrix = mp.matrix(n, n)
    for i, x in enumerate(xs):
        for j in range(n):
            matrix[i, j] = x**j
    return [float(c) for c in mp.lu_solve(matrix, mp.matrix([function(x) for x in xs]))]


def table32(function: Real, count: int, h: float, degree: int, slope: int = 0) -> list[list[float]]:
    """``degree + 1`` tables of `count` coefficients of function(i*h + t) - slope*t around 0."""
    rows = []
    for i in range(count):
        if i:
            centre, reach = i * h, h / 2 * 1.01
            rows.append(
                fit32(
                    lambda t, c=centre: function(t + c) - slope * t,
                    -reach,
                    reach,
                    degree,
                    points=200,
                )
            )
            continue
        # An odd function: t * (c1 + c2 t**2 + ...) is accurate relative to t.
        even = fit32(
            lambda z: function(mp.sqrt(z)) / mp.sqrt(z) - slope, 1e-12, (h / 2) ** 2,
            (degree - 1) // 2,
        )  # fmt: skip
        row = [0.0] * (degree + 1)
        row[1 : 2 * len(even) : 2] = even
        rows.append(row)
    return [[row[k] for row in rows] for k in range(degree + 1)]


def near(value: Any, limit: Real, function: Real, least: float) -> Any:
    """function(value), or limit(value) where it would divide by almost 0."""
    return function(value) if abs(value) > least else limit(value)


def exponentials() -> dict[str, Any]:
    def tail(r: Any) -> Any:
        return near(r, lambda r: mp.mpf(1) / 2 + r / 6, lambda r: (mp.expm1(r) - r) / r**2, 1e-12)

    log2 = mp.log(2)
    return {
        "EXP_F": fit32(tail, -0.35, 0.35, 4, weight=lambda r: r * r),
        "EXPM1_F": fit32(tail, -0.35, 0.35, 5, weight=abs, fixed=(0.5,)),
        "EXP2_F": fit32(
            lambda r: near(r, lambda r: log2, lambda r: (mp.power(2, r) - 1) / r, 1e-12),
            -0.5, 0.5, 5, weight=abs,
        ),
        "EXP_D": fit64(tail, mp.mpf("-0.348"), mp.mpf("0.348"), 10),
        "POW_EXP2": fit64(lambda r: mp.power(2, r), mp.mpf(-0.5), mp.mpf(0.5), 7),
        "LN2_LOW": low_part(log2),
    }  # fmt: skip


def low_part(value: Any) -> float:
    """What rounding `value` to float64 loses."""
    return float(value - mp.mpf(float(value)))


def logarithms() -> dict[str, Any]:
    log2 = mp.log(2)
    high = float(np.float32(float(1 / log2)))

    def atanh_tail(z: Any) -> Any:
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) / s - 2) / z

    def atanh_rest(z: Any) -> Any:
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) - 2 * s - mp.mpf(2) / 3 * s**3) / s**5

    def log_tail(f: Any) -> Any:
        return (mp.log1p(f) - f + f * f / 2) / f**3

    def log2_tail(f: Any) -> Any:
        return (mp.log1p(f) / log2 - f / log2) / f**2

    def log2_ratio(f: Any) -> Any:
        return near(f, lambda f: 1 / log2, lambda f: mp.log1p(f) / log2 / f, 1e-15)

    return {
        "LOG_F": fit32(
            lambda f: near(f, lambda f: mp.mpf(1) / 3 - f / 4, log_tail, 1e-6),
            -0.25, 0.5, 7, weight=lambda f: f * f,
        ),
        "LOG2_F": fit32(
            lambda f: near(f, lambda f: (-0.5 + f / 3) / log2, log2_tail, 1e-6),
            -0.25, 0.5, 8, weight=abs,
        ),
        "LOG2_HI": high,
        "LOG2_LO": float(np.float32(float(1 / log2 - mp.mpf(high)))),
        "LOG_D": fit64(
            lambda z: near(z, lambda z: mp.mpf(2) / 3, atanh_tail, 1e-20), 0, mp.mpf("0.0401"), 8
        ),
        "POW_LOG2": fit64(log2_ratio, mp.mpf(-0.25), mp.mpf(0.5), 13),
        "POW_LOG_D": fit64(
            lambda z: near(z, lambda z: mp.mpf(2) / 5 + z * 2 / 7, atanh_rest, 1e-8),
            0, mp.mpf("0.0401"), 7,
        ),
        "LOG2E_LOW": low_part(1 / log2),
        "TWO_THIRDS_LOW": low_part(mp.mpf(2) / 3),
    }  # fmt: skip


def trigonometry() -> dict[str, Any]:
    def sine(z: Any) -> Any:
        return (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z

    def cosine(z: Any) -> Any:
        return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2

    def arctangent(z: Any) -> Any:
        return (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z

    top = float((mp.pi / 4 * mp.mpf("1.01")) ** 2)
    quarter = (mp.pi / 4 * mp.mpf("1.001")) ** 2
    eighth = (mp.tan(mp.pi / 8) * mp.mpf("1.0001")) ** 2
    with mp.workdps(420):
        bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 1216))
    return {
        "SIN_F": fit32(
            lambda z: near(z, lambda z: -mp.mpf(1) / 6, sine, 1e-9), 1e-9, top, 3, weight=abs
        ),
        "COS_F": fit32(
            lambda z: near(z, lambda z: mp.mpf(1) / 24, cosine, 1e-6),
            1e-9, top, 3, weight=lambda z: z * z,
        ),
        "SIN_D": fit64(sine, 0, quarter, 6),
        "COS_D": fit64(cosine, 0, quarter, 6),
        "ATAN_D": fit64(
            lambda z: near(z, lambda z: -mp.mpf(1) / 3 + z / 5, arctangent, 1e-8), 0, eighth, 12
        ),
        "TWO_OVER_PI_1216": bits,
    }  # fmt: skip


def saturating() -> dict[str, Any]:
    def scaled_erfc(t: Any) -> Any:
        x = 2 * (1 + t) / (1 - t)
        return mp.erfc(x) * mp.exp(x * x)

    def erf_tail(z: Any) -> Any:
        return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1

    tanh = table32(mp.tanh, 32, 37 / 128, 6)
    tanh[0][-1] = 1.0  # the last piece, from 8.8 on, rounds to 1 exactly
    return {
        "TANH_H": 37 / 128,
        "TANH_LUT": tanh,
        "ERF_H": 1 / 8,
        "ERF_LUT": table32(mp.erf, 32, 1 / 8, 5, slope=1),
        "ERF_SMALL_F": fit32(
            lambda z: near(z, lambda z: 2 / mp.sqrt(mp.pi) - 1, erf_tail, 1e-20), 0, 0.862, 6
        ),
        "ERF_LARGE_F": fit32(
            lambda a: -mp.log(mp.erfc(a)), 0.92, 4.0, 7, weight=lambda a: float(mp.erfc(a))
        ),
        "ERF_SMALL_D": fit64(erf_tail, 0, 1, 12),
        "ERFC_D": fit64(scaled_erfc, -mp.mpf(1) / 3, mp.mpf("0.5"), 15),
        "ERFC_WIDE_D": fit64(scaled_erfc, -mp.mpf("0.61"), mp.mpf("0.868"), 27),
    }


def text(value: Any, indent: str = "") -> str:
    """A value as wrapped Python source."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        digits = str(value)
        lines = [digits[k : k + 80] for k in range(0, len(digits), 80)]
        return "int(\n" + "".join(f'    "{x}"\n' for x in lines) + ")"
    inner = indent + "    "
    if isinstance(value[0], list):
        return "[\n" + "".join(f"{inner}{text(row, inner)},\n" for row in value) + indent + "]"
    per_line = 3
    lines = [value[k : k + per_line] for k in range(0, len(value), per_line)]
    body = "".join(inner + " ".join(f"{x!r}," for x in line) + "\n" for line in lines)
    return f"[\n{body}{indent}]"


def write(path: Path, found: Iterable[tuple[str, Any]]) -> None:
    body = "".join(f"{name} = {text(value)}\n" for name, value in found)
    title = "Polynomial coefficients and tables of vector_math; written by benchmarks/ulp/fit.py."
    head = f'"""{title}"""\n'
    path.write_text(f"{head}\n# fmt: off\n{body}")


def main() -> None:
    mp.mp.dps = 50
    found = exponentials() | logarithms() | trigonometry() | saturating()
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT, found.items())


if __name__ == "__main__":
    main()
