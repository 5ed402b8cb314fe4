"""The dtype that Python values take where they come without a tensor: TensorFlow's."""

from __future__ import annotations

from typing import Any

import pytest

import treadle as td

ONE_HOT = [
    ({}, td.float32),
    ({"on_value": 5, "off_value": 0}, td.int32),
    ({"on_value": 5}, td.int32),
    ({"off_value": 5}, td.int32),
    ({"on_value": 1.5, "off_value": 0.0}, td.float32),
    ({"on_value": True, "off_value": False}, td.bool),
    ({"on_value": 5, "dtype": td.float64}, td.float64),
    ({"on_value": 5, "off_value": td.constant(0, td.int64)}, td.int64),
]


@pytest.mark.parametrize(("values", "dtype"), ONE_HOT)
def test_one_hot(values: dict[str, Any], dtype: td.DType) -> None:
    assert td.one_hot([0, 2], 3, **values).dtype is dtype
    assert td.function(lambda i: td.one_hot(i, 3, **values))(td.constant([0, 2])).dtype is dtype


def test_one_hot_values_of_two_kinds() -> None:
    with pytest.raises(TypeError, match="test_python_values"):
        td.one_hot([0], 2, on_value=5, off_value=0.5)


@pytest.mark.parametrize("values", [[1, 2.0], [1.0, 2], [[1, 2], [1.0, 2]]])
def test_a_float_among_ints_makes_floats(values: list[Any]) -> None:
    assert td.stack(values).dtype is td.float32
    assert td.stack([1, 2]).dtype is td.int32


def test_values_take_the_dtype_of_a_tensor() -> None:
    assert td.stack([1, td.constant(2.0)]).dtype is td.float32
    with pytest.raises(TypeError, match="test_python_values"):
        td.stack([1.5, td.constant(2)])
