"""Runs TensorFlow's own tests of its operations on treadle, and says what became of them.

    python -m tests.strangers.tensorflow_own.run CHECKOUT PATH ... --tensorflow PYTHON
        [--kept FOLDER] [--limit 150] [--each 20] [--only EXPRESSION] [--list]
        [--write RESULTS.json]

CHECKOUT has ``tensorflow/python``; the paths are files and folders of tests below that. Each file
is a process of pytest, on treadle and with the TensorFlow of the interpreter. What TensorFlow gave
is kept in a folder, since it stays as it is; so is the table of names. Tests count that pass there.
``--only`` chooses tests by their names, as ``pytest -k``: ``not mode_graph`` leaves out those of
datasets in graphs. ``--list`` prints the errors of tests that fail only here; ``--write`` puts
counts into a file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.strangers.libraries import PASSED, SKIPPED, Suite, _ended
from tests.strangers.run import ROOT

HERE = """
import sys
from pathlib import Path

import treadle

treadle.compat.as_tensorflow()
from tests.strangers.tensorflow_own import names

names.install(Path({table!r}), Path({checkout!r}))
from absl import flags

flags.FLAGS.mark_as_parsed()
"""
THERE = """
import sys
from pathlib import Path

sys.path.append({root!r})
import tensorflow
from tests.strangers.tensorflow_own.names import Helpers

sys.meta_path.append(Helpers(Path({checkout!r})))
from absl import flags

flags.FLAGS.mark_as_parsed()
"""


def _run(file: Path, options: argparse.Namespace, python: str | None) -> Suite:
    """Run the tests of a file on treadle, or with the TensorFlow of another interpreter."""
    tests = options.checkout / "tensorflow" / "python"
    with tempfile.TemporaryDirectory() as own:
        plugin = THERE if python else HERE
        told = {"table": str(options.table), "checkout": str(options.checkout), "root": str(ROOT)}
        Path(own, "own_tests_plugin.py").write_text(plugin.format(**told))
        copy = Path(own, "tests_of_tensorflow", file.relative_to(tests))
        copy.parent.mkdir(parents=True)
        shutil.copy(file, copy)
        report = Path(own, "report.xml")
        found = [own, *([] if python else [str(ROOT / "src"), str(ROOT), *options.packages])]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(found), "PYTHONDONTWRITEBYTECODE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
        }  # fmt: skip
        command = [
            python or sys.executable, "-m", "pytest", "-p", "own_tests_plugin", "-q",
            "-W", "ignore", "--continue-on-collection-errors", "-p", "no:cacheprovider",
            "--tb=short",
            "--import-mode=importlib", f"--rootdir={own}", "-o", "addopts=",
            "-o", "junit_logging=no",
            f"--timeout={options.each}", f"--junitxml={report}", "-k", options.only, str(copy),
        ]  # fmt: skip
        output = None if options.show else subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=own, env=environment, stdout=output, stderr=output)
        in_time = _ended(process, options.limit * (2 if python else 1))
        suite = Suite(report, in_time)
        return suite


def _there(file: Path, options: argparse.Namespace) -> dict[str, str]:
    """What became of a file's tests with TensorFlow, from an earlier run if there was one."""
    inside = file.relative_to(options.checkout / "tensorflow" / "python")
    kept = options.kept / "there" / f"{inside}.json"
    if not kept.exists():
        suite = _run(file, options, options.tensorflow)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(suite.outcomes))
    found: dict[str, str] = json.loads(kept.read_text())
    return found


