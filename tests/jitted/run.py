"""``python -m tests.jitted.run --programs N --seed S [--out FILE]``: random NumPy programs.

Each is called twice: the second call is a native one.
"""

import argparse
import json
import platform
import time
from collections import Counter
from pathlib import Path

from benchmarks.report import cpu_name
from tests.jitted.differential import difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    began, faults = time.time(), Counter[str]()
    for seed in range(options.seed, options.seed + options.programs):
        found = difference(seed)
        if found is not None:
            faults[found.partition("\n")[0][:100]] += 1
            print(f"seed {seed}: {found}", flush=True)
    summary = {
        "programs": options.programs, "first_seed": options.seed, "different": faults.total(),
        "seconds": round(time.time() - began), "python": platform.python_version(),
        "processor": cpu_name(),
    }  # fmt: skip
    print(json.dumps(summary))
    if options.out is not None:
        options.out.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
