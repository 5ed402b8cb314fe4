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

import treadle as td
from tests.runtime.guarded.check import Outcome, check, differ, is_limit, make, run, ways
from tests.runtime.guarded.memory import Pages
from tests.runtime.guarded.registry import CALLS, Call, Input
from treadle.ops.indexing.updates import set_item

pytestmark = pytest.mark.thorough

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


def _product(x, y):
    return td.matmul(x, y, transpose_b=True) * 2 + 1


def _parts(x, i, j):
    return set_item(x, slice(0, i), x[:i] + x[j : j + i])


# What longer runs found: the function, and shapes or values of its arguments.
FOUND = {
    # a blocked epilogue, of a product that was not computed in blocks: wrote elsewhere
    "blocks of views": (_product, [("float16", (8, 8, 33, 3)), ("float16", (1, 8, 9, 3))]),
    "blocks of views, turned": (_product, [("float16", (1, 8, 9, 3)), ("float16", (8, 8, 7, 3))]),
    # sizes of what is computed inside of its consumer were not compared
    "parts of other sizes": (_parts, [("float32", (6,)), np.int32(3), np.int32(4)]),
    "parts of no elements": (_parts, [("float32", (1,)), np.int32(1), np.int32(1)]),
    "parts of one size": (_parts, [("float32", (6,)), np.int32(3), np.int32(2)]),
    "a product of no columns": (
        lambda x, y: td.tensordot(x, y, 0) * 2 + 1, [("float32", (1,)), ("float32", (17, 0))],
    ),
    # computed by NumPy, as only the run knows that sizes are broadcast: numbers had one axis
    "complex numbers that are broadcast": (
        lambda x, y: td.reduce_sum(td.complex(x, y)) * 2, [("float64", (9,)), ("float64", (1,))],
    ),
    "backwards from the first of none": (lambda x: x[0::-1, ::-1] * 2, [("float32", (0, 2))]),
    "no matrix": (lambda x: td.linalg.band_part(x, -1, 2), [("float32", (3,))]),
    "fewer rows than the matrix": (
        td.linalg.triangular_solve, [("float64", (5, 5)), ("float64", (1, 4))],
    ),
    "more bytes than can be counted": (lambda x: td.tile(x, [2, 2**62]), [("float64", (3, 8))]),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_longer_runs_found(name: str) -> None:
    function, given = FOUND[name]
    rng = np.random.default_rng(0)
    arrays = [
        np.array(a) if isinstance(a, np.generic) else rng.standard_normal(a[1]).astype(a[0])
        for a in given
    ]
    call = Call(name, function, [Input(str(a.dtype), a.shape) for a in arrays])
    expected, pages = run(function, [td.constant(a) for a in arrays]), Pages()
    for compiled in ways(call).values():
        for at_end in (True, False):
            actual = run(compiled, pages.arrays(arrays, at_end))
            different = differ(expected, actual, call) and not is_limit(expected, actual)
            assert not different, (str(expected), str(actual))


def test_slices_of_generalized_shapes() -> None:
    """Their sizes are expressions that were guessed, whose proof needs two facts of many."""
    f = td.function(lambda x: x[5:, :1:-1])
    for shape in ((3, 3, 33), (3, 3, 17), (33, 33, 33), (9, 9, 2)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(f(x), x[5:, :1:-1])


def test_an_assignment_of_another_shape_has_one_exception() -> None:
    v = td.Variable(np.zeros(7, np.float32))
    specs = [td.TensorSpec([None])]
    for assign in (v.assign, td.function(v.assign), td.function(v.assign, input_signature=specs)):
        with pytest.raises(td.errors.InvalidArgumentError, match="shape"):
            assign(np.zeros(3, np.float32))


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
