"""How kernels are called."""

import re

import numpy as np
import pytest

import treadle
from tests.runtime.cpu.machines import ZEN5
from tests.runtime.cpu.native_kernels import JITS
from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.nest.shape import SHARED_LINES
from treadle.runtime.cpu.program_kernels import FIRST_SLICE, fewest_units
from treadle.runtime.cpu.target import host, using
from treadle.runtime.cpu.threads import pool


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_all_planned_threads_work_and_no_more(threads):
    fn = Function(Module(JITS["host"].target))
    for units in range(1, 300):
        useful = units // fewest_units(fn, units, threads)
        assert useful <= threads
        if units >= threads * (threads + 1):
            assert useful == threads


LAUNCH = re.compile(
    r"i64 (\d+), i64 (\d+), ptr \S+, i64 \d+, i64 (\d+), ptr (\S+)\)"
)  # units, grain, slice, call


def launches(function, *shapes) -> list[tuple[int, int, int, bool]]:
    """Units, grain and first slice of a program's launches, and whether these go in slices."""
    tensors = [treadle.zeros(shape) for shape in shapes]
    stages = treadle.function(function).get_concrete_function(*tensors).executable.stages
    return [
        (int(units), int(grain), int(slice_), call != "null")
        for units, grain, slice_, call in LAUNCH.findall(stages["llvm"])
    ]


COLUMNS = {
    "sums": lambda x: treadle.reduce_sum(x, 0),
    "positions": lambda x: treadle.argmax(x, 0),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_slices_of_columns_are_as_wide_as_what_is_computed_at_once(name):
    """A narrower slice would go down the rows once more, for a part of each of their lines."""
    tuning = host().tuning
    together = tuning.registers // 2 * tuning.vector_bits // 32
    for rows, columns in ((1024, 1024), (300, 4096), (5000, 2048)):
        ((units, grain, slice_, sliced),) = launches(COLUMNS[name], (rows, columns))
        assert units == columns and sliced
        assert slice_ % together == 0
        assert slice_ >= min(FIRST_SLICE * grain - together, columns)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_that_are_soon_done_are_not_sliced(name):
    for rows, columns in ((100_000, 32), (1024, 128), (64, 512)):
        found = launches(COLUMNS[name], (rows, columns))
        assert not any(sliced for *_, sliced in found)


def test_two_threads_share_a_large_array_in_few_slices():
    for function, shape in (
        (lambda x: x * 2.0, (1024, 1024)),
        (lambda x: treadle.argmax(x, 1), (1024, 1024)),
        (lambda x: treadle.reduce_logsumexp(x, 1), (1024, 1024)),
        (lambda x: treadle.reduce_sum(x, 0), (1024, 1024)),
    ):
        with using(ZEN5, run=False):
            ((units, _, slice_, _),) = launches(function, shape)
        assert -(-units // 2) <= 8 * slice_  # fewer still: slices grow


@pytest.mark.parametrize("columns", [64, 100, 300, 1024])
def test_threads_that_share_rows_have_whole_cache_lines_of_them(columns):
    """A softmax down the columns writes to every row."""
    least = SHARED_LINES * host().tuning.line // 4
    found = launches(lambda x: treadle.nn.softmax(x, 0), (1000, columns))
    assert len(found) == (columns >= 2 * least)
    for units, grain, _, _ in found:
        assert units == columns and grain >= least


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_softmax_down_columns_on_any_number_of_threads(threads):
    random = np.random.default_rng(4)
    before = pool().threads
    pool().set_threads(threads)
    try:
        for shape in ((1000, 24), (1000, 100), (700, 300), (90, 1024)):
            x = random.standard_normal(shape).astype(np.float32)
            e = np.exp(x - x.max(0))
            y = treadle.function(lambda x: treadle.nn.softmax(x, 0))(x).numpy()
            np.testing.assert_allclose(y, e / e.sum(0), rtol=2e-5, atol=1e-7)
    finally:
        pool().set_threads(before)
