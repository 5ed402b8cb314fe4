"""The long run of random differentiable programs, outside CI. Writes what it found as JSON.

    python -m tests.autodiff.run_random_programs --count 2000 --out r.json

Every program is differentiated in eager mode and traced (by the interpreter); every n-th is
compiled to native code, too, and has gradients of its gradients checked as is every third.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import Counter
from pathlib import Path

from benchmarks.report import cpu_name
from tests.autodiff.random_programs import differences, program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--compiled-every", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--state", default="", help="the commit that is tested")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    os.environ["TREADLE_STRICT"] = "1"
    began, counts, found = time.monotonic(), Counter[str](), dict[int, list[str]]()
    for seed in range(args.first, args.first + args.count):
        if time.monotonic() - began > args.seconds:
            break
        compiled = seed % args.compiled_every == 0
        second = compiled or seed % 3 == 0
        try:
            lines = differences(seed, compiled, second)
        except Exception as error:
            lines = [f"{seed}: {type(error).__name__}: {error}\n{program(seed)[1]}"]
        counts["programs"] += 1
        counts["compiled, too"] += compiled
        counts["with gradients of gradients"] += second
        counts["not smooth at the point"] += lines is None
        if lines:
            found[seed] = lines
            print(*lines, sep="\n", flush=True)
        if seed % 50 == 0:
            print(f"... {counts['programs']} programs, {len(found)} differ", flush=True)
    result = {
        "what": "gradients = difference quotients; forward mode = reverse mode; eager = traced",
        **counts,
        "different": len(found),
        "first seed": args.first,
        "failing seeds": sorted(found),
        "found": [lines[0] for lines in found.values()][:20],
        "seconds": round(time.monotonic() - began),
        "processor": cpu_name(),
        "python": platform.python_version(),
        "state": args.state,
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print({k: v for k, v in result.items() if k != "found"})


if __name__ == "__main__":
    main()
