"""`python -m benchmarks.emitted FOLDER`: the LLVM text of all code that the workloads need.

Two commits that emit the same text for a machine are equally fast on it: run this with each of
them and compare the folders (`diff -rq`). `TREADLE_TARGET` names another machine, whose code is
emitted, compiled and run here where this processor has its instructions.
"""

import argparse
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.libraries import LIBRARIES
from benchmarks.measure import call
from benchmarks.workload import all_workloads, load

TREADLE = ("treadle", "treadle-eager")
_NAME = re.compile(r"@\"?([\w.]+)")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.emitted", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the texts go, a file each")
    parser.add_argument("workloads", nargs="*", help="names or beginnings of names; all by default")
    return parser.parse_args()


def collect(folder: Path, names: list[str]) -> int:
    """Run the workloads once with nothing on disk; returns how many texts were written."""
    from treadle.runtime.cpu import jit

    compile_text = jit.Jit.compile
    written: set[str] = set()

    def keep(self: Any, text: str) -> bytes:
        name = _NAME.search(text[text.find("define") :])
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        label = f"{name[1][:40] if name else 'module'}-{digest}.ll"
        (folder / label).write_text(text)
        written.add(label)
        return compile_text(self, text)

    jit.Jit.compile = keep  # type: ignore[method-assign]
    for name, place in all_workloads().items():
        workload = load(place)
        if workload.fresh or (names and not name.startswith(tuple(names))):
            continue
        for library in TREADLE:
            job = workload.job(LIBRARIES[library])
            if job is not None:
                call(job)
    return len(written)


def main() -> None:
    options = parse()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TREADLE_CACHE_DIR"], os.environ["TREADLE_STORE_PROGRAMS"] = cache, "0"
        print(collect(options.folder, options.workloads), "texts")


if __name__ == "__main__":
    main()
