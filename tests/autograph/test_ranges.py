"""Loops over ranges of tensors count; they make no array of the numbers."""

import numpy as np
import pytest

import treadle as td

CASES = [
    (0, 5, 1),
    (1, 20, 4),
    (20, 1, -4),
    (1, 18, 4),
    (5, 5, 1),
    (5, 1, 1),
    (1, 5, -1),
    (-7, 3, 2),
]


def digits(start, limit, delta):
    total = 1
    for i in range(start, limit, delta):
        total = total * 3 + i
    return total


def td_digits(start, limit, delta):
    total = 1
    for i in td.range(start, limit, delta):
        total = total * 3 + i
    return total


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fn", [digits, td_digits])
def test_tensors(case, fn):
    compiled = td.function(fn)
    assert compiled(*map(td.constant, case)).numpy() == digits(*case)
    executable = compiled.concrete_functions[0].executable
    assert executable.mode == "native"
    assert not any(node.op.name.startswith("range") for node in executable.graph.walk())


@pytest.mark.parametrize("case", [c for c in CASES if (c[1] - c[0]) * c[2] >= 0])
def test_constants(case):
    start, limit, delta = case

    @td.function
    def f(x):
        total = x
        for i in td.range(start, limit, delta):
            total = total * 3 + i
        return total

    assert f(td.constant(1)).numpy() == digits(*case)


def test_the_dtype_of_the_range_is_that_of_its_numbers():
    @td.function
    def f(n):
        total = td.constant(0, td.int64)
        for i in td.range(n):
            assert i.dtype is td.int64
            total += i
        return total

    assert f(td.constant(10, td.int64)).numpy() == 45


def test_ranges_of_tensors_are_tensors_where_these_are_wanted():
    """As in TensorFlow, where `range` of a tensor is one; a loop still needs no array."""

    @td.function(input_signature=[td.TensorSpec([None, None])])
    def made(x):
        n = td.shape(x)[0]
        total = 0
        for i in range(n):
            total += i
        pair = td.stack([range(n), range(n)])
        return td.concat([range(n), [7]], 0), td.convert_to_tensor(range(n, 0, -1)), pair, total

    joined, down, pair, total = made(np.ones((3, 2), np.float32))
    assert joined.numpy().tolist() == [0, 1, 2, 7]
    assert down.numpy().tolist() == [3, 2, 1] and int(total) == 3
    assert pair.numpy().tolist() == [[0, 1, 2]] * 2

    @td.function(input_signature=[td.TensorSpec([], td.int32)])
    def backwards(n):
        return td.convert_to_tensor(range(n, n - 4)), td.cast(range(n), td.float32)

    nothing, floats = backwards(2)
    assert nothing.shape == (0,) and floats.numpy().tolist() == [0.0, 1.0]
