"""The long run of random calls on guarded memory, outside CI.

    PYTHONPATH=src:. python -m tests.runtime.guarded.run --calls 100000 --seed 0 --out r.json

Batches run in processes of their own, so that a segmentation fault or a hang belongs to one call.
``--only 123`` shows the call of a seed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

BATCH = 30  # seeds for a process
SECONDS = 60.0  # for all that is done with one seed


def work(first: int, count: int, limit: int) -> None:
    """Check seeds until so many calls were made; prints a record before and after each."""
    from tests.runtime.guarded.check import check
    from tests.runtime.guarded.memory import Pages

    pages, counts = Pages(), Counter[str]()
    for seed in range(first, first + count):
        if counts["calls"] >= limit:
            break
        print(json.dumps({"begin": seed}), flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        for fault in check(seed, pages, counts):
            print(json.dumps({"fault": vars(fault)}), flush=True)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps({"counts": dict(counts)}), flush=True)


def run_batch(first: int, count: int, limit: int) -> tuple[int, Counter[str], list[dict[str, Any]]]:
    """Check seeds in a process of its own: the next seed, what was counted, and the faults."""
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "tests.runtime.guarded.run",
        "--worker",
        "--seed",
        str(first),
        "--count",
        str(count),
        "--calls",
        str(limit),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(s) for s in done.stdout.splitlines() if s.startswith("{")]
    begun = [s["begin"] for s in lines if "begin" in s]
    counts = Counter(next((s["counts"] for s in reversed(lines) if "counts" in s), {}))
    faults = [s["fault"] for s in lines if "fault" in s]
    if done.returncode:
        kind = "hang" if "Timeout" in done.stderr else "crash"
        seed = begun[-1] if begun else first
        faults.append({"seed": seed, "text": "", "kind": kind, "what": done.stderr[-3000:]})
    return (begun[-1] if begun else first) + 1, counts, faults


def drive(calls: int, first: int, jobs: int, until: float) -> dict[str, Any]:
    """Run batches until so many calls were made."""
    from concurrent.futures import ThreadPoolExecutor, wait

    started, total, faults, seed = time.monotonic(), Counter[str](), list[Any](), first
    with ThreadPoolExecutor(jobs) as executor:
        while total["calls"] < calls and time.monotonic() - started < until:
            futures = {}
            for _ in range(jobs):
                futures[executor.submit(run_batch, seed, BATCH, calls - total["calls"])] = seed
                seed += BATCH
            wait(futures)
            for future, begun in futures.items():
                after, counts, found = future.result()
                while found and found[-1]["kind"] in ("crash", "hang") and after < begun + BATCH:
                    _show(found)
                    faults += found
                    total += counts
                    rest = begun + BATCH - after
                    after, counts, found = run_batch(after, rest, calls - total["calls"])
                _show(found)
                faults += found
                total += counts
            print(f"... {total['calls']} calls, {len(faults)} faults", flush=True)
    return {
        "calls": total["calls"],
        "arguments accepted": total["accepted"],
        "arguments refused": total["refused"],
        "NumPy programs (four calls each)": total["jitted programs"],
        "limits of open dims": total["limits of open dims"],
        "rounding of cancelled sums": total["rounding of cancelled sums"],
        "first seed": first,
        "seeds": seed - first,
        "seconds": round(time.monotonic() - started),
        "crashes": sum(f["kind"] == "crash" for f in faults),
        "hangs": sum(f["kind"] == "hang" for f in faults),
        "differences": sum(f["kind"] not in ("crash", "hang") for f in faults),
        "faults": faults,
    }


def _show(faults: list[dict[str, Any]]) -> None:
    for fault in faults:
        print(f"--- {fault['seed']} {fault['kind']}\n    {fault['text']}\n    {fault['what']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=BATCH)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--worker", action="store_true", help="print records of one batch")
    parser.add_argument("--only", type=int, help="show the call of this seed and check it")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ["TREADLE_STRICT"] = "1"
    if args.only is not None:
        show(args.only)
    elif args.worker:
        work(args.seed, args.count, args.calls)
    else:
        result = drive(args.calls, args.seed, args.jobs, args.seconds)
        result["processor"], result["python"] = processor(), platform.python_version()
        if args.out:
            args.out.write_text(json.dumps(result, indent=1) + "\n")


def processor() -> str:
    from treadle.runtime.cpu.target import host

    return str(getattr(host(), "cpu", platform.processor()))


def show(seed: int) -> None:
    """Print a call and what goes wrong with it."""
    from tests.runtime.guarded.check import check, make
    from tests.runtime.guarded.memory import Pages

    print(make(seed).text, flush=True)
    for fault in check(seed, Pages(), Counter()):
        _show([vars(fault)])


if __name__ == "__main__":
    main()
