"""`treadle bench`: eager against graph for a set of workloads; a table, and files on demand."""

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from treadle.bench import BenchmarkResult, benchmark
from treadle.examples.workloads import WORKLOADS
from treadle.version import __version__

from . import bisect_passes
from .errors import UsageError


def run(options: argparse.Namespace) -> None:
    console = Console()
    names = [name for name in WORKLOADS if (options.only or "").lower() in name.lower()]
    if not names:
        raise UsageError(f"no workload is called {options.only!r}: {', '.join(WORKLOADS)}")
    if options.bisect_passes:
        bisect(names, options.json, console)
        return
    check_writable(*(file for file in (options.json, options.plot) if file is not None))
    results = {}
    for name in names:
        with console.status(f"timing {name}"):
            function, arguments = WORKLOADS[name]()
            results[name] = benchmark(function, *arguments)
    console.print(table(results))
    if options.json is not None:
        write(options.json, report(results), console)
    if options.plot is not None:
        plot(results, options.plot, console)


def write(file: Path, found: dict[str, Any], console: Console) -> None:
    file.write_text(json.dumps(found, indent=1) + "\n")
    console.print(f"wrote {file}", markup=False)


def bisect(names: list[str], file: Path | None, console: Console) -> None:
    """Time the workloads with each pass and mechanism switched off in turn."""
    if file is not None:
        check_writable(file)
    found = {}
    for name in names:
        with console.status(f"timing {name}"):
            found[name] = bisect_passes.contributions(WORKLOADS[name])
        console.print(bisect_passes.table(name, found[name]))
    passes = {name: bisect_passes.to_json(rows) for name, rows in found.items()}
    if file is not None:
        write(file, {**report({}), "passes": passes}, console)


def check_writable(*files: Path) -> None:
    """Refuse a file that cannot be written before minutes go into its contents."""
    for file in files:
        if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
            raise UsageError(f"cannot write {file}")


def table(results: dict[str, BenchmarkResult]) -> Table:
    shown = Table(title=f"eager against graph, µs a call, on {os.cpu_count()} cores")
    shown.add_column("workload")
    for heading in ("eager", "graph", "speed-up", "first call (ms)"):
        shown.add_column(heading, justify="right")
    for name, result in results.items():
        shown.add_row(
            name,
            f"{result.eager * 1e6:,.1f}",
            f"{result.graph * 1e6:,.1f}",
            f"{result.speedup:.1f} x",
            f"{result.first_call * 1e3:,.0f}",
        )
    return shown


def report(results: dict[str, BenchmarkResult]) -> dict[str, Any]:
    return {
        "treadle": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "workloads": {name: result.to_json() for name, result in results.items()},
    }


def plot(results: dict[str, BenchmarkResult], file: Path, console: Console) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        hint = "no plot: matplotlib is missing; pip install 'treadle[plot]' brings it"
        console.print(hint, markup=False)
        return
    figure = Figure(figsize=(8, 1.2 + 0.7 * len(results)), layout="constrained")
    axes = figure.add_subplot()
    rows = range(len(results))
    for offset, label in ((-0.2, "eager"), (0.2, "graph")):
        times = [getattr(result, label) * 1e6 for result in results.values()]
        bars = axes.barh([row + offset for row in rows], times, height=0.38, label=label)
        axes.bar_label(bars, [f"{time:,.1f}" for time in times], padding=3)
    axes.set_yticks(list(rows), list(results))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("µs a call (logarithmic)")
    axes.set_title("treadle: eager against graph")
    axes.legend()
    figure.savefig(file, dpi=150)
    console.print(f"wrote {file}", markup=False)
