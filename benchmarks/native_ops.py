"""NumPy's functions in jitted functions against NumPy, Numba and TensorFlow, call by call.

    python -m benchmarks.native_ops [output.json] [part of a name ...]

Run it with a Python that has numba and tensorflow; what is not installed, or does not have the
function, is left out. The calls take turns, and a ratio is the median over the turns of "their time
/ treadle's time" (above 1: treadle is faster); times are the least of each. One thread each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("TREADLE_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

import treadle as td

ROUNDS = 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=10**6)
MASK = X > 0
WHOLE = RNG.integers(0, 1000, 10**6)
Case = tuple[Callable[..., Any], tuple[Any, ...], "Callable[[Any], Callable[..., Any]] | None"]


def set_number(x, mask):  # type: ignore[no-untyped-def]
    x[mask] = 0.5
    return x


def set_elements(x, y, mask):  # type: ignore[no-untyped-def]
    x[mask] = y[mask]
    return x


def rows(n: int, dtype: str = "float64") -> Any:
    return RNG.normal(size=(1000, n)).astype(dtype)


CASES: dict[str, Case] = {
    "where(mask) of 10^6": (lambda m: np.where(m)[0], (MASK,), lambda tf: lambda m: tf.where(m)),
    "x[mask] of 10^6": (
        lambda x, m: x[m], (X, MASK), lambda tf: lambda x, m: tf.boolean_mask(x, m)
    ),
    "x[mask] = number, 10^6": (set_number, (X.copy(), MASK), None),
    "x[mask] = y[mask], 10^6": (set_elements, (X.copy(), X.copy(), MASK), None),
    **{
        f"sort of 1000 x {n} {dtype}": (
            lambda x: np.sort(x), (rows(n, dtype),), lambda tf: lambda x: tf.sort(x)
        )
        for n, dtype in ((16, "float64"), (32, "float32"), (64, "float64"), (100, "float64"))
    },
    "sort of 100 x 1000": (
        lambda x: np.sort(x), (X[:100000].reshape(100, 1000),), lambda tf: lambda x: tf.sort(x)
    ),
    "sort of 10^6": (lambda x: np.sort(x), (X,), lambda tf: lambda x: tf.sort(x)),
    "argsort of 1000 x 64 float32": (
        lambda x: np.argsort(x), (rows(64, "float32"),), lambda tf: lambda x: tf.argsort(x)
    ),
    "unique of 10^6, 1000 distinct": (
        lambda x: np.unique(x), (WHOLE,), lambda tf: lambda x: tf.unique(x)[0]
    ),
    "unique of 10^6 floats": (
        lambda x: np.unique(x), (X,), lambda tf: lambda x: tf.unique(x)[0]
    ),
    "interp of 10^5 in 1000": (
        lambda x, a, b: np.interp(x, a, b), (X[:100000], np.sort(X[:1000]), X[1000:2000]), None
    ),
    "convolve 10000 * 100": (lambda x, y: np.convolve(x, y), (X[:10000], X[:100]), None),
    "correlate 1000 * 1000, same": (
        lambda x, y: np.correlate(x, y, "same"), (X[:1000], X[1000:2000]), None
    ),
    "median of 10^5": (lambda x: np.median(x), (X[:100000],), None),
    "median of 1000 x 101": (
        lambda x: np.median(x, axis=1), (X[:101000].reshape(1000, 101),), None
    ),
    "percentile of 10^5": (lambda x: np.percentile(x, [25, 50, 75]), (X[:100000],), None),
    "cov of 20 x 1000": (lambda x: np.cov(x), (X[:20000].reshape(20, 1000),), None),
    "corrcoef of 20 x 1000": (lambda x: np.corrcoef(x), (X[:20000].reshape(20, 1000),), None),
    "polyfit of 1000, degree 3": (
        lambda x, y: np.polyfit(x, y, 3), (X[:1000], X[1000:2000]), None
    ),
    "polyval of 10^5, degree 7": (lambda p, x: np.polyval(p, x), (X[:8], X[:100000]), None),
    "cumprod of 10^5": (
        lambda x: np.cumprod(x), (1 + 1e-6 * X[:100000],), lambda tf: lambda x: tf.math.cumprod(x)
    ),
    **{
        f"svd of {n} x {n}": (
            lambda x: np.linalg.svd(x), (X[: n * n].reshape(n, n),),
            lambda tf: lambda x: tf.linalg.svd(x),
        )
        for n in (16, 32, 64)
    },
    "einsum 200 x 300 x 400 x 5": (
        lambda a, b, c: np.einsum("ij,jk,kl->il", a, b, c, optimize=True),
        (X[:60000].reshape(200, 300), X[:120000].reshape(300, 400), X[:2000].reshape(400, 5)),
        lambda tf: lambda a, b, c: tf.einsum("ij,jk,kl->il", a, b, c, optimize="optimal"),
    ),
    "histogram of 10^6, 100 bins": (lambda x: np.histogram(x, 100)[0], (X,), None),
}  # fmt: skip


def seconds(call: Callable[[], Any]) -> float:
    """The time of a call, over enough of them."""
    count, least = 1, 0.01
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        took = time.perf_counter() - start
        if took > least:
            return took / count
        count = max(2 * count, int(count * least / max(took, 1e-9)) + 1)


def numba_call(function: Callable[..., Any], args: Any) -> Callable[[], Any] | None:
    """The call with `njit`; None where Numba does not take the function."""
    try:
        from numba import njit

        compiled = njit(function)
        compiled(*args)
    except Exception:
        return None
    return lambda: compiled(*args)


def tensorflow_call(make: Any, args: Any) -> Callable[[], Any] | None:
    try:
        import tensorflow as tf
    except ImportError:
        return None
    function = tf.function(make(tf))
    tensors = [tf.constant(a) for a in args]
    function(*tensors)
    return lambda: function(*tensors)


def measured(case: Case) -> dict[str, Any]:
    """Microseconds of each, and the ratios."""
    function, args, other = case
    jitted = td.jit(function)
    calls: dict[str, Callable[[], Any]] = {
        "treadle": lambda: jitted(*args), "numpy": lambda: function(*args)
    }  # fmt: skip
    numba = numba_call(function, args)
    if numba is not None:
        calls["numba"] = numba
    tensorflow = None if other is None else tensorflow_call(other, args)
    if tensorflow is not None:
        calls["tensorflow"] = tensorflow
    for call in calls.values():
        call(), call()
    turns = [{name: seconds(call) for name, call in calls.items()} for _ in range(ROUNDS)]
    result: dict[str, Any] = {
        f"{name}_us": round(1e6 * min(t[name] for t in turns), 2) for name in calls
    }
    for name in list(calls)[1:]:
        result[f"ratio_{name}"] = round(median(t[name] / t["treadle"] for t in turns), 2)
    return result


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({len(names)} cores)" if names else "unknown"


def main(target: str, wanted: list[str]) -> None:
    results: dict[str, Any] = {}
    what = (
        "jitted functions, one thread: the least time of a call in microseconds, and medians of "
        "their time / treadle's over calls that take turns, on a machine shared with other work"
    )
    text = {"what": what, "processor": processor(), "numpy": np.__version__, "results": results}
    for name, case in CASES.items():
        if not wanted or any(w in name for w in wanted):
            results[name] = measured(case)
            print(f"{name:34s} {results[name]}", flush=True)
            if target:
                Path(target).write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:])
