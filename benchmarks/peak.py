"""`python -m benchmarks.peak`: products as shares of the processor's FMA peak.

The peak is measured, not looked up: independent fused multiply-adds in registers, on as many
threads as a product uses, in the same rounds as the products. Each figure is the median of the
rounds' best calls. With ``--tune`` products that have a faster form than that of the rule, found by
trying out, are measured in it, too (``tuned``); nothing is kept.
"""

import argparse
import ctypes
import dataclasses
import datetime
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from benchmarks.measure import CLOCKS, ForeignLoad
from benchmarks.report import machine
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, suffix
from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.matmul.tiles import lanes
from treadle.runtime.cpu.target import Target, host
from treadle.runtime.cpu.threads import pool

STEPS = 20_000  # of the loop that shows the peak: about 100 microseconds
SUMS = 12  # independent sums: twice the latency of a multiply-add, by two units and more
ELEMENTS = {"float32": "float", "float64": "double"}
SIZES = (256, 512, 1024, 2048)

Job = Callable[[], Any]


def peak_text(target: Target, element: str) -> str:
    """``@fma_peak(record, part, parts)``: STEPS times SUMS multiply-adds of vectors."""
    module, width = Module(target), lanes(target, element)
    fn, kind = Function(module), f"<{width} x {element}>"
    # Not known before the code runs; the sums stay finite for numbers below 1.
    start = fn.value(f"load {kind}, ptr %record, align {ELEMENT_BYTES[element]}")
    fma = f"{kind} @llvm.fma.v{width}{suffix(element)}({kind}, {kind}, {kind})"

    def step(_: Any, sums: list[str]) -> list[str]:
        return [fn.call(fma, f"{kind} {s}, {kind} {start}, {kind} {start}") for s in sums]

    sums = fn.carried(0, STEPS, 1, [kind] * SUMS, [start] * SUMS, step)
    total = sums[0]
    for s in sums[1:]:
        total = fn.value(f"fadd {kind} {total}, {s}")
    # One cache line a thread behind the operand keeps the sums from being left out.
    place = fn.offset("%record", fn.mul(fn.add("%part", 1), 64), "i8")
    fn.emit(f"store {kind} {total}, ptr {place}, align {ELEMENT_BYTES[element]}")
    fn.emit("ret void")
    fn.define("fma_peak", "void @{}(ptr %record, i64 %part, i64 %parts)")
    return module.text()


class Peak:
    """The loop of multiply-adds on all threads of the pool."""

    def __init__(self, dtype: str) -> None:
        element = ELEMENTS[dtype]
        text = peak_text(host(), element)
        self._code = jit().load(lambda: text)
        kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
        self._parallel = ctypes.CFUNCTYPE(None, *kinds)(pool().addresses.parallel)
        self._record = np.zeros(64 * (pool().threads + 1), np.uint8)
        self.flops = 2.0 * lanes(host(), element) * SUMS * STEPS * pool().threads

    def __call__(self) -> None:
        task, record = self._code.address("fma_peak"), self._record.ctypes.data
        self._parallel(task, record, pool().threads, None)


def product(
    m: int, n: int, k: int, dtype: str, transpose: str = "", tune: bool = False
) -> list[tuple[str, Job, float]]:
    """A product in the form of the rule, and in the one that won where it is tried out and another
    did: (changes, job, floating-point operations)."""
    from treadle import tuner
    from treadle.runtime.cpu import winners

    random = np.random.default_rng(0)
    a, b = ((k, m) if transpose == "a" else (m, k)), ((n, k) if transpose == "b" else (k, n))
    x, y = (td.constant(random.standard_normal(s), dtype=dtype) for s in (a, b))

    def multiplied(x: td.Tensor, y: td.Tensor) -> td.Tensor:
        return td.matmul(x, y, transpose_a=transpose == "a", transpose_b=transpose == "b")

    def made(given: dict[str, tuple[int, ...]]) -> Job:
        f = td.function(multiplied)
        with winners.using(given):
            f(x, y)
        return lambda: f(x, y)

    flops = 2.0 * m * n * k
    found = [("", made({}), flops)]
    winners.seen.clear()
    for each in tuner.tune(tuner.routines_of(multiplied, x, y), keep=False) if tune else ():
        if each.change:
            job = made({each.text: dataclasses.astuple(each.winner)})
            found.append((each.change, job, flops))
    return found


