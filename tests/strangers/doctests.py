"""Calls of the doctests of a repository's modules, plainly and with `td.jit`.

    PYTHON -m tests.strangers.doctests ROOT FOLDER ... --calls FILE [--write NAME --what TEXT]

Each function of the modules in ROOT/FOLDER is called with the arguments of its doctests, where they
are numbers, arrays, and lists, tuples, dicts and sets of these. A function's outcome is the worst
one of its calls. ``--write`` puts the counts into ``docs/results/NAME.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib.util
import io
import json
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.strangers.numba_own import recorded
from tests.strangers.numba_own.recorded import Recorder, TookTooLong, limited
from tests.strangers.numba_own.run import judged, told
from tests.strangers.run import ROOT

_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)


def is_numeric(value: Any) -> bool:
    """Whether an argument is made of numbers and arrays."""
    if isinstance(value, dict):
        return is_numeric([*value, *value.values()])
    if isinstance(value, list | tuple | set):
        return all(map(is_numeric, value))
    return isinstance(value, _NUMBERS) and getattr(value, "dtype", np.dtype(int)).kind != "O"


def recording(recorder: Recorder, function: types.FunctionType) -> Any:
    """A function in place of a module's, whose calls are compared."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if args and is_numeric([*args, *kwargs.values()]):
            return recorder.call(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def record(path: Path, name: str, recorder: Recorder) -> None:
    """Run the doctests of a module's functions."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with contextlib.redirect_stdout(io.StringIO()):
        spec.loader.exec_module(module)
    own = {
        n: f for n, f in vars(module).items()
        if isinstance(f, types.FunctionType) and f.__module__ == name
    }  # fmt: skip
    for test in doctest.DocTestFinder(recurse=False).find(module, name) + [
        t for n, f in own.items() for t in doctest.DocTestFinder(recurse=False).find(f, n)
    ]:
        names = vars(module) | {n: recording(recorder, f) for n, f in own.items()}
        for example in test.examples:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
                exec(compile(example.source, f"<doctest {name}>", "single"), names)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the calls of doctests with td.jit.")
    parser.add_argument("root", type=Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--calls", type=Path, required=True, help="what became of each call")
    parser.add_argument("--write", help="the name of the results")
    parser.add_argument("--what", default="", help="said of the results")
    parser.add_argument("--seconds", type=int, default=10, help="for a call; six times for a file")
    options = parser.parse_args()
    recorded.SECONDS_OF_A_CALL = options.seconds
    sys.path.insert(0, str(options.root))
    options.calls.touch()
    recorder = Recorder(options.calls)
    for folder in options.folders:
        for path in sorted((options.root / folder).rglob("*.py")):
            name = ".".join(path.relative_to(options.root).with_suffix("").parts)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    with limited(6 * options.seconds):
                        record(path, name, recorder)
                except (Exception, SystemExit, TookTooLong) as error:
                    print(name, type(error).__name__, str(error)[:80], flush=True)
    found = told(judged(options.calls)) | {"what": options.what}
    print(json.dumps({k: found[k] for k in ("functions", "counts")}))
    for cause, number in found["causes"].items():
        print(number, cause)
    if options.write:
        out = ROOT / "docs" / "results" / f"{options.write}.json"
        out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
