"""Runs a test module of Numba's with its jit recorded: each function that a test compiles is called
plainly and with `td.jit`, with the arguments of the test.

The tests get what the plain functions give, and whether they pass does not matter. Needs an
interpreter that has Numba.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import io
import json
import signal
import sys
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CALLS_OF_A_FUNCTION = 8
SECONDS_OF_A_CALL = 20
SECONDS_OF_A_TEST = 90

AGREES, DIFFERS, REFUSED = "agrees", "differs", "refused"
OTHER_ERROR, NO_ERROR, TOO_SLOW = "other error", "no error", "too slow"
BUT_FOR_A_TYPE = "agrees but for a type"


class TookTooLong(BaseException):
    """The time limit of a call or test."""


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    rest = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(rest)
        signal.signal(signal.SIGALRM, before)


class Recorder:
    """Calls functions both ways and writes what became of each call to a file, a line each."""

    def __init__(self, out: Path) -> None:
        self.out = out.open("a")
        self.jitted: dict[int, tuple[Any, Any]] = {}
        self.calls: collections.Counter[str] = collections.Counter()
        self.depth = 0

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the plain function gives, which the test goes on with."""
        name = f"{function.__module__}:{function.__qualname__}"
        if self.depth or self.calls[name] >= CALLS_OF_A_FUNCTION:
            return function(*args, **kwargs)
        self.calls[name] += 1
        try:
            given = [copy.deepcopy((args, kwargs)) for _ in range(2)]
        except Exception:
            return function(*args, **kwargs)
        self.depth += 1
        try:
            expected = called(function, args, kwargs)
            for own in given:
                with limited(SECONDS_OF_A_CALL):
                    found = called(self.compiled(function), *own)
                outcome, cause = compared(expected, found, (args, kwargs), own)
                if outcome != AGREES:
                    break
        except TookTooLong:
            outcome, cause = TOO_SLOW, ""
        finally:
            self.depth -= 1
        if outcome is not None:
            told = {"function": name, "outcome": outcome, "cause": cause}
            if outcome != AGREES:
                told["args"] = repr(args)[:200]
            self.out.write(json.dumps(told) + "\n")
            self.out.flush()
        if isinstance(expected[0], BaseException):
            raise expected[0]
        return expected[0].value

    def compiled(self, function: Any) -> Any:
        import treadle as td

        if id(function) not in self.jitted:
            self.jitted[id(function)] = function, td.jit(function)
        return self.jitted[id(function)][1]


class Result:
    def __init__(self, value: Any) -> None:
        self.value = value


def called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str]:
    """The result or the error, and what was printed."""
    printed = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return Result(function(*args, **kwargs)), printed.getvalue()
        except Exception as error:
            return error, printed.getvalue()


# What plain Python raises for programs that only Numba can run.
_NOT_PLAIN = ("NotImplementedError", "TypingError", "UnsupportedError", "NumbaError")


def compared(
    expected: tuple[Any, str], found: tuple[Any, str], wanted: Any, held: Any
) -> tuple[str | None, str]:
    """What became of a call, and why; None where plain Python cannot run it."""
    plain, jitted = expected[0], found[0]
    if isinstance(plain, Exception):
        if type(plain).__name__ in _NOT_PLAIN:
            return None, ""
        if not isinstance(jitted, Exception):
            return NO_ERROR, told(plain)
        if isinstance(jitted, type(plain)) or isinstance(plain, TypeError | AttributeError):
            return AGREES, ""
        return OTHER_ERROR, f"{told(plain)} vs {told(jitted)}"
    if isinstance(jitted, Exception):
        return REFUSED, told(jitted)
    for place, a, b in (("result", plain.value, jitted.value), ("arguments", wanted, held)):
        why = difference(a, b, place)
        if why:
            return (BUT_FOR_A_TYPE if " type " in why else DIFFERS), why
    if expected[1] != found[1]:
        return DIFFERS, f"printed {expected[1][:60]!r} vs {found[1][:60]!r}"
    return AGREES, ""


