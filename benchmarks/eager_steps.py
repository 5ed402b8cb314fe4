"""`python -m benchmarks.eager_steps`: training steps run eagerly, beside the peers' eager modes.

Every round begins with a new process for each library, which makes its steps until their time has
settled: treadle's programs are compiled by then, as they are in a program that makes more than a
few hundred steps. Then the libraries take turns. With ``--then CHECKOUT`` an older checkout of
treadle is timed in the same turns. A ratio is the median over all turns of "their time / treadle's
time" (above 1: treadle is faster); times are medians, and the time of the processor in the process
of the library, on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.process import ROOT, Process
from benchmarks.report import machine
from benchmarks.then_and_now import commit
from benchmarks.workload import all_workloads

NOW, THEN = "treadle", "treadle before"
PEERS = {"PyTorch eager": "torch", "TensorFlow eager": "tf-eager", "JAX without jit": "jax-eager"}
STEPS = ("mlp step", "cnn step")
SECONDS, SETTLING = 0.25, 0.5


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.eager_steps", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--then", type=Path, help="folder of an older commit's working tree")
    parser.add_argument("--rounds", type=int, default=3, help="new processes (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="of each process (%(default)s)")
    parser.add_argument("--out", type=Path, help="write the report to this JSON file")
    return parser.parse_args(arguments)


def settle(process: Process) -> None:
    """Make steps until they take the same time as before."""
    before = float("inf")
    for _ in range(12):
        now = process.ask("time", SETTLING, "processor").median
        if now > 0.95 * before:
            return
        before = now


def turns(options: argparse.Namespace, place: Any, cache: str) -> dict[str, list[float]]:
    """Microseconds of a step in each turn, by library."""
    found: dict[str, list[float]] = {}
    with ExitStack() as stack:
        processes = {}
        kinds = {NOW: ("treadle-eager", ROOT), **{k: (v, ROOT) for k, v in PEERS.items()}}
        if options.then is not None:
            kinds[THEN] = "treadle-eager", options.then.resolve()
        for name, (library, root) in kinds.items():
            own = f"{cache}/{name.replace(' ', '_')}"
            process = Process(library, options.peers_python, own, root=root)
            process = stack.enter_context(process)
            try:
                process.ask("prepare", place)
                settle(process)
            except Exception as error:
                print(f"  {name}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
                continue
            processes[name] = process
        for _ in range(options.turns):
            for name, process in processes.items():
                timing = process.ask("time", SECONDS, "processor")
                found.setdefault(name, []).append(timing.median * 1e6)
    return found


def row(found: dict[str, list[float]]) -> dict[str, Any]:
    """Times, and ratios of the turns."""
    times = {name: round(statistics.median(t), 1) for name, t in found.items()}
    ratios = {
        f"{name} / {NOW}": round(
            statistics.median(a / b for a, b in zip(found[name], found[NOW], strict=True)), 2
        )
        for name in found
        if name != NOW
    }
    return {"us": times, "ratios": ratios}


def main() -> None:
    options = parse(sys.argv[1:])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as cache:
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            for name, place in all_workloads().items():
                if name.startswith(STEPS):
                    for library, times in turns(options, place, cache).items():
                        found.setdefault(name, {}).setdefault(library, []).extend(times)
    rows = {name: row(times) for name, times in found.items()}
    for name, shown in rows.items():
        print(name, shown["us"], shown["ratios"])
    if options.out:
        report = {"what": " ".join(__doc__.split("\n\n", 1)[1].split()), "machine": machine()}
        report |= {"load": round(os.getloadavg()[0], 1), "now": commit(ROOT)}
        if options.then:
            report["then"] = commit(options.then)
        report |= {"rounds": options.rounds, "turns": options.turns, "steps": rows}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
