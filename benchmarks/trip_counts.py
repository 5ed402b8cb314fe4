"""`python -m benchmarks.trip_counts`: first calls of kernels with loops over Python ranges.

Each kernel runs with 10 to 10,000 iterations of its loop. The time of a first call less that of a
second one is what tracing and compiling takes; the code cache is empty.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td

TRIPS = (10, 100, 1000, 10_000)
Kernel = Callable[..., Any]


def stencil(n: int) -> tuple[Kernel, list[Any]]:
    def f(u: Any) -> Any:
        for _ in range(n):
            u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        return u

    return f, [td.ones([32, 32])]


def cholesky(n: int) -> tuple[Kernel, list[Any]]:
    size = max(4, round((6 * n) ** (1 / 3)))  # about n innermost iterations

    def f(a: Any) -> Any:
        for i in range(size):
            for j in range(i):
                s = 0.0
                for k in range(j):
                    s += a[i, k] * a[j, k]
                a[i, j] = (a[i, j] - s) / a[j, j]
            t = 0.0
            for k in range(i):
                t += a[i, k] * a[i, k]
            a[i, i] = td.sqrt(a[i, i] - t)
        return a

    return f, [td.eye(size, dtype=td.float64) * 2.0 + td.ones([size, size], td.float64)]


def recurrence(n: int) -> tuple[Kernel, list[Any]]:
    def f(x: Any) -> Any:
        y = td.zeros_like(x)
        for i in range(2, n):
            y[i] = 0.5 * y[i - 1] - 0.3 * y[i - 2] + x[i] * (1.0 / i)
        return y

    return f, [td.ones([n])]


def k_means(n: int) -> tuple[Kernel, list[Any]]:
    def f(points: Any, centers: Any) -> Any:
        for _ in range(n):
            distance = td.reduce_sum((points[:, None] - centers[None]) ** 2, 2)
            near = td.one_hot(td.argmin(distance, 1), 4, dtype=points.dtype)
            total = td.matmul(near, points, transpose_a=True)
            centers = total / (td.reduce_sum(near, 0)[:, None] + 1e-6)
        return centers

    random = np.random.default_rng(0)
    return f, [td.constant(random.normal(size=s).astype("f4")) for s in ((64, 3), (4, 3))]


def training(n: int) -> tuple[Kernel, list[Any]]:
    def f(x: Any, y: Any, w: Any, v: Any) -> Any:
        for i in range(n):
            with td.GradientTape() as tape:
                tape.watch([w, v])
                loss = td.reduce_mean((td.tanh(x @ w) @ v - y) ** 2)
            dw, dv = tape.gradient(loss, [w, v])
            rate = 0.1 / (1 + i)
            w, v = w - rate * dw, v - rate * dv
        return w, v

    random = np.random.default_rng(0)
    shapes = (32, 4), (32, 1), (4, 8), (8, 1)
    return f, [td.constant(random.normal(size=s).astype("f4")) for s in shapes]


KERNELS = (stencil, cholesky, recurrence, k_means, training)


def seconds(make: Callable[[int], tuple[Kernel, list[Any]]], trips: int) -> float:
    """What tracing and compiling takes."""
    kernel, arguments = make(trips)
    function = td.function(kernel)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        result = function(*arguments)
        np.asarray(td.nest.flatten(result)[0])
        times.append(time.perf_counter() - start)
    return max(0.0, times[0] - min(times[1:]))


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
        return text.split("model name")[1].split(":")[1].split("\n")[0].strip()
    except (OSError, IndexError):
        return platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TREADLE_CACHE_DIR"] = folder
        seconds(stencil, 10)  # what the first function of a process needs
        found = {
            make.__name__: {str(n): round(seconds(make, n), 3) for n in TRIPS} for make in KERNELS
        }
    report = {"processor": processor(), "seconds of tracing and compiling by iterations": found}
    text = json.dumps(report, indent=1)
    if options.output is not None:
        options.output.write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
