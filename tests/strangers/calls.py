"""Calls of the functions of a collection of programs, plainly and with `td.jit`.

    PYTHON -m tests.strangers.calls KIND ROOT FILE_OR_FOLDER ... [--calls FILE] [--write NAME]

KIND is one of `collected.KINDS`. Each file runs in a process of its own: each of its functions is
called with the arguments of the file, plainly and twice with `td.jit`. A function's outcome is the
worst one of its calls. ``--write`` puts the counts into ``docs/results/NAME.json``.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from tests.strangers.numba_own import recorded
from tests.strangers.numba_own.recorded import Recorder, TookTooLong, limited
from tests.strangers.numba_own.run import judged, told
from tests.strangers.run import ROOT

LONGER = 6  # a file's time, in those of a call


def files_of(root: Path, names: list[str]) -> list[Path]:
    """The files of a repository: those of folders are all with Python or JSON in them."""
    found: list[Path] = []
    for name in names:
        path = root / name
        inner = sorted([*path.rglob("*.py"), *path.rglob("*.json")])
        found += inner if path.is_dir() else [path]
    return found


def module_name(root: Path, file: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts)


def record_file(kind: str, root: Path, file: Path, calls: Path, seconds: int) -> None:
    """Record the calls of one file in this process."""
    from tests.strangers.collected import KINDS

    recorded.SECONDS_OF_A_CALL = seconds
    sys.path.insert(0, str(root))
    warnings.simplefilter("ignore")
    with limited(LONGER * seconds):
        KINDS[kind](file, module_name(root, file), Recorder(calls))


def run_file(kind: str, root: Path, file: Path, calls: Path, seconds: int) -> str:
    """Record the calls of one file in a process of its own; gives how that ended."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.strangers.calls", kind, str(root)]
    command += [str(file), "--calls", str(calls), "--seconds", str(seconds), "--here"]
    try:
        done = subprocess.run(
            command, timeout=(LONGER + 2) * seconds, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return "stopped by the time limit"
    if done.returncode < 0:
        return f"ended by {signal.Signals(-done.returncode).name}"
    return (done.stderr.strip().splitlines() or ["ended"])[-1][:120] if done.returncode else "ended"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the calls of programs with td.jit.")
    parser.add_argument("kind")
    parser.add_argument("root", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--calls", type=Path, help="a file for what became of each call")
    parser.add_argument("--write", help="the name of the results")
    parser.add_argument("--what", default="", help="said of the results")
    parser.add_argument("--seconds", type=int, default=10, help=f"for a call; {LONGER} for a file")
    parser.add_argument("--here", action="store_true", help="one file, in this process")
    options = parser.parse_args()
    calls = options.calls or Path(tempfile.mkdtemp()) / "calls.jsonl"
    calls.touch()
    if options.here:
        try:
            file = Path(options.files[0])
            record_file(options.kind, options.root, file, calls, options.seconds)
        except TookTooLong:
            sys.exit("stopped by the time limit")
        return
    for file in files_of(options.root, options.files):
        ended = run_file(options.kind, options.root, file, calls, options.seconds)
        if ended != "ended":
            print(module_name(options.root, file), ended, flush=True)
    found = told(judged(calls)) | {"what": options.what}
    print(json.dumps({k: found[k] for k in ("functions", "counts")}))
    for cause, number in found["causes"].items():
        print(number, cause)
    if options.write:
        out = ROOT / "docs" / "results" / f"{options.write}.json"
        out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
