"""Functions of collections of programs, with the arguments that these call them with.

Each kind of collection has a function ``record(file, recorder)``, which runs one file of it so that
calls of its functions go to a `Recorder`:

- ``doctests``: modules whose functions have doctests (TheAlgorithms/Python);
- ``npbench``: ``bench_info/NAME.json`` of npbench, with the data of a size;
- ``pythran``: modules with lines ``#runas`` (pythran's tests);
- ``pyperf``: programs that measure themselves with pyperf (pyperformance);
- ``scripts``: programs that call their functions when they are run.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib.util
import inspect
import io
import json
import re
import runpy
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.strangers.numba_own.recorded import Recorder

_PLAIN = (bool, int, float, complex, str, np.generic, np.ndarray)
_SIZE = "S"  # of npbench's data


def is_plain(value: Any) -> bool:
    """Whether an argument is made of numbers, texts and arrays."""
    if value is None:
        return True
    if isinstance(value, dict):
        return is_plain([*value, *value.values()])
    if isinstance(value, list | tuple | set):
        return all(map(is_plain, value))
    return isinstance(value, _PLAIN) and getattr(value, "dtype", np.dtype(int)).kind != "O"


def has_numbers(value: Any) -> bool:
    """Whether an argument has something that a program could take at each call."""
    if isinstance(value, dict):
        return has_numbers(list(value.values()))
    if isinstance(value, list | tuple | set):
        return any(map(has_numbers, value))
    return isinstance(value, _PLAIN) and not isinstance(value, bool | str)


def recording(
    recorder: Recorder, function: types.FunctionType, own: dict[str, Any] | None = None
) -> Any:
    """A function in place of a module's, whose calls are compared.

    Args:
        own: the module's functions, where it has others in their places: while a call is compared
            it has its own, so that what is compiled is the program.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        if not is_plain(given) or not has_numbers(given):
            return function(*args, **kwargs)
        names = function.__globals__
        replaced = {n: names[n] for n in own or ()}
        names.update(own or {})
        try:
            return recorder.call(function, args, kwargs)
        finally:
            names.update(replaced)

    return call


def loaded(path: Path, name: str) -> types.ModuleType:
    """A module of a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with contextlib.redirect_stdout(io.StringIO()):
        spec.loader.exec_module(module)
    return module


def functions_of(module: types.ModuleType) -> dict[str, types.FunctionType]:
    """The functions that a module defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__
    }


def _run(source: str, names: dict[str, Any], file: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
        exec(compile(source, f"<calls of {file.name}>", "exec"), names)


def doctests(file: Path, name: str, recorder: Recorder) -> None:
    module = loaded(file, name)
    own, finder = functions_of(module), doctest.DocTestFinder(recurse=False)
    tests = finder.find(module, name) + [t for n, f in own.items() for t in finder.find(f, n)]
    for test in tests:
        names = vars(module) | {n: recording(recorder, f) for n, f in own.items()}
        for example in test.examples:
            _run(example.source, names, file)


def npbench(file: Path, name: str, recorder: Recorder) -> None:
    about = json.loads(file.read_text())["benchmark"]
    folder = file.parents[1] / "npbench" / "benchmarks" / about["relative_path"]
    values = dict(about["parameters"][_SIZE])
    init = about.get("init")
    if init:
        make = getattr(loaded(folder / f"{about['module_name']}.py", name), init["func_name"])
        made = make(*(values[v] for v in init["input_args"]))
        outputs = init["output_args"]
        values |= zip(outputs, made if len(outputs) > 1 else [made], strict=True)
    kernels = loaded(folder / f"{about['module_name']}_numpy.py", f"{name}_numpy")
    kernel = getattr(kernels, about["func_name"])
    recorder.call(kernel, tuple(values[v] for v in about["input_args"]), {})


def pythran(file: Path, name: str, recorder: Recorder) -> None:
    lines = re.findall(r"(?m)^#runas (.*)", file.read_text())
    if not lines:
        return
    module = loaded(file, name)
    own = {n: recording(recorder, f) for n, f in functions_of(module).items()}
    for line in lines:
        _run("\n".join(part.strip() for part in line.split(";")), vars(module) | own, file)


def pyperf(file: Path, name: str, recorder: Recorder) -> None:
    sys.modules["pyperf"] = _Pyperf(lambda: module)
    spec = importlib.util.spec_from_file_location("__main__", file)
    assert spec is not None
    sys.path.insert(0, str(file.parent))
    module = types.ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    source = file.read_text()
    exec(compile(source, str(file), "exec"), vars(module))
    own = functions_of(module)
    for n, f in own.items():
        if not _measures(f):
            setattr(module, n, recording(recorder, f, own))
    tail = re.split(r"(?m)^if __name__ == .*:\n", source)
    if len(tail) > 1:
        _run(inspect.cleandoc("\n" + tail[-1]), vars(module), file)


def _measures(function: types.FunctionType) -> bool:
    """Whether a function asks for the time, or makes a runner of pyperf."""
    return "pyperf" in function.__code__.co_names


class _Pyperf(types.ModuleType):
    """Stands for pyperf: what is to be measured is called once."""

    def __init__(self, module: Callable[[], Any]) -> None:
        super().__init__("pyperf")
        self._module = module

    def perf_counter(self) -> float:
        return 0.0

    def Runner(self, *args: Any, **options: Any) -> Any:
        return _Runner()


class _Runner:
    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.argparser = argparse.ArgumentParser()
        self.args: Any = None

    def parse_args(self, *args: Any) -> Any:
        self.args = self.argparser.parse_args([])
        return self.args

    def bench_func(self, name: str, function: Any, *args: Any, **options: Any) -> None:
        with contextlib.suppress(Exception):
            function(*args)

    def bench_time_func(self, name: str, function: Any, *args: Any, **options: Any) -> None:
        with contextlib.suppress(Exception):
            function(1, *args)


def scripts(file: Path, name: str, recorder: Recorder) -> None:
    """Functions under ``jit`` and ``njit`` of Numba are recorded where Numba calls them."""
    from tests.strangers.numba_own.recorded import instead_of_numba

    instead_of_numba(recorder)
    sys.path.insert(0, str(file.parent))
    sys.argv = [str(file)]
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(file), run_name="__main__")


KINDS: dict[str, Callable[[Path, str, Recorder], None]] = {
    f.__name__: f for f in (doctests, npbench, pythran, pyperf, scripts)
}
