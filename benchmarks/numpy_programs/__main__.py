"""Measures the NumPy programs: ``python -m benchmarks.numpy_programs --out FILE [NAMES]``."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.numpy_programs import PROGRAMS
from benchmarks.report import machine, markdown, microseconds

LIBRARIES = ("numpy", "numba", "numba_parallel", "jax", "treadle")
PEERS = LIBRARIES[:-1]


def run(library: str, name: str, python: str, seconds: float) -> dict[str, Any]:
    """One process; treadle begins with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TREADLE_CACHE_DIR": cache, "NUMBA_CACHE_DIR": cache}
        command = [python, "-W", "ignore", "-m", "benchmarks.numpy_programs.worker"]
        try:
            done = subprocess.run(
                [*command, library, name, "0"], capture_output=True, text=True,
                env=environment, timeout=seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {seconds:.0f} s"}
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return dict(json.loads(line.removeprefix("RESULT ")))
    return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}


def combined(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of rounds; what failed once has failed."""
    for cell in rounds:
        if "median" not in cell:
            return cell
    return {
        key: median(cell[key] for cell in rounds)
        for key in ("first", "second", "median", "foreign_cpu")
    } | {"agrees": all(cell["agrees"] for cell in rounds)}


def summary(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """How treadle stands against the best peer and against Numba."""
    best, numba, first = [], [], []
    for row in rows.values():
        mine = row["treadle"].get("median")
        peers = [row[p]["median"] for p in PEERS if "median" in row.get(p, {})]
        if mine is None:
            continue
        first.append(row["treadle"]["first"])
        best.append(min(peers) / mine)
        theirs = [row[p]["median"] for p in ("numba", "numba_parallel") if "median" in row[p]]
        if theirs:
            numba.append(min(theirs) / mine)
    return {
        "programs": len(rows),
        "right": sum(row["treadle"].get("agrees", False) for row in rows.values()),
        "level_with_the_best_or_ahead": sum(b >= 0.95 for b in best),
        "geometric_mean_of_best_peer_over_treadle": _mean(best),
        "geometric_mean_of_best_numba_over_treadle": _mean(numba),
        "longest_first_call_s": max(first, default=0.0),
        "first_calls_of_0.6_s_at_most": sum(f <= 0.6 for f in first),
    }  # fmt: skip


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0


def table(report: dict[str, Any]) -> str:
    """A Markdown table: microseconds a call, and seconds of treadle's first call."""
    lines = [["program (µs)", *LIBRARIES, "best peer / treadle", "first call (s)"]]
    for name, row in report["programs"].items():
        cells = [_text(row.get(library, {})) for library in LIBRARIES]
        mine = row["treadle"]
        peers = [row[p]["median"] for p in PEERS if "median" in row.get(p, {})]
        ratio = f"{min(peers) / mine['median']:.2f}" if "median" in mine else ""
        lines.append([name, *cells, ratio, f"{mine['first']:.2f}" if "first" in mine else ""])
    return markdown(lines)


def _text(cell: dict[str, Any]) -> str:
    if "median" in cell:
        return microseconds(cell["median"] * 1e6) + ("" if cell["agrees"] else " (wrong)")
    return "failed" if "error" in cell else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--libraries", nargs="*", default=list(LIBRARIES))
    parser.add_argument("--peers-python", default=os.environ.get("TREADLE_PEERS_PYTHON"))
    parser.add_argument("--timeout", type=float, default=60.0)
    options = parser.parse_args()
    peers = options.peers_python or sys.executable
    rows: dict[str, dict[str, Any]] = {}
    for program in PROGRAMS:
        if options.names and program.name not in options.names:
            continue
        found: dict[str, list[dict[str, Any]]] = {library: [] for library in options.libraries}
        for _ in range(options.rounds):
            for library, cells in found.items():
                if cells and "median" not in cells[-1]:
                    continue
                python = sys.executable if library == "treadle" else peers
                cells.append(run(library, program.name, python, options.timeout))
        rows[program.name] = {name: combined(cells) for name, cells in found.items()}
        shown = {n: c.get("median", c.get("error", "")) for n, c in rows[program.name].items()}
        print(program.name, json.dumps(shown), flush=True)
    report = {"machine": machine(), "summary": summary(rows), "programs": rows}
    print(table(report))
    print(json.dumps(report["summary"], indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
