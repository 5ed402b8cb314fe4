"""One program, each of its statements, cells or tests by itself, in a process of its own.

``python tests/strangers/parts.py PROGRAM RESULT`` writes what became of each part as JSON. With
``STRANGERS_LIBRARY=tensorflow`` it is TensorFlow that runs it; with ``STRANGERS_VALUES=1`` what
its names mean after each part is written, too, after `values`. Files of tests, by pytest's rule for
their names, are run by pytest: their parts are the tests.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import linecache
import os
import re
import resource
import signal
import sys
import textwrap
import time
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_COUNT = re.compile(
    r"(?m)^(\s*(?:\w*epochs?|n_?iter\w*|num_iter\w*|max_iter\w*|iterations|\w*episodes|"
    r"steps_per_epoch|training_steps|num_steps|max_steps)\s*=\s*)\d[\d_]*\b", re.I
)  # fmt: skip
_OPTION = re.compile(r"\b(epochs|num_episodes|steps_per_epoch)(\s*=\s*)\d[\d_]*\b", re.I)
_TIMED = re.compile(r"\b(number)(\s*=\s*)\d[\d_]{2,}\b")  # of calls, in timeit
_RANGE = re.compile(r"\brange\(\d{3,}\)(?=\s*:)")
_BLOCK = re.compile(r"(?ms)^[ \t]*```[ \t]*python[^\n]*\n(.*?)^[ \t]*```")
_TEST = re.compile(r"(?m)^\s*def test")
_MAGIC = re.compile(r"(?m)^(\s*)[!%].*")


def parts_of(path: Path) -> list[str]:
    """The code cells of a notebook, the blocks of Python of a page, the statements of a module."""
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        return [textwrap.dedent(block[1]) for block in _BLOCK.finditer(text)]
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines, found = text.split("\n"), []
    for statement in ast.parse(text).body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(d.lineno for d in decorators)])
        found.append("\n".join(lines[first - 1 : statement.end_lineno]))
    return found


def is_tests(path: Path) -> bool:
    """Whether pytest would find tests in a file: by its name, and functions that are tests."""
    named = path.suffix == ".py" and (path.stem.startswith("test_") or path.stem.endswith("_test"))
    return named and bool(_TEST.search(path.read_text(errors="replace")))


class Tests:
    """A plugin of pytest that notes what became of each test.

    Attributes:
        number: how many tests there are, as far as they could be collected.
        found: what became of those that ran, and of files that could not be collected.
    """

    def __init__(self) -> None:
        self.number = 0
        self.found: list[dict[str, Any]] = []
        self._by_name: dict[str, dict[str, Any]] = {}
        self._began = 0.0

    def run(self, path: Path) -> None:
        import pytest
        from absl import flags

        flags.FLAGS.mark_as_parsed()  # the tests' own main would have read the command line
        options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--tb=short"]
        pytest.main([*options, f"--rootdir={path.parent}", str(path)], plugins=[self])

    def pytest_collection_finish(self, session: Any) -> None:
        self.number = len(session.items)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._note(report)

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._began = time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._note(report)["seconds"] = round(time.process_time() - self._began, 2)

    def _note(self, report: Any) -> dict[str, Any]:
        name = report.nodeid.rpartition("/")[2]
        if name not in self._by_name:
            self._by_name[name] = {"name": name, "seconds": 0.0}
            self.found.append(self._by_name[name])
        entry = self._by_name[name]
        if report.failed and "error" not in entry:
            text = str(report.longrepr)
            lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
            entry |= {"error": (lines or [text])[0][:600], "trace": text[-1800:]}
        return entry


class Printed(io.TextIOBase):
    """What a program prints, which is thrown away. `lines` tells how far a long part has come."""

    def __init__(self) -> None:
        self.lines = 0

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        return len(text)


def cut_down(part: str) -> str:
    """A part with fewer steps, and without commands of shells and notebooks."""
    if part.lstrip().startswith("%%") and not part.lstrip().startswith(("%%time", "%%capture")):
        return ""
    part = textwrap.dedent(part) if part[:1].isspace() else part
    part = re.sub(r"(?m)^(\s*[!%][^\n]*?)\\\n", r"\1 ", part)
    # A magic in a block may be all there is of it; before imports of __future__ stands nothing.
    part = _MAGIC.sub(lambda magic: f"{magic[1]}pass" if magic[1].strip("\n") else magic[1], part)
    part = _RANGE.sub("range(12)", part)
    part = _TIMED.sub(r"\g<1>\g<2>12", part)
    return _OPTION.sub(r"\g<1>\g<2>2", _COUNT.sub(r"\g<1>2", part))


def run(path: Path, result: Path, limit: int, folder: Path) -> None:
    """Run a program and write what became of it; after `limit` seconds what has been until then."""
    if os.environ.get("STRANGERS_LIBRARY", "treadle") == "treadle":
        import treadle

        treadle.compat.as_tensorflow()
    tests = Tests() if is_tests(path) else None
    parts: list[str] = [] if tests else parts_of(path)
    found: list[dict[str, Any]] = tests.found if tests else []
    printed, began = Printed(), time.process_time()

    def finish(*interrupted: Any) -> None:
        done: dict[str, Any] = {
            "parts": max(len(parts), tests.number if tests else 0, len(found)),
            "limit": bool(interrupted), "list": found,
        }  # fmt: skip
        if interrupted:
            known = sum(part["seconds"] for part in found)
            done["unfinished"] = round(time.process_time() - began - known, 2)
            done["printed"] = printed.lines
            done["at"] = "".join(traceback.format_stack(interrupted[1]))[-4000:]
        result.write_text(json.dumps(done, indent=1))
        os._exit(0)

    for sign in (signal.SIGXCPU, signal.SIGALRM, signal.SIGTERM):
        signal.signal(sign, finish)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 30))
    signal.alarm(limit * 10)
    main = types.ModuleType("__main__")
    main.__file__, sys.modules["__main__"], sys.argv = str(path), main, [str(path)]
    sys.path.insert(1, str(path.parent))
    warnings.simplefilter("ignore")
    importlib.import_module("small_data").install(folder, path.read_text(errors="replace"))
    loops = importlib.import_module("short_loops")
    values = importlib.import_module("values") if os.environ.get("STRANGERS_VALUES") else None
    sys.path.remove(str(Path(__file__).parent))
    began = time.process_time()
    sys.stdout = printed
    if tests:
        tests.run(path)
    else:
        loops.install(importlib.import_module("tensorflow"), path.parent)
        if values is not None:
            values.install(importlib.import_module("tensorflow"))
    main.__dict__["display"] = print
    told = values.Told(main.__dict__, importlib.import_module("tensorflow")) if values else None
    for number, part in enumerate(parts):
        printed.lines = 0
        name = f"part {number} of {path.name}"
        found.append(_outcome(cut_down(part), name, main.__dict__, loops.shortened))
        if told is not None and loops.ended:
            found[-1]["cut"] = True  # how far it came is a matter of speed
        elif told is not None and "error" not in found[-1]:
            found[-1]["values"] = told.news()
    finish()


def _outcome(
    code: str, name: str, names: dict[str, Any], change: Callable[[ast.Module, str], ast.Module]
) -> dict[str, Any]:
    began = time.process_time()
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    error, trace = None, ""
    try:
        exec(compile(change(ast.parse(code), name), name, "exec"), names)
    except SystemExit as stop:
        error = f"SystemExit: {stop.code}" if stop.code else None
    except BaseException as problem:
        error, trace = f"{type(problem).__name__}: {problem}", traceback.format_exc()
    found: dict[str, Any] = {"seconds": round(time.process_time() - began, 2)}
    if error is not None:
        found |= {"error": error[:600], "trace": trace[-1800:], "text": code[:900]}
    return found


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    program, written = (Path(a).resolve() for a in sys.argv[1:3])
    run(program, written, int(os.environ.get("STRANGERS_LIMIT", "60")), written.parent / "files")