def entry_of(
    file: str, ours: Suite, theirs: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The counts of a file, and the errors of tests that fail here only."""
    counting = {name for name, outcome in theirs.items() if outcome == PASSED}
    here = Counter(ours.outcomes.get(name, "not run") for name in counting)
    if not theirs:
        counting = set(ours.outcomes)
        here = Counter(ours.outcomes.values())
    entry = {
        "file": file, "cases": len(theirs), "pass with TensorFlow": len(counting),
        "pass here": here[PASSED], "skipped here": here[SKIPPED], "not run here": here["not run"],
    }  # fmt: skip
    wrong = {n: e for n, e in ours.errors.items() if n in counting or n not in theirs}
    if not ours.in_time:
        entry["stopped"] = "by the time limit"
    return entry, wrong


def written(file: Path, entries: list[dict[str, Any]]) -> None:
    """Put entries into the results; what an older one counted first stays as "pass before"."""
    results = json.loads(file.read_text()) if file.exists() else {"files": []}
    by_name = {one["file"]: one for one in results["files"]}
    for entry in entries:
        older = by_name.get(entry["file"], {})
        before = older.get("pass before", older.get("pass here", entry["pass here"]))
        kept = {key: older[key] for key in ("why",) if key in older}
        by_name[entry["file"]] = entry | {"pass before": before} | kept
    results["files"] = [by_name[name] for name in sorted(by_name)]
    results["date"] = str(datetime.date.today())
    keys = ("cases", "pass with TensorFlow", "pass here", "pass before")
    compared = [one for one in results["files"] if one["pass with TensorFlow"] is not None]
    others = [one for one in results["files"] if one["pass with TensorFlow"] is None]
    results["with TensorFlow"] = {key: sum(one[key] for one in compared) for key in keys}
    results["without"] = {
        key: sum(one[key] for one in others) for key in ("cases", "pass here", "skipped here")
    }
    file.write_text(json.dumps(results, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run TensorFlow's own tests on treadle.")
    parser.add_argument("checkout", type=Path, help="a folder with tensorflow/python")
    parser.add_argument("paths", nargs="+", help="files or folders of tests below that")
    parser.add_argument("--tensorflow", required=True, help="an interpreter that has TensorFlow")
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir(), "tensorflow_own"))
    parser.add_argument("--limit", type=int, default=150, help="seconds for a file")
    parser.add_argument("--each", type=int, default=20, help="seconds for a test")
    parser.add_argument("--only", default="", help="an expression on the names of tests")
    parser.add_argument("--only-here", action="store_true", help="leave TensorFlow out")
    parser.add_argument("--only-there", action="store_true", help="only keep what TensorFlow gives")
    parser.add_argument("--packages", nargs="*", default=[], help="folders of what tests import")
    parser.add_argument("--list", action="store_true", help="print errors of tests")
    parser.add_argument("--show", action="store_true", help="show what pytest prints")
    parser.add_argument("--write", type=Path, help="results to put counts into")
    return parser.parse_args()


def main() -> None:
    options = _arguments()
    options.checkout = options.checkout.resolve()
    options.table = options.kept / "names.json"
    if not options.table.exists():
        options.kept.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).with_name("exported_names.py")
        command = [options.tensorflow, str(script), str(options.checkout), str(options.table)]
        subprocess.run(command, check=True, capture_output=True)
    tests = options.checkout / "tensorflow" / "python"
    files = [
        file
        for path in options.paths
        for file in (
            [tests / path] if path.endswith(".py") else sorted((tests / path).rglob("*_test.py"))
        )
    ]
    for file in files:
        if options.only_there:
            _there(file, options)
            continue
        theirs = {} if options.only_here else _there(file, options)
        ours = _run(file, options, None)
        inside = str(file.relative_to(tests))
        entry, wrong = entry_of(inside, ours, theirs)
        print(json.dumps(entry), flush=True)
        told = options.kept / "here" / f"{inside}.json"
        told.parent.mkdir(parents=True, exist_ok=True)
        told.write_text(json.dumps({"outcomes": ours.outcomes, "errors": wrong}, indent=1))
        if options.list:
            for error, number in Counter(wrong.values()).most_common():
                print("   ", number, error, "|", next(n for n, e in wrong.items() if e == error))
        if options.write:
            written(options.write, [entry])


if __name__ == "__main__":
    main()
