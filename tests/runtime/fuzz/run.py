"""The long run of random graphs, outside CI. Writes what it found as JSON.

    PYTHONPATH=src:. python -m tests.runtime.fuzz.run --first 0 --seconds 3600 --out r.json

Programs run in processes of their own, with a time limit each: a hang or a crash is a fault, too.
What fails is made smaller and printed. ``--only 123`` shows one program.
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
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SECONDS = 300.0  # for one program in every way
_BATCH = 40  # programs for a process: what it keeps stays small


def fault(program: Any, seed: int) -> tuple[str, str] | None:
    """The kind and the text of what goes wrong, if anything does."""
    from tests.runtime.fuzz.compare import Difference, check

    faulthandler.dump_traceback_later(_SECONDS, exit=True)
    try:
        check(program, seed)
    except Difference as difference:
        return difference.way.split(" ")[0], str(difference)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {Path(frame.filename).name}:{frame.name}"
        return kind, "".join(traceback.format_exception(error)[-6:])
    finally:
        faulthandler.cancel_dump_traceback_later()
    return None


def smaller(program: Any, seed: int, kind: str) -> Any:
    """A small program with a fault of the same kind."""
    from tests.runtime.fuzz.shrink import shrink

    end = time.time() + _SECONDS

    def fails(other: Any) -> bool:
        if time.time() > end:
            return False
        try:
            found = fault(other, seed)
        except Exception:  # it does not run eagerly either
            return False
        return found is not None and found[0] == kind

    return shrink(program, fails)


def work(seeds: range, end: float) -> Iterator[dict[str, Any]]:
    """Check programs; yields a record before and after each."""
    from tests.runtime.fuzz.generate import generate
    from tests.runtime.fuzz.program import text

    for seed in seeds:
        if time.time() > end:
            return
        yield {"begin": seed}
        program = generate(seed)
        found = fault(program, seed)
        if found is None:
            continue
        yield {"seed": seed, "kind": found[0], "what": found[1], "small": ""}
        program = smaller(program, seed, found[0])
        found = fault(program, seed) or found
        yield {"seed": seed, "kind": found[0], "what": found[1], "small": text(program)}


def run_batch(seeds: range, end: float) -> tuple[list[int], dict[int, dict[str, Any]]]:
    """Check programs in a process of its own: which were begun, and the faults."""
    command = [sys.executable, "-m", "tests.runtime.fuzz.run", "--worker", "--until", str(end)]
    command += ["--first", str(seeds.start), "--count", str(len(seeds))]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(s) for s in done.stdout.splitlines() if s.startswith("{")]
    begun = [s["begin"] for s in lines if "begin" in s]
    faults = {s["seed"]: s for s in lines if "seed" in s}
    if done.returncode:
        seed = begun[-1] if begun else seeds.start
        kind = "hang" if "Timeout" in done.stderr else "crash"
        faults.setdefault(seed, {"seed": seed, "kind": kind, "what": done.stderr[-4000:]})
    return begun or [seeds.start], faults


def drive(first: int, count: int, seconds: float) -> dict[str, Any]:
    """Run batches until the programs or the time are used up."""
    end = time.time() + seconds
    seed, last, faults = first, first + count, dict[int, Any]()
    while seed < last and time.time() < end:
        begun, found = run_batch(range(seed, min(seed + _BATCH, last)), end)
        for number, line in found.items():
            text = "\n".join(str(line.get(k, "")) for k in ("what", "small"))
            print(f"--- {number} {line['kind']}\n{text}", flush=True)
        faults |= found
        seed = begun[-1] + 1
        print(f"... {seed - first} programs, {len(faults)} faults", flush=True)
    return {"first": first, "programs": seed - first, "faults": faults}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--until", type=float, default=1e18, help="time of the system's clock")
    parser.add_argument("--worker", action="store_true", help="print records of one batch")
    parser.add_argument("--only", type=int, help="show this program and check it")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ["TREADLE_STRICT"] = "1"
    if args.only is not None:
        show(args.only)
    elif args.worker:
        for record in work(range(args.first, args.first + args.count), args.until):
            print(json.dumps(record), flush=True)
    else:
        begin = time.monotonic()
        result = drive(args.first, args.count, args.seconds)
        result["seconds"] = round(time.monotonic() - begin)
        result["python"] = platform.python_version()
        if args.out:
            args.out.write_text(json.dumps(result, indent=1) + "\n")


def show(seed: int) -> None:
    """Print a program and what goes wrong with it."""
    from tests.runtime.fuzz.generate import generate
    from tests.runtime.fuzz.program import text

    program = generate(seed)
    print(text(program))
    print(fault(program, seed) or "no difference")


if __name__ == "__main__":
    main()