def told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def difference(a: Any, b: Any, place: str) -> str | None:
    """How two values differ."""
    numbers = (int, float, complex, bool, np.generic)
    if isinstance(a, numbers) and isinstance(b, numbers):
        if not near(a, b):
            return f"{place}: value {a!r} vs {b!r}"
        return (
            None
            if type(a) is type(b)
            else f"{place}: type {type(a).__name__} vs {type(b).__name__}"
        )
    if type(a) is not type(b):
        return f"{place}: {type(a).__name__} vs {type(b).__name__}: {a!r:.60} vs {b!r:.60}"
    if isinstance(a, np.ndarray):
        if a.shape != b.shape:
            return f"{place}: shape {a.shape} vs {b.shape}"
        if not near(a, b):
            return f"{place}: values {a!r:.80} vs {b!r:.80}"
        return None if a.dtype == b.dtype else f"{place}: type {a.dtype} vs {b.dtype}"
    if isinstance(a, list | tuple | collections.deque):
        if len(a) != len(b):
            return f"{place}: length {len(a)} vs {len(b)}: {a!r:.60} vs {b!r:.60}"
        pairs = enumerate(zip(a, b, strict=True))
        return next((d for i, (x, y) in pairs if (d := difference(x, y, f"{place}[{i}]"))), None)
    if isinstance(a, dict):
        if list(a) != list(b):
            return f"{place}: keys {list(a)!r:.60} vs {list(b)!r:.60}"
        return next((d for k in a if (d := difference(a[k], b[k], f"{place}[{k!r}]"))), None)
    if type(a).__eq__ is object.__eq__:
        return None
    try:
        return None if a is b or bool(a == b) else f"{place}: {a!r:.60} vs {b!r:.60}"
    except Exception:
        return None


def near(a: Any, b: Any) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.kind not in "fc" and y.dtype.kind not in "fc":
        return bool(np.all(x == y))
    if "V" in (x.dtype.kind, y.dtype.kind):
        return bool(np.all(x == y))
    narrow = 4 in (x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1), y.dtype.itemsize)
    return np.allclose(x, y, 1e-4 if narrow else 1e-8, 1e-5 if narrow else 1e-9, True)


def instead_of_numba(recorder: Recorder) -> None:
    """Have the calls of functions that Numba would compile go to a recorder."""
    from numba.core import dispatcher

    from treadle.autograph import config

    config.NEVER_CONVERTED.discard("numba")  # the tests' functions are the users' here

    original = dispatcher.Dispatcher.__call__
    compiled = dispatcher.Dispatcher.compile
    disabled = dispatcher.Dispatcher.disable_compile

    def is_tests(self: Any) -> bool:
        name = getattr(self.py_func, "__module__", None) or ""
        return not name.startswith("numba.") or name.startswith("numba.tests")

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_tests(self):
            return original(self, *args, **kwargs)
        return recorder.call(self.py_func, args, kwargs)

    def compile(self: Any, signature: Any) -> Any:
        return None if is_tests(self) else compiled(self, signature)

    def disable_compile(self: Any, val: bool = True) -> None:
        if not is_tests(self):  # of the others no signature is compiled
            disabled(self, val)

    dispatcher.Dispatcher.__call__ = call
    dispatcher.Dispatcher.compile = compile
    dispatcher.Dispatcher.disable_compile = disable_compile


def record(module: str, out: Path) -> None:
    """Run the tests of a module, or of a file that pytest runs."""
    import subprocess

    instead_of_numba(Recorder(out))
    if module.endswith(".py"):
        import pytest

        pytest.main(["-q", "-p", "no:cacheprovider", module])
        return

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise unittest.SkipTest("no processes")

    subprocess.Popen.__init__ = refuse  # type: ignore[method-assign]
    result = unittest.TestResult()
    for test in _tests(unittest.defaultTestLoader.loadTestsFromName(module)):
        try:
            with limited(SECONDS_OF_A_TEST):
                test.run(result)
        except (TookTooLong, SystemExit, KeyboardInterrupt):
            continue


def _tests(suite: Any) -> Iterator[Any]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
