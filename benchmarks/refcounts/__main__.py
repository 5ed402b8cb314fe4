"""`python -m benchmarks.refcounts [NAME...]`: each path, counted; a table as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

from benchmarks.refcounts.measure import Growth, growth, leaks
from benchmarks.refcounts.paths import PATHS
from treadle.runtime.cpu.dispatch import eager


def main() -> int:
    """Count the paths named (or all), add them to the file; 1 where something leaks."""
    options = _parser().parse_args()
    unknown = sorted(set(options.names) - set(PATHS))
    if unknown:
        raise SystemExit(f"no path is called {', '.join(unknown)}")
    if not eager.install():
        raise SystemExit("this interpreter has no native calls")
    bad = 0
    for name in options.names or PATHS:
        path = PATHS[name]
        calls = options.calls // (1 if path.native else options.python_share) // path.slowness
        found = growth(path.make(), calls)
        wrong = leaks(found)
        bad += bool(wrong)
        print(f"{name:35} {found} {'LEAKS ' + ', '.join(wrong) if wrong else ''}", flush=True)
        if options.out:
            _add(options.out, name, found)
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refcounts", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--calls", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument(
        "--python-share", type=int, default=10, metavar="N",
        help="paths that go through Python get this many times fewer calls; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON to add the rows to")
    return parser


def _add(file: Path, name: str, found: Growth) -> None:
    """Rows of earlier runs stay: one run need not count everything."""
    report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"paths": {}}
    report["python"] = platform.python_version()
    report["debug_build"] = hasattr(sys, "gettotalrefcount")
    report["paths"][name] = found._asdict() | {"native": PATHS[name].native}
    report["paths"] = {n: report["paths"][n] for n in PATHS if n in report["paths"]}
    file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
