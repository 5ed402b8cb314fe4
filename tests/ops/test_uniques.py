"""`unique` by a table of the integers of a range is what it is by sorting."""

import numpy as np
import pytest

import treadle as td
from treadle.ops.statistics.uniques import _in_table, _sorted

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_table_finds_what_sorting_finds(dtype):
    random, limits = np.random.default_rng(0), np.iinfo(dtype)
    ranges = [(limits.min, limits.min + 50), (limits.max - 60, limits.max), (0, 20)]
    ranges += (
        [(limits.min, limits.max)]
        if limits.bits == 8
        else [(limits.max // 2 - 100, limits.max // 2 + 99)]
    )
    for least, most in ranges:
        for count in (1, 7, 3000):
            x = random.integers(least, most, count, dtype=dtype, endpoint=True)
            found = _in_table(x)
            assert found is not None
            for ours, wanted in zip(found, _sorted(x), strict=True):
                np.testing.assert_array_equal(ours, wanted)


def test_wide_ranges_floats_and_nothing_are_sorted():
    for x in (np.array([0, 10**9]), np.array([-(2**63), 2**63 - 1]), np.ones(3), np.array([], int)):
        assert _in_table(x) is None


def test_elements_come_in_their_order():
    y, idx, count = td.unique_with_counts(td.constant([7, -3, 7, 100, -3, 7]))
    assert y.numpy().tolist() == [7, -3, 100]
    assert idx.numpy().tolist() == [0, 1, 0, 2, 1, 0]
    assert count.numpy().tolist() == [3, 2, 1]
    y, idx, count = td.unique_with_counts(td.constant([], td.int32))
    assert (y.shape, idx.shape, count.shape) == ((0,), (0,), (0,))
