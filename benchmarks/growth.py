"""`python -m benchmarks.growth`: does time stay in proportion to the work?

Time per element, per iteration and per node over several decades, one row a workload. The times
per element have two honest steps: fixed costs at the small end, memory beyond the caches at the
large one. Per node, only the first call is timed: tracing and compiling.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from benchmarks.chains import CHAINS, argument

Job = Callable[[int], float]  # size -> seconds


def best(call: Callable[[], Any], seconds: float = 0.3, most: int = 2000) -> float:
    """The shortest of the calls that fit into `seconds`, after one that compiles."""
    call()
    found, end = [], time.perf_counter() + seconds
    while not found or (time.perf_counter() < end and len(found) < most):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def elementwise(n: int) -> float:
    f, x = td.function(lambda x: td.tanh(x) * 2.0 + x), td.ones([n])
    return best(lambda: f(x))


def softmax(n: int) -> float:
    f, x = td.function(td.nn.softmax), td.ones([n // 1000, 1000])
    return best(lambda: f(x))


def matmul(n: int) -> float:
    f, x, w = td.function(td.matmul), td.ones([n // 100, 100]), td.ones([100, 100])
    return best(lambda: f(x, w))


def scalar_loop(n: int) -> float:
    f = td.function(
        lambda n: td.while_loop(
            lambda i, a: i < n, lambda i, a: (i + 1, a * 0.5 + 1.0), [td.constant(0), 1.0]
        )[1]
    )
    count = td.constant(n)
    return best(lambda: f(count))


def vector_loop(n: int) -> float:
    f = td.function(
        lambda n, x: td.while_loop(
            lambda i, a: i < n, lambda i, a: (i + 1, a * 0.5 + 1.0), [td.constant(0), x]
        )[1]
    )
    count, x = td.constant(n), td.ones([128])
    return best(lambda: f(count, x))


def list_loop(n: int) -> float:
    def gather(n):
        found = td.TensorArray(td.float32, size=n)
        for i in td.range(n):
            found = found.write(i, td.cast(i, td.float32))
        return found.stack()

    f, count = td.function(gather), td.constant(n)
    return best(lambda: f(count))


def update_loop(n: int) -> float:
    def fill(x, n):
        for i in td.range(n):
            x[i % 1000] = td.cast(i, td.float32)
        return x

    f, count, x = td.function(fill), td.constant(n), td.zeros([1000])
    return best(lambda: f(x, count))


def first_call(function: Callable[[Any], Any], x: Any = None) -> float:
    f, x = td.function(function), td.ones([8]) if x is None else x
    start = time.perf_counter()
    with td.passes.disabled("rolled_loops"):  # Python unrolls what is to be long
        f(x)
    return time.perf_counter() - start


def chain(n: int) -> float:
    def build(x):
        for k in range(n // 2):
            x = td.sin(x) + float(k)
        return x

    return first_call(build)


def wide(n: int) -> float:
    return first_call(lambda x: [td.sin(x + float(k)) for k in range(n // 2)])


def loops(n: int) -> float:
    def build(x):
        for k in range(n // 10):
            x = td.while_loop(
                lambda i, a: i < 2,
                lambda i, a, k=k: (i + 1, td.sin(a) * 0.5 + float(k)),
                [td.constant(0), x],
            )[1]
        return x

    return first_call(build)


def gradient(n: int) -> float:
    def build(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = x
            for k in range(n // 6):
                y = td.sin(y) * (1.0 + 1e-4 * k)
        return tape.gradient(y, x)

    return first_call(build)


def chained(name: str) -> Job:
    """The first call of a chain of n steps."""
    return lambda n: first_call(lambda u: CHAINS[name](u, n), argument(name))


Group = tuple[str, list[int], list[int], dict[str, Job]]
GROUPS: list[Group] = [
    (
        "ns per element",
        [10**k for k in range(3, 9)],
        [10**3, 10**4],
        {"elementwise": elementwise, "softmax": softmax, "matmul": matmul},
    ),
    (
        "ns per iteration",
        [10**k for k in range(2, 8)],
        [10**2, 10**3],
        {
            "scalar": scalar_loop,
            "vector 128": vector_loop,
            "list": list_loop,
            "update": update_loop,
        },
    ),
    (
        "µs per node, traced and compiled",
        [200, 1000, 5000, 20000],
        [100, 200],
        {"chain": chain, "wide": wide, "loops": loops, "gradient": gradient},
    ),
    (
        "µs per step of a chain, traced and compiled",
        [50, 500, 5000],
        [20, 40],
        {name: chained(name) for name in CHAINS},
    ),
]


def measure(
    quick: bool, limit: float, wanted: str = ""
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Figures by group, workload and size; None where ten times the last would pass `limit`."""
    result: dict[str, dict[str, dict[str, float | None]]] = {}
    for unit, sizes, few, jobs in (g for g in GROUPS if wanted in g[0]):
        scale = 1e6 if unit.startswith("µs") else 1e9
        rows: dict[str, dict[str, float | None]] = {}
        for name, job in jobs.items():
            row: dict[str, float | None] = {}
            last = 0.0
            for size in few if quick else sizes:
                if last * 10 > limit:
                    row[str(size)] = None
                    continue
                last = job(size)
                row[str(size)] = last / size * scale
            rows[name] = row
            print(f"{unit}: {name} {row}", file=sys.stderr, flush=True)
        result[unit] = rows
    return result


def table(result: dict[str, dict[str, dict[str, float | None]]]) -> str:
    """Markdown: one table a group."""
    parts = []
    for unit, rows in result.items():
        sizes = list(next(iter(rows.values())))
        lines = [f"| {unit} | " + " | ".join(f"{int(s):,}" for s in sizes) + " |"]
        lines.append("|---" * (len(sizes) + 1) + "|")
        for name, row in rows.items():
            cells = ["left out" if v is None else f"{v:,.3g}" for v in row.values()]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--quick", action="store_true", help="small sizes only, for tests")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a measurement may take")
    parser.add_argument("--group", default="", help="only groups whose unit contains this")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TREADLE_CACHE_DIR"] = folder  # nothing compiled comes from elsewhere
        result = measure(options.quick, options.limit, options.group)
    if options.out:
        report = {"numpy": np.__version__, "cores": os.cpu_count(), "growth": result}
        options.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()
