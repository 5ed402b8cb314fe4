"""Settings that must be there before NumPy is imported, signals, and Hypothesis's profile."""

import compileall
import gc
import os
import random
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tests.long_tests import function_of, listed

# Several workers share the cores: BLAS threads of each would only get in each other's way.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples in every run, and no verdict that depends on how busy the machine is.
settings.register_profile(
    "treadle", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("treadle")

# Tests change the compiler's parts under its feet: it makes every program anew. The tests of
# stored programs switch them on.
os.environ["TREADLE_STORE_PROGRAMS"] = "0"

# Nothing is measured or tried out beside the tests, whose records are those that are stated. The
# tests of measuring switch it on.
os.environ["TREADLE_TUNE"] = "0"

# Every program that is compiled is proved to stay in its memory, or to check that it does.
os.environ.setdefault("TREADLE_VERIFY", "bounds")

# A shell starts jobs in the background without SIGINT, which their children inherit: tests of
# Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The default looks for cycles after every 700 objects. With 10,000 that takes 3 to 4 percent of the
# time.
gc.set_threshold(50_000, 10, 10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="also run the tests marked thorough and every case of the tests with many cases, "
        "which take more than half of the time (they run, too, where their files or folders are "
        "named)",
    )
    parser.addoption(
        "--record-seconds",
        metavar="FILE",
        help="append how long the processor worked for each test, for tests/long_tests.py",
    )
    parser.addoption(
        "--shuffle-files",
        metavar="SEED",
        help="run the files in an order that the seed decides: what a file leaves behind meets "
        "others than usual then (in one process, without -n)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.option.thorough = True  # workers of pytest-xdist get the options as they are then
    if getattr(config.option, "dist", "") == "load":  # that of `-n auto`
        # Each worker of pytest-xdist begins with a part of its own in one piece, and takes half of
        # another's rest when it is done. The tests of a file are mostly done by one worker then,
        # which makes what they share (compiled kernels, models, results) once.
        config.option.dist = "worksteal"
    if config.option.record_seconds is not None:
        config.pluginmanager.register(_Seconds(Path(config.option.record_seconds)))
    if sys.dont_write_bytecode and "PYTEST_XDIST_WORKER" not in os.environ:
        # Tests start some hundred processes that import treadle, which takes four times as long
        # where Python compiles it, and is told to keep nothing (PYTHONDONTWRITEBYTECODE).
        compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=2)


class _Seconds:
    """Appends to a file how long the processor worked for each test."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        before = self._now()
        try:
            return (yield)
        finally:
            with self.file.open("a", encoding="utf-8") as record:
                record.write(f"{self._now() - before:.3f} {item.nodeid}\n")

    @staticmethod
    def _now() -> float:
        import resource  # Unix has it

        others = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + others.ru_utime + others.ru_stime


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.option.thorough:
        kept = _sample([item for item in items if not item.get_closest_marker("thorough")])
        left_out = [item for item in items if item not in kept]
        if left_out:
            items[:] = [item for item in items if item in kept]
            config.hook.pytest_deselected(items=left_out)
    if config.option.shuffle_files is not None:
        files = sorted({item.path for item in items})
        random.Random(config.option.shuffle_files).shuffle(files)
        place = {path: number for number, path in enumerate(files)}
        items.sort(key=lambda item: place[item.path])


# Of a test with more cases than this a run that is not thorough takes a part of them.
_FEW_CASES = 8
_PART = 5


def _sample(items: list[pytest.Item]) -> set[pytest.Item]:
    """The tests with few cases and every fifth case of the others, eight at least; but one case of
    those that take long, and none where they have one only (`long_tests.txt`).

    A hash of its name decides whether a case is taken: every fifth in order might be all of one
    dtype. The choice is the same in every run, and a new case changes one other at most.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(function_of(item.nodeid), []).append(item)
    kept: set[pytest.Item] = set()
    long = listed()
    for name, cases in tests.items():
        count = len(cases) if len(cases) <= _FEW_CASES else max(_FEW_CASES, len(cases) // _PART)
        if name in long:
            count = min(1, len(cases) - 1)
        kept.update(sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))[:count])
    return kept


def pytest_collection(session: pytest.Session) -> None:
    """What is collected stays: the garbage collector would look for cycles in vain."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector from walking the collected tests.

    They are half a million objects that live until the end. Every full collection that a test asks
    for would look at all of them, which takes longer than most tests.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker of pytest-xdist tells once of a test that passes, instead of five times.

    It would tell that the test begins, that its fixtures are there, that it passed, that its
    fixtures are gone, and that it is over: for most tests that is more work than the test.
    """
    option = item.config.option
    is_told_all = option.verbose > 0 or option.durations is not None or option.xmlpath is not None
    if "PYTEST_XDIST_WORKER" not in os.environ or is_told_all:
        return None  # as pytest does it
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.fixture(autouse=True, scope="module")
def _collections_are_short() -> None:
    """Collections, which hundreds of tests ask for, look at what the tests of a module have made,
    not at what all earlier ones have left in caches: that would take longer than most tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _settings_are_put_back() -> Iterator[None]:
    """A setting that a test leaves changed, of the process or of its thread, would decide what
    later tests of its worker show, which are others in every run: it fails the test that changed
    it."""
    from treadle.core import interrupts
    from treadle.core.keras_generation import generation
    from treadle.ops.random.state import streams
    from treadle.runtime.precision import precision
    from treadle.tracing import settings

    def values() -> list[tuple[Any, str, Any]]:
        found: list[tuple[Any, str]] = [
            (streams, "need_seeds"), (precision, "tensor_float"), (generation, "is_2"),
        ]  # fmt: skip
        found += [(settings, n) for n, x in vars(settings).items() if isinstance(x, bool | int)]
        return [(where, name, getattr(where, name)) for where, name in found]

    before, modes = values(), [(mode, vars(mode).copy()) for mode in interrupts._modes]
    yield
    after = values()
    for where, name, value in before:
        setattr(where, name, value)
    changed = [name for (_, name, old), (*_, new) in zip(before, after, strict=True) if new != old]
    for mode, old in modes:
        left = [name for name in vars(mode) if _is_left(mode, name, old)]
        if left:
            vars(mode).clear()
            vars(mode).update(old)
            changed += [f"{type(mode).__module__}.{name}" for name in left]
    assert not changed, f"the test left settings changed: {changed}"


# What counts how often something happened, or is made again from other modes.
_NO_SETTINGS = {"counted", "doubts"}


def _is_left(mode: Any, name: str, before: dict[str, Any]) -> bool:
    """Whether an attribute of a mode is another one than it was."""
    now, then = getattr(mode, name), before.get(name, getattr(type(mode), name, None))
    if isinstance(now, tuple) and isinstance(then, tuple):
        return len(now) != len(then) or any(a is not b for a, b in zip(now, then, strict=True))
    is_plain = isinstance(now, bool | int | str) and isinstance(then, bool | int | str)
    return name not in _NO_SETTINGS and (now != then if is_plain else now is not then)
