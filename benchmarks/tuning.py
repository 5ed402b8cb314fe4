"""`python -m benchmarks.tuning`: what trying out the routines of the benchmark's workloads changed.

For every row of products, convolutions and layers the candidates of its routines are tried out, as
`treadle tune` does; nothing is kept. Where one wins, the row is timed with and without it in
alternating rounds. Depthwise convolutions have no candidates.
"""

import argparse
import datetime
import json
import os
import statistics
from pathlib import Path
from typing import Any

from benchmarks.measure import CLOCKS, ForeignLoad, measure
from benchmarks.report import machine
from benchmarks.workload import Workload, all_workloads, load

ROWS = ("matmul", "conv", "depthwise", "matrix by vector", "vector by matrix", "layer")


def jobs_of(workload: Workload, given: dict[str, tuple[int, ...]]) -> Any:
    """The workload as a compiled function and its arguments, made with these winners."""
    import treadle as td
    from treadle.runtime.cpu import winners

    function, *arguments = workload.tf2(td, td.function)  # type: ignore[attr-defined]
    with winners.using(given):
        function(*arguments)
    return function, *arguments


def tried(workload: Workload) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was tried for a workload, and the workload "before" and "after" where a form won."""
    import dataclasses

    import treadle as td
    from treadle import tuner

    function, *arguments = workload.tf2(td, td.function)  # type: ignore[attr-defined]
    found = list(tuner.tune(tuner.routines_of(function, *arguments), keep=False))
    report: dict[str, Any] = {
        "routines": [
            {
                "routine": each.title, "candidates": each.tried, "gain": round(each.gain, 3),
                "change": each.change,
            }
            for each in found
        ]
    }  # fmt: skip
    changed = {e.text: dataclasses.astuple(e.winner) for e in found if e.change}
    if not changed:
        return report, {}
    return report, {"before": jobs_of(workload, {}), "after": jobs_of(workload, changed)}


def timed(jobs: dict[str, Any], rounds: int, seconds: float, clock: str) -> dict[str, Any]:
    """The times of a workload before and after, in µs, and its gain."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            times[name].append(measure(job, seconds, clock=clock).median * 1e6)
    ratios = [b / a for b, a in zip(times["before"], times["after"], strict=True)]
    middle = {f"{name}_us": round(statistics.median(found), 2) for name, found in times.items()}
    spread = [round(min(ratios), 3), round(max(ratios), 3)]
    return middle | {"gain": round(statistics.median(ratios), 3), "gains": spread}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="time a round and form")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="processor", help="wall, where nothing else runs"
    )
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    os.environ |= {"TREADLE_STORE_PROGRAMS": "0", "TREADLE_TUNE": "0"}
    rows, changed = {}, {}
    for name, place in all_workloads().items():
        if name.startswith(ROWS) and options.only in name:
            rows[name], jobs = tried(load(place))
            print(f"{name}: {'changed' if jobs else 'as before'}", flush=True)
            if jobs:
                changed[name] = jobs
    print("what changed is timed", flush=True)
    watch = ForeignLoad()
    for name, jobs in changed.items():
        found = timed(jobs, options.rounds, options.seconds, options.clock)
        rows[name] |= found
        print(f"{name}: {found['gain']:.3f} {found['gains']}", flush=True)
    if options.out:
        from treadle.machine import host

        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        settings = {"rounds": options.rounds, "seconds": options.seconds, "clock": options.clock}
        report = {
            "date": date, "machine": machine(), "family": host().tuning.family,
            "settings": settings, "foreign_cpu": watch.share(), "rows": rows,
        }  # fmt: skip
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
