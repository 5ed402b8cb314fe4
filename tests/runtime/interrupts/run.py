"""The storm of interrupts, outside CI.

    PYTHONPATH=src:. python -m tests.runtime.interrupts.run --interrupts 10000 --out r.json

Batches run in processes of their own, with caches of their own. ``--only 123`` repeats a seed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

BATCH = 200  # seeds for a process: measuring the scenes takes as long as forty
TIMES = 5  # interrupts of a scene before it must work
SECONDS = 300.0  # for one seed, and for the end of a process: longer than on a busy machine


def work(first: int, seeds: int) -> None:
    """Interrupt the scenes of some seeds; prints a record after each."""
    from tests.runtime.interrupts.storm import Storm

    faulthandler.dump_traceback_later(SECONDS, exit=True)
    storm = Storm()
    for seed in range(first, first + seeds):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        before = storm.hits
        faults = [vars(fault) for fault in storm.interrupt(seed, TIMES)]
        print(json.dumps({"hits": storm.hits - before, "faults": faults}), flush=True)
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # a process must also end


def run_batch(first: int) -> tuple[int, int, list[dict[str, Any]]]:
    """Work on a batch in a process of its own: the seeds done, the interrupts, the faults."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-m", "tests.runtime.interrupts.run",
             "--worker", str(first)],
            capture_output=True, text=True, env=os.environ | {"TREADLE_CACHE_DIR": cache},
        )  # fmt: skip
    lines = [json.loads(s) for s in done.stdout.splitlines() if s.startswith("{")]
    faults = [fault for line in lines for fault in line["faults"]]
    if done.returncode:
        kind = "hang" if "Timeout" in done.stderr else "crash"
        last = {"seed": first + len(lines), "scene": kind, "where": "", "what": done.stderr[-6000:]}
        faults.append(last)
    for fault in faults:
        print(f"--- {fault['seed']} {fault['scene']} {fault['where']}\n{fault['what']}", flush=True)
    return len(lines), sum(line["hits"] for line in lines), faults


def drive(interrupts: int, first: int, jobs: int, seconds: float) -> dict[str, Any]:
    """Run batches until so many interrupts were sent."""
    started, hits, seeds, faults = time.monotonic(), 0, 0, list[dict[str, Any]]()
    numbers = count(first, BATCH)
    with ThreadPoolExecutor(jobs) as executor:
        while hits < interrupts and time.monotonic() - started < seconds:
            batches = [next(numbers) for _ in range(jobs)]
            for done, found, wrong in executor.map(run_batch, batches):
                seeds, hits, faults = seeds + done, hits + found, faults + wrong
            print(f"... {hits} interrupts, {len(faults)} faults", flush=True)
    kinds = Counter(fault["scene"] for fault in faults)
    return {
        "interrupts": hits,
        "scenes": seeds,
        "first seed": first,
        "seconds": round(time.monotonic() - started),
        "crashes": kinds["crash"],
        "hangs": kinds["hang"],
        "wrong afterwards": len(faults) - kinds["crash"] - kinds["hang"],
        "faults": faults,
    }


def processor() -> str:
    """As lscpu names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--worker", type=int, metavar="SEED", help="work on the batch of a seed")
    parser.add_argument("--only", type=int, metavar="SEED", help="show what is wrong with a seed")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.worker is not None:
        work(args.worker, BATCH)
    elif args.only is not None:
        os.environ["TREADLE_FULL_TRACEBACK"] = "1"
        work(args.only, 1)
    else:
        result = drive(args.interrupts, args.seed, args.jobs, args.seconds)
        result["processor"], result["python"] = processor(), platform.python_version()
        if args.out:
            args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
