"""Random calls on guarded memory (tests/runtime/guarded): the quick part.

`python -m tests.runtime.guarded.run` is the long one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from tests.runtime.guarded.check import Outcome, check, differ, make
from tests.runtime.guarded.memory import Pages
from tests.runtime.guarded.registry import CALLS

CHUNKS, SEEDS = 8, 16  # about 16 calls a seed


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_compiled_calls_stay_in_their_memory_and_agree_with_eager_ones(chunk: int) -> None:
    counts, pages = Counter[str](), Pages()
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        assert not list(check(seed, pages, counts))
    assert counts["calls"] > 200 and counts["accepted"] and counts["refused"]


def test_a_seed_gives_one_call() -> None:
    assert make(3).text == make(3).text
    assert len({make(seed).text.split(" ")[0] for seed in range(400)}) > len(CALLS)


@pytest.mark.parametrize("at_end", [True, False])
def test_memory_is_guarded(at_end: bool) -> None:
    """A byte beyond the array is a segmentation fault, the array itself is not."""
    script = f"""
import ctypes, numpy as np
from tests.runtime.guarded.memory import Pages
pages = Pages()
(a,) = pages.arrays([np.arange(5.0)], {at_end})
print(a.sum(), flush=True)
ctypes.string_at(a.ctypes.data {"+ a.nbytes" if at_end else "- 1"}, 1)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, "."])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    assert done.stdout == "10.0\n" and done.returncode == -signal.SIGSEGV


def test_arrays_hold_what_they_are_given() -> None:
    pages, values = (
        Pages(),
        [np.arange(6, dtype="int16").reshape(2, 3), np.zeros((0, 4)), np.array(3)],
    )
    for at_end in (True, False):
        for given, array in zip(values, pages.arrays(values, at_end), strict=True):
            np.testing.assert_array_equal(array, given)
            assert array.flags.c_contiguous and array.dtype == given.dtype


def test_differences_are_seen() -> None:
    def outcome(*arrays, error=None):
        return Outcome([np.asarray(a) for a in arrays], error)

    call = make(0)
    assert not differ(outcome([1.0, np.nan]), outcome([1.0, np.nan]), call)
    assert differ(outcome([1.0]), outcome([1.1]), call) == "other values"
    assert differ(outcome([1.0]), outcome([1]), call) == "another dtype or shape"
    assert differ(outcome([1.0]), outcome(error=ValueError()), call) == "refused"
    assert differ(outcome(error=ValueError()), outcome([1.0]), call) == "accepted"
    assert differ(outcome(error=ValueError()), outcome(error=TypeError()), call)
