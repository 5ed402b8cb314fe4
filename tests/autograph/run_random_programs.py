"""The long run of random programs, outside CI. Writes what it found as JSON.

    python -m tests.autograph.run_random_programs --first 0 --count 10000 --processes 2 --out r.json

Every program runs as plain Python, converted, and traced (by the interpreter); every n-th is
compiled to native code as well. `TREADLE_STRICT` is set, so that what counts as compiled is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import time
from pathlib import Path
from typing import Any

from tests.autograph.random_programs import ARGUMENTS, differences, program

_BATCH = 20  # programs for a process at a time


def check(seed: int, compiled: bool) -> list[str]:
    try:
        return differences(seed, True, compiled)
    except Exception as error:
        return [f"program {seed}: {type(error).__name__}: {error}\n{program(seed)[1]}"]


def check_batch(job: tuple[range, int, float]) -> dict[str, Any]:
    """Check programs (seeds, each how-manieth is compiled) until a time of the system's clock."""
    seeds, compiled_every, end = job
    os.environ["TREADLE_STRICT"] = "1"
    os.environ.setdefault("TREADLE_CACHE_DIR", "")  # no program comes twice
    done: list[int] = []
    found: dict[int, list[str]] = {}
    begin = time.process_time()
    for seed in seeds:
        if time.time() > end:
            break
        if lines := check(seed, seed % compiled_every == 0):
            found[seed] = lines
        done.append(seed)
    return {"done": done, "found": found, "cpu": time.process_time() - begin}


def run(
    first: int, count: int, compiled_every: int, seconds: float, processes: int
) -> dict[str, Any]:
    """Check programs until `count` is reached or the time is over."""
    begin = time.monotonic()
    end = time.time() + seconds
    last = first + count
    batches = [range(s, min(s + _BATCH, last)) for s in range(first, last, _BATCH)]
    done: list[int] = []
    found: dict[int, list[str]] = {}
    cpu = 0.0
    jobs = [(batch, compiled_every, end) for batch in batches]
    # New processes now and then, so that what a process keeps stays small.
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=25) as pool:
        for result in pool.imap_unordered(check_batch, jobs):
            done += result["done"]
            found.update(result["found"])
            cpu += result["cpu"]
    compiled = [seed for seed in done if seed % compiled_every == 0]
    return {
        "seeds": [min(done, default=first), max(done, default=first)],
        "programs": len(done),
        "compiled": len(compiled),
        "compiled_differences": sum(seed in found for seed in compiled),
        "calls": len(done) * len(ARGUMENTS),
        "differences": len(found),
        "found": [line for seed in sorted(found)[:20] for line in found[seed][:1]],
        "failing_seeds": sorted(found),
        "seconds": round(time.monotonic() - begin),
        "cpu_seconds": round(cpu),
        "processes": processes,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--compiled-every", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    result = run(args.first, args.count, args.compiled_every, args.seconds, args.processes)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print({k: v for k, v in result.items() if k != "found"})


if __name__ == "__main__":
    main()
