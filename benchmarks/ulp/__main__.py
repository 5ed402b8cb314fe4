"""The error of every unary float32 function over all float32 numbers, in units of the last place.

    python -m benchmarks.ulp [--every N] [--json PATH] [names]

The reference is treadle's own float64 function, which tests hold to about 2 ulp of float64
against mpmath: 2**-28 of a float32 ulp. --every N looks at every Nth bit pattern (N odd).
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td

CHUNK = 1 << 22
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": td.exp, "expm1": td.math.expm1, "log": td.math.log, "log1p": td.math.log1p,
    "tanh": td.tanh, "sigmoid": td.sigmoid, "softplus": td.nn.softplus, "erf": td.math.erf,
    "erfc": td.math.erfc, "sin": td.sin, "cos": td.cos, "tan": td.tan, "sqrt": td.sqrt,
    "rsqrt": td.math.rsqrt, "asin": td.asin, "acos": td.acos, "atan": td.atan,
    "sinh": td.sinh, "cosh": td.cosh, "asinh": td.asinh, "acosh": td.acosh, "atanh": td.atanh,
}  # fmt: skip
TOP = 2.0**128  # infinity, for the purpose of measuring a distance to it


def measure(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A compiled function of float32 numbers: (largest error, where, sum of errors,
    number that is correctly rounded, number where only one side is NaN)."""

    @td.function(input_signature=[td.TensorSpec([None], td.float32)], autograph=False)
    def compare(x: Any) -> Any:
        got = td.cast(function(x), td.float64)
        exact = function(td.cast(x, td.float64))
        nan = td.math.is_nan(got) != td.math.is_nan(exact)
        got, exact = (td.clip_by_value(v, -TOP, TOP) for v in (got, exact))
        error = td.abs(got - exact) / unit(exact)
        error = td.where(td.math.is_nan(error), td.zeros_like(error), error)
        wrong = td.reduce_sum(td.cast(nan, td.int64))
        right = td.reduce_sum(td.cast(error <= 0.5, td.int64))
        return td.reduce_max(error), td.argmax(error), td.reduce_sum(error), right, wrong

    return compare


def unit(x: Any) -> Any:
    """The distance of float32 numbers around x (float64), by Rump's unit in the first place."""
    q = td.abs(x) * (2.0**52 + 1)
    first = td.abs(q - q * (1 - 2.0**-53))
    return td.clip_by_value(first, 2.0**-126, 2.0**127) * 2.0**-23


def chunks(every: int) -> Iterator[np.ndarray[Any, Any]]:
    """All float32 numbers, or every Nth bit pattern, in arrays."""
    for start in range(0, 1 << 32, CHUNK * every):
        stop = min(start + CHUNK * every, 1 << 32)
        yield np.arange(start, stop, every, dtype=np.uint64).astype(np.uint32).view(np.float32)


def survey(name: str, every: int) -> dict[str, Any]:
    compare, began = measure(FUNCTIONS[name]), time.perf_counter()
    worst, at, total, right, wrong, count = -1.0, math.nan, 0.0, 0, 0, 0
    for x in chunks(every):
        largest, where, errors, exact, unlike = (r.numpy() for r in compare(x))
        if largest > worst:
            worst, at = float(largest), float(x[where])
        total, right, wrong = total + float(errors), right + int(exact), wrong + int(unlike)
        count += len(x)
    return {
        "max_ulp": round(worst, 4), "at": at.hex(), "mean_ulp": round(total / count, 5),
        "correctly_rounded": round(right / count, 5), "nan_mismatches": wrong,
        "inputs": count, "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", default=list(FUNCTIONS), metavar="name")
    parser.add_argument("--every", type=int, default=1, help="look at every Nth number")
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    results = {}
    for name in options.names:
        results[name] = survey(name, options.every)
        print(name.ljust(9), results[name], flush=True)
    if options.json:
        about = {"every": options.every, "machine": platform.processor() or platform.machine()}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(about | {"functions": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
