"""`python -m benchmarks.then_and_now CHECKOUT`: an older checkout and this one on the same work.

Both run side by side, a workload at a time, each in a process of its own; every round begins with
new processes, and the two take turns in being first. Where memory lies differs from process to
process, and with it the time of kernels whose arrays just fit into the caches: a difference counts
where the medians over the rounds, and the least times, both show it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.__main__ import select
from benchmarks.measure import Timing
from benchmarks.process import ROOT, Process, environment
from benchmarks.report import machine
from benchmarks.workload import all_workloads, load

LIBRARY = "treadle"
LIST = "import json; from benchmarks.workload import *; print(json.dumps(all_workloads()))"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.then_and_now", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("checkout", type=Path, help="folder of the older commit's working tree")
    parser.add_argument("workloads", nargs="*", help="names or beginnings of names; default: all")
    parser.add_argument("--rounds", type=int, default=9, help="new processes (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.05, help="time a workload and round (%(default)s)"
    )
    parser.add_argument("--out", type=Path, help="write the times to this JSON file")
    return parser.parse_args(arguments)


class Side:
    """One of the two checkouts, with caches of its own on disk.

    Attributes:
        places: where the checkout has each workload.
        best: microseconds of the fastest block of calls in each round, by workload.
    """

    def __init__(self, root: Path, cache: str) -> None:
        self.root, self.cache = root.resolve(), cache
        self.best: dict[str, list[float]] = {}
        listed = subprocess.run(
            [sys.executable, "-c", LIST], cwd=root, env=environment(cache, False, self.root),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.places = {name: tuple(place) for name, place in json.loads(listed.stdout).items()}

    def process(self, cache: str | None = None, warm: bool = False) -> Process:
        return Process(LIBRARY, sys.executable, cache or self.cache, warm, self.root)

    def note(self, name: str, timing: Timing) -> None:
        self.best.setdefault(name, []).append(timing.best * 1e6)


def steady_round(sides: list[Side], names: list[str], seconds: float) -> None:
    """Time cached calls of every workload once."""
    processes = [(side, side.process()) for side in sides]
    try:
        for name in names:
            found = [process.ask("prepare", side.places[name]) for side, process in processes]
            if all(results is not None for results in found):
                for side, process in processes:
                    side.note(name, process.ask("time", seconds))
            for _, process in processes:
                process.ask("drop")
    finally:
        for _, process in processes:
            process.close()


def fresh_round(sides: list[Side], names: list[str]) -> None:
    """Time the first call of every workload in a process of its own."""
    for name in names:
        warm = load(all_workloads()[name]).warm
        for side in sides:
            with tempfile.TemporaryDirectory() as own:
                cache = side.cache if warm else own
                with side.process(cache, warm) as process:
                    side.note(name, process.ask("first", side.places[name])[0])


def rows(then: Side, now: Side) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each workload the least times, the medians over the rounds, and their ratio."""
    for name, before in then.best.items():
        after = now.best[name]
        least, middle = (min(before), min(after)), [statistics.median(b) for b in (before, after)]
        yield name, {
            "then_us": round(middle[0], 3), "now_us": round(middle[1], 3),
            "then / now": round(middle[0] / middle[1], 2),
            "least then_us": round(least[0], 3), "least now_us": round(least[1], 3),
            "least then / now": round(least[0] / least[1], 2),
        }  # fmt: skip


def compare(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The table, one workload a row."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        then, now = Side(options.checkout, first), Side(ROOT, second)
        chosen = [name for name in select(options.workloads, "CPU") if name in then.places]
        fresh = [name for name in chosen if load(now.places[name]).fresh]
        steady = [name for name in chosen if name not in fresh]
        for number in range(options.rounds + 1):
            print(f"round {number} of {options.rounds}", file=sys.stderr, flush=True)
            sides = [then, now] if number % 2 else [now, then]
            steady_round(sides, steady, options.seconds)
            fresh_round(sides, fresh)
            if number == 0:  # it fills the caches on disk, and does not count
                then.best, now.best = {}, {}
    return dict(rows(then, now))


def commit(root: Path) -> str:
    """The commit that a folder has checked out; empty where git does not say."""
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def main() -> None:
    options = parse(sys.argv[1:])
    table = compare(options)
    for name, row in sorted(table.items(), key=lambda item: item[1]["then / now"]):
        print(
            f"{row['then / now']:5.2f} {row['least then / now']:5.2f}  "
            f"{row['then_us']:>12,.3f} {row['now_us']:>12,.3f}  {name}"
        )
    mean = statistics.geometric_mean([row["then / now"] for row in table.values()])
    print(f"{mean:5.2f}  geometric mean of then / now")
    if options.out:
        what = " ".join(__doc__.split("\n\n", 1)[1].split())
        commits = {"then": commit(options.checkout), "now": commit(ROOT)}
        report = {"what": what, **commits, "machine": machine()}
        report |= {"rounds": options.rounds, "seconds": options.seconds}
        report |= {"geometric mean of then / now": round(mean, 3), "workloads": table}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
