"""Kernels of few points in loops are functions of their program: the same bits and errors."""

import numpy as np
import pytest

import treadle as td
from benchmarks.part_arguments import ARGUMENTS
from benchmarks.part_programs import PROGRAMS
from treadle.core.switches import disabled

NAMES = ["levinson", "durbin", "cholesky_by_elements", "csr_product", "toeplitz_product",
         "forward_solve", "growing_blocks"]  # fmt: skip


def both_ways(program, *arguments):
    """The results with kernels as parts of the program, and without."""
    arguments = [td.constant(a) for a in arguments]
    fn = td.function(program)
    text = fn.get_concrete_function(*arguments).executable.stages["llvm"]
    assert "define internal void @k_" in text.partition("; kernel ")[0]
    with disabled("parts_of_programs"):
        other = td.function(program)
        alone = other.get_concrete_function(*arguments).executable.stages["llvm"]
        assert "define internal void @k_" not in alone
        return fn(*arguments), other(*arguments)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits(name, dtype):
    (program,) = (p for p in PROGRAMS if p.function.__name__ == name)
    for n in (5, 40):
        got, want = both_ways(program.function, *ARGUMENTS[name](n, dtype))
        np.testing.assert_array_equal(got, want)


def sums(x, starts):
    n = starts.shape[0] - 1
    y = td.zeros([n], x.dtype)
    for i in td.range(n):
        y[i] = td.reduce_sum(x[starts[i] : starts[i + 1]])
    return y


def test_parts_of_any_length():
    """Empty ones, single elements, rows that end with a part of a vector."""
    counts = np.array([0, 1, 2, 0, 7, 8, 9, 31, 32, 33, 64, 100, 0])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        x = (np.random.default_rng(0).standard_normal(starts[-1]) * 9).astype(dtype)
        got, want = both_ways(sums, x, starts)
        np.testing.assert_array_equal(got, want)
        exact = [x[a:b].sum(dtype=dtype) for a, b in zip(starts, starts[1:], strict=False)]
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-4)


def test_one_kernel_in_two_loops():
    def twice(x, starts):
        y = sums(x, starts)
        return y, sums(x + 1.0, starts)

    x, starts = np.arange(30.0), np.array([0, 3, 3, 17, 30], np.int32)
    got, want = both_ways(twice, x, starts)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    np.testing.assert_array_equal(got[1] - got[0], np.diff(starts))


def test_positions_outside_are_errors_with_the_line():
    def gathered(x, columns, starts):
        n = starts.shape[0] - 1
        y = td.zeros([n], x.dtype)
        for i in td.range(n):
            y[i] = td.reduce_sum(td.gather(x, columns[starts[i] : starts[i + 1]]))
        return y

    x, starts = np.arange(6.0), np.array([0, 2, 5], np.int32)
    got, want = both_ways(gathered, x, np.array([0, 5, 1, 2, 3], np.int32), starts)
    np.testing.assert_array_equal(got, want)
    for bad in (6, -1, 2**31 - 1):
        columns = td.constant(np.array([0, 5, 1, bad, 3], np.int32))
        with pytest.raises(td.errors.InvalidArgumentError, match=r"td\.gather\(x, columns"):
            td.function(gathered)(td.constant(x), columns, td.constant(starts))


def test_not_what_llvms_passes_would_write_otherwise():
    """The larger of two numbers is one instruction of the kernel's, and several afterwards."""

    @td.function
    def largest(x, starts):
        n = starts.shape[0] - 1
        y = td.zeros([n], x.dtype)
        for i in td.range(n):
            y[i] = td.reduce_max(x[starts[i] : starts[i + 1]])
        return y

    x, starts = td.constant(np.arange(9.0)), td.constant(np.array([0, 2, 9], np.int32))
    text = largest.get_concrete_function(x, starts).executable.stages["llvm"]
    assert "define internal void @k_" not in text
    np.testing.assert_array_equal(largest(x, starts), [1.0, 8.0])
