"""Runs the tests that Keras's wheel has on treadle, and says what became of them.

    python -m tests.strangers.keras_own.run SITE_PACKAGES PATH ... [--limit 300] [--each 60]
        [--list] [--write RESULTS.json]

SITE_PACKAGES has ``keras/src``; the paths are files and folders of tests below that. Each file is a
process of pytest in which ``keras`` and ``tensorflow`` are treadle. ``--list`` prints the errors,
and why tests are left out.
``--write`` puts the counts into a file; what is written there of tests that differ is kept.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.strangers.keras_own.names import exported
from tests.strangers.libraries import FAILED, PASSED, SKIPPED, Suite, _ended
from tests.strangers.run import ROOT

PLUGIN = """
import json
from pathlib import Path

import treadle

treadle.compat.as_tensorflow()
from tests.strangers.keras_own import names

names.install(Path({source!r}), json.loads(Path({table!r}).read_text()))
"""
# `assertRaisesRegex` finds the class that Keras raises, with another text.
OTHER_TEXT = re.compile(r"AssertionError: .* does not match ", re.DOTALL)
# Tests may look at what Keras's own objects hold, or put calls in the place of its classes'.
INSIDE = re.compile(
    r"AttributeError: ('\w+' object has no attribute '_\w+'"
    r"|<module 'keras\.src\.ops\.\w+'> does not have the attribute 'symbolic_call')"
)


def run(file: Path, options: argparse.Namespace) -> Suite:
    """Run the tests of a file."""
    with tempfile.TemporaryDirectory() as own:
        told = {"source": str(options.source), "table": str(options.table)}
        Path(own, "keras_own_plugin.py").write_text(PLUGIN.format(**told))
        copy = Path(own, "tests_of_keras", file.relative_to(options.source))
        copy.parent.mkdir(parents=True)
        shutil.copy(file, copy)
        report = Path(own, "report.xml")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                [own, str(ROOT / "src"), str(ROOT), *map(str, options.packages_beside)]
            ),
            "PYTHONDONTWRITEBYTECODE": "1", "KERAS_BACKEND": "tensorflow", "KERAS_HOME": own,
        }  # fmt: skip
        command = [
            sys.executable, "-m", "pytest", "-p", "keras_own_plugin", "-q", "-W", "ignore",
            "--continue-on-collection-errors", "-p", "no:cacheprovider", "--tb=short",
            "--import-mode=importlib", f"--rootdir={own}", "-o", "addopts=",
            "-o", "junit_logging=no", "-o", "markers=requires_trainable_backend: all are",
            f"--timeout={options.each}", f"--junitxml={report}", str(copy),
        ]  # fmt: skip
        output = None if options.show else subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=own, env=environment, stdout=output, stderr=output)
        return Suite(report, _ended(process, options.limit))


def entry_of(suite: Suite) -> tuple[dict[str, Any], dict[str, str]]:
    """The counts of a file, and the errors of its tests that failed."""
    texts = {name for name, error in suite.errors.items() if OTHER_TEXT.search(error)}
    inside = {name for name, error in suite.errors.items() if INSIDE.match(error)}
    wrong = {n: error for n, error in suite.errors.items() if n not in texts | inside}
    found = Counter(suite.outcomes.values())
    entry: dict[str, Any] = {
        "passed": found[PASSED], "the same error with another text": len(texts),
        "failed": found[FAILED] - len(texts) - len(inside),
        "not applicable": found[SKIPPED] + len(inside),
    }  # fmt: skip
    if not suite.in_time:
        entry["stopped"] = "by the time limit"
    return {key: value for key, value in entry.items() if value or key == "passed"}, wrong


def written(file: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Put the counts of files into the results."""
    results = json.loads(file.read_text()) if file.exists() else {}
    results["files"] = dict(sorted((results.get("files", {}) | entries).items()))
    results["date"] = str(datetime.date.today())
    keys = ("passed", "the same error with another text", "failed", "not applicable")
    results["total"] = {
        key: sum(entry.get(key, 0) for entry in results["files"].values()) for key in keys
    }
    file.write_text(json.dumps(results, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run Keras's own tests on treadle.")
    parser.add_argument("packages", type=Path, help="a folder with keras/src")
    parser.add_argument("paths", nargs="+", help="files or folders of tests below keras/src")
    parser.add_argument(
        "--packages-beside", type=Path, nargs="*", default=[],
        help="folders of further packages that tests compare with, as jax",
    )
    parser.add_argument("--limit", type=int, default=300, help="seconds for a file")
    parser.add_argument("--each", type=int, default=60, help="seconds for a test")
    parser.add_argument(
        "--list", action="store_true", help="print errors of tests, and why others are left out"
    )
    parser.add_argument("--show", action="store_true", help="show what pytest prints")
    parser.add_argument("--write", type=Path, help="results to put counts into")
    return parser.parse_args()


def main() -> None:
    options = _arguments()
    options.source = options.packages.resolve() / "keras" / "src"
    with tempfile.TemporaryDirectory() as folder:
        options.table = Path(folder, "names.json")
        options.table.write_text(json.dumps(exported(options.source)))
        files = [
            file for path in options.paths for file in (
                [options.source / path] if path.endswith(".py")
                else sorted((options.source / path).rglob("*_test.py"))
            )
        ]  # fmt: skip
        for file in files:
            suite = run(file, options)
            entry, wrong = entry_of(suite)
            inside = str(file.relative_to(options.source))
            print(json.dumps({"file": inside} | entry), flush=True)
            if options.list:
                for name, error in wrong.items():
                    print("   ", name.rpartition("::")[2], "|", error, flush=True)
                for reason, count in Counter(suite.reasons.values()).most_common():
                    print("    left out:", count, "|", reason, flush=True)
            if options.write:
                written(options.write, {inside: entry})


if __name__ == "__main__":
    main()
