"""The long run of random calls of the public functions, outside CI.

    PYTHONPATH=src:. python -m tests.arguments.run --calls 100000 --seed 0 --out r.json

Batches run in processes of their own with little memory, so that a crash, a hang or a huge
allocation belongs to one call. ``--only 123`` shows the call of a seed; with ``--open`` the
functions around the calls have signatures that leave sizes open.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

BATCH = 600  # seeds for a process
SECONDS = 180.0  # for one seed, on a machine that others use
MEMORY = 3 << 30  # bytes of addresses that a process may use


def work(first: int, count: int, limit: int, open_sizes: bool) -> None:
    """Check seeds until so many calls were made; prints a record before and after each.

    Args:
        open_sizes: the functions around the calls have signatures with open sizes.
    """
    records = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what td.print prints
    from tests.arguments.check import check, check_open
    from tests.arguments.surface import functions

    check = check_open if open_sizes else check
    functions()  # imports what is imported when first used: no call's time
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    counts = Counter[str]()
    for seed in range(first, first + count):
        if counts["calls"] >= limit:
            break
        records.write(json.dumps({"begin": seed}) + "\n")
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        for fault in check(seed, counts):
            records.write(json.dumps({"fault": vars(fault)}) + "\n")
        faulthandler.cancel_dump_traceback_later()
        records.write(json.dumps({"counts": dict(counts)}) + "\n")


def run_batch(
    first: int, count: int, limit: int, open_sizes: bool = False
) -> tuple[int, Counter[str], list[dict[str, Any]]]:
    """Check seeds in a process of its own: the next seed, what was counted, and the faults."""
    options = ["--worker", "--seed", str(first), "--count", str(count), "--calls", str(limit)]
    options += ["--open"] if open_sizes else []
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.arguments.run", *options]
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


def drive(calls: int, first: int, until: float, open_sizes: bool) -> dict[str, Any]:
    """Run batches until so many calls were made."""
    started, total, faults, seed = time.monotonic(), Counter[str](), list[Any](), first
    while total["calls"] < calls and time.monotonic() - started < until:
        seed, counts, found = run_batch(seed, BATCH, calls - total["calls"], open_sizes)
        for fault in found:
            print(f"--- {fault['seed']} {fault['kind']}\n    {fault['text']}\n    {fault['what']}")
        faults += found
        total += counts
        print(f"... {total['calls']} calls, {len(faults)} faults", flush=True)
    crashes, hangs = (sum(f["kind"] == k for f in faults) for k in ("crash", "hang"))
    return {
        **total, "first seed": first, "seeds": seed - first,
        "seconds": round(time.monotonic() - started), "crashes": crashes, "hangs": hangs,
        "other faults": len(faults) - crashes - hangs, "faults": faults,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=BATCH)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--open", action="store_true", help="signatures with open sizes")
    parser.add_argument("--worker", action="store_true", help="print records of one batch")
    parser.add_argument("--only", type=int, help="show the call of this seed and check it")
    parser.add_argument("--state", default="", help="the commit that is tested")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ["TREADLE_STRICT"] = "1"
    if args.only is not None:
        show(args.only, args.open)
    elif args.worker:
        work(args.seed, args.count, args.calls, args.open)
    else:
        from benchmarks.report import cpu_name
        from tests.arguments.surface import functions

        result = drive(args.calls, args.seed, args.seconds, args.open)
        result["functions"] = len(functions())
        result["processor"], result["python"] = cpu_name(), platform.python_version()
        result["state"] = args.state
        if args.out:
            args.out.write_text(json.dumps(result, indent=1) + "\n")


def show(seed: int, open_sizes: bool) -> None:
    """Print a call and what goes wrong with it."""
    import traceback

    from tests.arguments.check import check, check_open, make, open_signature, prepared, run

    print(make(seed), flush=True)
    if open_sizes:
        print(open_signature(seed, prepared(seed, True)[1]))
    for traced in (False, True):
        outcome = run(seed, traced, True, traced and open_sizes)
        if outcome.error is not None:
            traceback.print_exception(outcome.error)
    for fault in (check_open if open_sizes else check)(seed, Counter()):
        print(fault.kind, fault.what, sep="\n    ")


if __name__ == "__main__":
    main()
