"""Memory of the arrays that the library makes."""

import numpy as np
import pytest

import treadle as td
from treadle.core import arrays
from treadle.core.arrays import ALIGNMENT, LARGE, is_well_placed, own_copy


@pytest.fixture(autouse=True, scope="module")
def running():
    """From the first program on large arrays come from the memory that programs keep."""
    td.function(lambda x: x + 1.0)(1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_large_copies_begin_at_cache_lines_before_the_first_program(dtype, monkeypatch):
    monkeypatch.setattr(arrays, "allocate", arrays._placed)
    for size in (LARGE, LARGE + 4):
        array = np.arange(size).reshape(4, -1).astype(dtype)
        copy = own_copy(array[::-1])
        assert address(copy) % ALIGNMENT == 0
        assert copy.flags.c_contiguous
        assert copy.flags.writeable
        assert copy.dtype == dtype
        np.testing.assert_array_equal(copy, array[::-1])


def address(array):
    return array.__array_interface__["data"][0]


def misplaced(size):
    memory = np.empty(4 * size + 2 * ALIGNMENT, np.uint8)
    start = -address(memory) % ALIGNMENT + 16
    array = memory[start : start + 4 * size].view(np.float32)
    array[:] = np.arange(size)
    return array


@pytest.mark.parametrize("size", [1, 1000, LARGE // 4, LARGE])
def test_copies_are_equal_contiguous_and_large_ones_placed(size):
    array = misplaced(size)
    copy = own_copy(array)
    np.testing.assert_array_equal(copy, array)
    assert copy.flags.owndata
    assert is_well_placed(copy, copy.ctypes.data)
    assert is_well_placed(array, array.ctypes.data) == (array.nbytes < LARGE)
    turned = own_copy(np.resize(array, (2, size)).T)
    assert turned.flags.c_contiguous
    assert turned.shape == (size, 2)


def test_constants_and_written_variables_begin_at_cache_lines():
    array = misplaced(LARGE)
    constant = td.constant(array)
    assert address(constant._buffer) % ALIGNMENT == 0
    array[0] = 7.0
    assert constant[0] == 0.0
    variable = td.Variable(constant)
    variable._buffer = misplaced(LARGE)

    @td.function
    def step():
        variable.assign_add(td.ones_like(variable))

    for count in (1, 2):
        step()
        assert address(variable._buffer) % ALIGNMENT == 0
        np.testing.assert_array_equal(variable.numpy(), np.arange(LARGE) + count)
        held = variable._buffer
    step()
    assert variable._buffer is held  # moved once