def jobs(
    sizes: tuple[int, ...], tune: bool
) -> dict[str, dict[str, list[tuple[str, Job, float]]]]:
    """{dtype: {title: forms of a product}}."""
    from benchmarks.workloads.linalg import SHAPES, title

    squares = {
        dtype: {f"matmul {n}x{n}x{n}": product(n, n, n, dtype, tune=tune) for n in sizes}
        for dtype in ELEMENTS
    }
    others = {
        title(*shape): product(*shape[:3], "float32", shape[3], tune)
        for shape in SHAPES
        if min(shape[:3]) >= 50
    }
    return {**squares, "float32": {**squares["float32"], **others}}


def best_call(job: Job, seconds: float, clock: str = "wall") -> float:
    """Seconds a call of the fastest of the calls that fit into `seconds`, by one of `CLOCKS`."""
    now = CLOCKS[clock]
    best, end = float("inf"), now() + seconds
    while (start := now()) < end or best == float("inf"):
        job()
        best = min(best, now() - start)
    return best


def measure(
    rounds: int, seconds: float, sizes: tuple[int, ...], tune: bool = False, clock: str = "wall"
) -> dict[str, Any]:
    """Rounds over the peak and all jobs; the median round."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    work, foreign = jobs(sizes, tune), []
    for _ in range(rounds):
        watch = ForeignLoad()
        for dtype, group in work.items():
            peak = Peak(dtype)
            for title, forms in group.items():
                for change, job, flops in forms:
                    before = best_call(peak, seconds / 4, clock)
                    taken = best_call(job, seconds, clock)
                    ceiling = peak.flops / min(before, best_call(peak, seconds / 4, clock))
                    pairs = found.setdefault(f"{title} {dtype}", {}).setdefault(change, [])
                    pairs.append((flops / taken, ceiling))
        foreign.append(watch.share())
    return {"foreign_cpu": max(foreign), "rows": {k: _rows(forms) for k, forms in found.items()}}


def _rows(forms: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """The row of the rule's form, and under "tuned" that of the winner."""
    row: dict[str, Any] = _row(forms[""])
    for change, pairs in forms.items():
        if change:
            gains = [won[0] / ruled[0] for won, ruled in zip(pairs, forms[""], strict=True)]
            row["tuned"] = {"change": change, "gain": statistics.median(gains), **_row(pairs)}
    return row


def _row(pairs: list[tuple[float, float]]) -> dict[str, float]:
    speed, ceiling = (statistics.median(column) for column in zip(*pairs, strict=True))
    share = statistics.median(s / c for s, c in pairs)
    return {"gflops": speed / 1e9, "peak_gflops": ceiling / 1e9, "share": share}


def table(rows: dict[str, dict[str, Any]]) -> str:
    lines = ["| product | GFLOP/s | peak | share | tuned |", "|---|---|---|---|---|"]
    for title, row in rows.items():
        speed, peak = row["gflops"], row["peak_gflops"]
        tuned = f"{100 * row['tuned']['share']:.1f} %" if "tuned" in row else ""
        share = f"{100 * row['share']:.1f} %"
        lines.append(f"| {title} | {speed:,.0f} | {peak:,.0f} | {share} | {tuned} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="time a round and product")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="of square matrices")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall",
        help="processor, with one thread, where other programs keep the machine busy",
    )  # fmt: skip
    parser.add_argument("--tune", action="store_true", help="measure what wins when tried out, too")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    sizes = tuple(int(n) for n in options.sizes.split(","))
    os.environ |= {"TREADLE_STORE_PROGRAMS": "0", "TREADLE_TUNE": "0"}  # nothing beside it
    found = measure(options.rounds, options.seconds, sizes, options.tune, options.clock)
    print(table(found["rows"]))
    if options.out:
        settings = {
            "rounds": options.rounds, "seconds": options.seconds, "clock": options.clock,
            "threads": pool().threads,
        }  # fmt: skip
        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        report = {"date": date, "machine": machine(), "settings": settings, **found}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
