"""Runs the test suites of libraries for TensorFlow on treadle, and says what became of them.

    python -m tests.strangers.libraries FOLDER PATH ... [--packages FOLDER ...]
        [--tensorflow PYTHON] [--write OWNER/NAME]

The tests at the paths below the folder, a checkout of the library, run in pytest after
`td.compat.as_tensorflow()`. With ``--tensorflow``, an interpreter that has TensorFlow and pytest,
they are run there, too, and tests that fail with both do not count against treadle. ``--write``
puts the counts into the results. The libraries are found by nobody: their sources are not here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.strangers.run import ROOT

RESULTS = ROOT / "docs" / "results" / "strangers_library_tests.json"
# A module of its own name: libraries have a package `tests`, too.
PLUGIN = """
import treadle

treadle.compat.as_tensorflow()
"""
ERROR = re.compile(r"^E? *[\w.]*(Error|Exception|Warning|Failed)\b")
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Suite:
    """What became of tests: by their names the outcome, and the last error of those that failed."""

    def __init__(self, report: Path, in_time: bool) -> None:
        self.in_time = in_time
        self.outcomes: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.reasons: dict[str, str] = {}  # of those that were left out
        if not report.exists():  # the process was killed
            return
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            found = {part.tag: part for part in case}
            bad = found.get("failure", found.get("error"))
            if bad is not None:
                self.errors[name] = _last_error(f"{bad.get('message')}\n{bad.text}")
            if "skipped" in found:
                self.reasons[name] = str(found["skipped"].get("message"))
            outcome = FAILED if bad is not None else SKIPPED if "skipped" in found else PASSED
            self.outcomes[name] = outcome
        if not in_time and self.outcomes:  # the test that was interrupted is no result
            self.outcomes.popitem()

    def counts(self) -> dict[str, Any]:
        """How many tests there are of each outcome."""
        found = Counter(self.outcomes.values())
        counts: dict[str, Any] = {o: found[o] for o in (PASSED, FAILED, SKIPPED) if found[o]}
        return counts if self.in_time else counts | {"stopped": "by the time limit"}


def _last_error(text: str) -> str:
    lines = text.split("\n")
    errors = [line for line in lines if ERROR.match(line)]
    return (errors[-1] if errors else lines[0]).removeprefix("E").strip()[:200]


def run(
    folder: Path, paths: Sequence[str], packages: Sequence[str], options: argparse.Namespace,
    python: str | None = None,
) -> Suite:  # fmt: skip
    """Run tests on treadle, or with the TensorFlow of another interpreter."""
    with tempfile.TemporaryDirectory() as own:
        Path(own, "as_treadle.py").write_text("" if python else PLUGIN)
        report = Path(own, "report.xml")
        found = [own, str(folder), *packages, *([] if python else [str(ROOT / "src")])]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(found), "PYTHONDONTWRITEBYTECODE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
        }  # fmt: skip
        if options.keras2:
            environment["TF_USE_LEGACY_KERAS"] = "1"
        command = [
            python or sys.executable, "-m", "pytest", "-p", "as_treadle", "-q", "-W", "ignore",
            "--continue-on-collection-errors", "-p", "no:cacheprovider", "--tb=short",
            f"--timeout={options.each}", f"--junitxml={report}", *options.pytest, *paths,
        ]  # fmt: skip
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
        in_time = _ended(process, options.limit)
        return Suite(report, in_time)


def _ended(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait for pytest, and interrupt it after the limit: it reports the tests that it has run."""
    for number, seconds in ((None, limit), (signal.SIGINT, 60.0), (signal.SIGKILL, None)):
        if number is not None:
            process.send_signal(number)
        try:
            process.wait(seconds)
            return number is None
        except subprocess.TimeoutExpired:
            continue
    return False


def compared(ours: Suite, theirs: Suite | None) -> dict[str, Any]:
    """The entry of the results for a library."""
    entry = ours.counts()
    if theirs is None:
        return entry
    entry["with TensorFlow"] = theirs.counts()
    failed = {
        which: {name for name, outcome in suite.outcomes.items() if outcome == FAILED}
        for which, suite in (("here", ours), ("there", theirs))
    }
    passed_there = {n for n, outcome in theirs.outcomes.items() if outcome == PASSED}
    passed_here = {n for n, outcome in ours.outcomes.items() if outcome == PASSED}
    entry["fail here only"] = len(failed["here"] & passed_there)
    entry["fail with both"] = len(failed["here"] & failed["there"])
    entry["fail with TensorFlow only"] = len(failed["there"] & passed_here)
    return entry


def written(repository: str, entry: dict[str, Any]) -> None:
    """Put an entry into the results, in the place of an older one; reasons stay."""
    results = json.loads(RESULTS.read_text())
    libraries = results["libraries"]
    older = next((one for one in libraries if one["repository"] == repository), None)
    if older is None:
        libraries.append({"repository": repository} | entry)
    else:
        kept = {key: older[key] for key in ("why",) if key in older}
        libraries[libraries.index(older)] = {"repository": repository} | entry | kept
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the tests of a library on treadle.")
    parser.add_argument("folder", type=Path, help="a checkout of the library")
    parser.add_argument("paths", nargs="+", help="tests below it")
    parser.add_argument("--packages", nargs="*", default=[], help="folders of what it imports")
    parser.add_argument("--tensorflow", help="an interpreter that has TensorFlow")
    parser.add_argument("--tensorflow-packages", nargs="*", default=[], help="the same for it")
    parser.add_argument("--keras2", action="store_true", help="with the package tf_keras there")
    parser.add_argument("--limit", type=int, default=900, help="seconds for all tests")
    parser.add_argument("--each", type=int, default=60, help="seconds for a test")
    parser.add_argument("--pytest", nargs="*", default=[], help="more options of pytest")
    parser.add_argument("--write", metavar="OWNER/NAME", help="put the counts into the results")
    return parser.parse_args()


def main() -> None:
    options = _arguments()
    folder = options.folder.resolve()
    ours = run(folder, options.paths, options.packages, options)
    theirs = None
    if options.tensorflow:
        packages = options.tensorflow_packages or options.packages
        theirs = run(folder, options.paths, packages, options, options.tensorflow)
    entry = compared(ours, theirs)
    print(json.dumps(entry, indent=1))
    not_ours = {} if theirs is None else theirs.outcomes
    wrong = {n: e for n, e in ours.errors.items() if not_ours.get(n) != FAILED}
    for error, number in Counter(wrong.values()).most_common():
        print(number, error, "|", next(name for name, e in wrong.items() if e == error))
    if options.write:
        told = {"date": str(datetime.date.today()), "folders": " ".join(options.paths)}
        written(options.write, told | entry)


if __name__ == "__main__":
    main()
