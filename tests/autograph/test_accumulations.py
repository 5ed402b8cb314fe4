"""Python floats that start an accumulation take the dtype of what is added to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sum_from_zero(dtype: Any) -> None:
    @td.function
    def total(x: Any) -> Any:
        s = 0.0
        for v in x:
            s += v
        return s

    for x in (np.array([1, 2, 3], dtype), np.array([], dtype)):
        found = total(x)
        assert found.dtype == dtype
        assert found.numpy() == x.sum()


def test_numbers_that_depend_on_each_other() -> None:
    @td.function
    def f(x: Any, n: Any) -> Any:
        s, m, count, i = 0.0, 1.0, 0, 0
        while i < n:
            if x[i] > 0:
                m = m * (s + 1)
                s += x[i]
                count += 1
            i += 1
        return s, m, count

    s, m, count = f(np.array([1.0, -2.0, 3.0]), td.constant(3))
    assert (s.dtype, m.dtype, count.dtype) == (td.float64, td.float64, td.int32)
    assert (s.numpy(), m.numpy(), count.numpy()) == (4.0, 2.0, 2)


def test_a_float_does_not_become_an_integer() -> None:
    @td.function
    def f(x: Any) -> Any:
        s = 0.5
        for v in x:
            s = s + v
        return s

    with pytest.raises(TypeError, match="float32 and int32"):
        f(td.constant([1, 2]))


def test_gradient() -> None:
    @td.function
    def slope(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            s = 0.0
            for v in x:
                s += v * v
        return tape.gradient(s, x)

    np.testing.assert_array_equal(slope(td.constant([1.0, 2.0], td.float64)), [2.0, 4.0])
