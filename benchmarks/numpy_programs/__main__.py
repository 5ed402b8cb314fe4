"""Measures the NumPy programs: ``python -m benchmarks.numpy_programs --out FILE [NAMES]``.

Every library runs every program in a process of its own, all libraries in turn, so that what fails
or hangs costs its own cell only. treadle's modules are there as bytecode, as those of the other
libraries are: pip compiles what it installs. The report is written after each program; rows that
are in FILE already stay there unless they are measured again, so a report can be made in pieces.
``--table FILE`` prints a report as Markdown and measures nothing.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.numpy_programs import PROGRAMS
from benchmarks.process import ROOT, environment
from benchmarks.report import machine, markdown, microseconds

LIBRARIES = ("numpy", "numba", "numba_parallel", "jax", "treadle")
PEERS = LIBRARIES[:-1]
NUMBA = ("numba", "numba_parallel")
LEVEL = 0.95  # of the best peer's speed: what is called level with it


def run(library: str, name: str, python: str, seconds: float) -> dict[str, Any]:
    """One process; every library begins with an empty cache of machine code."""
    with tempfile.TemporaryDirectory() as cache:
        command = [python, "-W", "ignore", "-m", "benchmarks.numpy_programs.worker"]
        try:
            done = subprocess.run(
                [*command, library, name, "0"], capture_output=True, text=True,
                env=environment(cache, warm=False) | {"NUMBA_CACHE_DIR": cache}, timeout=seconds,
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
    } | {
        "best": min(cell["best"] for cell in rounds),
        "agrees": all(cell["agrees"] for cell in rounds),
        "rounds": [cell["median"] for cell in rounds],
    }


def summary(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """How treadle stands against the best peer and against Numba: by the medians of calls, and by
    the fastest ones, which other processes disturb less."""
    first = [row["treadle"]["first"] for row in rows.values() if "first" in row["treadle"]]
    return {
        "programs": len(rows),
        "right": sum(row["treadle"].get("agrees", False) for row in rows.values()),
        "longest_first_call_s": max(first, default=0.0),
        "first_calls_of_0.6_s_at_most": sum(f <= 0.6 for f in first),
        "by_medians": _standing(rows, "median"),
        "by_fastest_calls": _standing(rows, "best"),
    }


def _standing(rows: dict[str, dict[str, Any]], key: str) -> dict[str, Any]:
    best = {name: b for name, row in rows.items() if (b := ratio(row, PEERS, key)) is not None}
    numba = [r for row in rows.values() if (r := ratio(row, NUMBA, key)) is not None]
    behind = {name: round(b, 2) for name, b in best.items() if b < LEVEL}
    return {
        "level_with_the_best_or_ahead": len(best) - len(behind),
        "geometric_mean_of_best_peer_over_treadle": _mean(list(best.values())),
        "geometric_mean_of_best_numba_over_treadle": _mean(numba),
        "behind": dict(sorted(behind.items(), key=lambda item: item[1])),
    }


def ratio(row: dict[str, Any], libraries: Sequence[str], key: str) -> float | None:
    """The time of the fastest of some libraries, over treadle's; None where one is missing."""
    times = [row[name][key] for name in libraries if key in row.get(name, {})]
    mine = row["treadle"].get(key)
    return None if mine is None or not times else float(min(times) / mine)


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0


def table(report: dict[str, Any]) -> str:
    """A Markdown table: microseconds a call, and seconds of treadle's first call."""
    lines = [["program (µs)", *LIBRARIES, "best peer / treadle", "first call (s)"]]
    for name, row in report["programs"].items():
        cells = [_text(row.get(library, {})) for library in LIBRARIES]
        mine, ahead = row["treadle"], ratio(row, PEERS, "median")
        first = f"{mine['first']:.2f}" if "first" in mine else ""
        lines.append([name, *cells, "" if ahead is None else f"{ahead:.2f}", first])
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
    parser.add_argument("--table", type=Path, help="print a report that is there")
    options = parser.parse_args()
    if options.table is not None:
        print(table(json.loads(options.table.read_text())))
        return
    out: Path | None = options.out
    rows: dict[str, dict[str, Any]] = {}
    if out is not None and out.exists():
        rows = json.loads(out.read_text())["programs"]
    report = {}
    compileall.compile_dir(ROOT / "src" / "treadle", quiet=2)
    for program in PROGRAMS:
        if options.names and program.name not in options.names:
            continue
        row = rows.get(program.name, {}) | measured(program.name, options)
        rows[program.name] = row
        shown = {n: c.get("median", c.get("error", "")) for n, c in row.items()}
        print(program.name, json.dumps(shown), flush=True)
        report = finished(rows)
        if out is not None:
            out.write_text(json.dumps(report, indent=1) + "\n")
    report = report or finished(rows)
    print(table(report))
    print(json.dumps(report["summary"], indent=1))


def measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One program by all libraries, in turn; what failed is not tried again."""
    peers = options.peers_python or sys.executable
    found: dict[str, list[dict[str, Any]]] = {library: [] for library in options.libraries}
    for _ in range(options.rounds):
        for library, cells in found.items():
            if cells and "median" not in cells[-1]:
                continue
            python = sys.executable if library == "treadle" else peers
            cells.append(run(library, name, python, options.timeout))
    return {library: combined(cells) for library, cells in found.items()}


def finished(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The report of what was measured, in the order of the programs."""
    ordered = {p.name: rows[p.name] for p in PROGRAMS if p.name in rows}
    complete = {name: row for name, row in ordered.items() if "treadle" in row}
    return {"machine": machine(), "summary": summary(complete), "programs": complete}


if __name__ == "__main__":
    main()
