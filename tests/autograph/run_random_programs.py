"""The long run of random programs, outside CI. Writes what it found as JSON.

    python -m tests.autograph.run_random_programs --first 0 --count 10000 --out result.json

Every program runs as plain Python, converted, and traced (by the interpreter); every n-th is
compiled to native code as well.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

from tests.autograph.random_programs import ARGUMENTS, differences, program


def check(seed: int, compiled: bool) -> list[str]:
    try:
        return differences(seed, True, compiled)
    except Exception as error:
        return [f"program {seed}: {type(error).__name__}: {error}\n{program(seed)[1]}"]


def run(first: int, count: int, compiled_every: int, seconds: float) -> dict[str, Any]:
    """Check programs until `count` is reached or the time is over."""
    begin = time.monotonic()
    found: list[str] = []
    done = 0
    for seed in range(first, first + count):
        if time.monotonic() - begin > seconds:
            break
        found += check(seed, seed % compiled_every == 0)
        done += 1
    return {
        "first": first,
        "programs": done,
        "compiled": len(range(-(first % -compiled_every), done, compiled_every)),
        "calls": done * len(ARGUMENTS),
        "differences": len(found),
        "found": found[:20],
        "seconds": round(time.monotonic() - begin),
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--compiled-every", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    result = run(args.first, args.count, args.compiled_every, args.seconds)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print({k: v for k, v in result.items() if k != "found"})


if __name__ == "__main__":
    main()
