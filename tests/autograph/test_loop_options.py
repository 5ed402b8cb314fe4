"""autograph.experimental.set_loop_options."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


def grow(x, n):
    while td.size(x) < n:
        td.autograph.experimental.set_loop_options(
            shape_invariants=[(x, td.TensorShape([None]))], parallel_iterations=1
        )
        x = td.concat([x, x + 1.0], 0)
    return x


def test_growing_shape():
    expected = grow(td.constant([1.0, 2.0]), 7)
    result = td.function(grow)(td.constant([1.0, 2.0]), td.constant(7))
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(result, [1, 2, 2, 3, 2, 3, 3, 4])


def test_spec_in_a_for_loop():
    def f(n):
        rows = td.zeros([0, 2])
        for i in range(n):
            td.autograph.experimental.set_loop_options(
                shape_invariants=[(rows, td.TensorSpec([None, 2], td.float32))]
            )
            rows = td.concat([rows, td.fill([1, 2], td.cast(i, td.float32))], 0)
        return rows

    np.testing.assert_array_equal(td.function(f)(td.constant(3)), [[0, 0], [1, 1], [2, 2]])


@pytest.mark.parametrize("limit", [0, 4])
def test_maximum_iterations(limit):
    def f(x):
        while x < 100:
            td.autograph.experimental.set_loop_options(maximum_iterations=limit)
            x = x + 1
        return x

    assert td.function(f)(td.constant(0)).numpy() == limit
    assert f(0) == 100  # Python's own loops ignore it


def test_generated_code():
    text = td.autograph.to_code(grow)
    assert 'options={"shape_invariants": {"x": td.TensorShape([None])}}' in " ".join(text.split())


def test_options_that_cannot_be_read():
    def f(x, pairs):
        while x < 100:
            td.autograph.experimental.set_loop_options(shape_invariants=pairs)
            x = x + 1
        return x

    with pytest.raises(NotImplementedError, match="list of .variable, shape."):
        td.function(f)(td.constant(0), None)
