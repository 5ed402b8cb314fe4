"""Sizes that are `Dimension`s, alone and in lists, become numbers as in TensorFlow."""

import pytest

import treadle as td
from treadle.core.dimension import Dimension


def test_known_sizes() -> None:
    three = Dimension(3)
    assert td.constant([three, 2]).dtype is td.int32
    assert td.constant([[three], [2]]).numpy().tolist() == [[3], [2]]
    assert int(td.constant(three)) == 3
    assert td.convert_to_tensor([three], td.int64).dtype is td.int64
    assert td.constant([three], td.float32).numpy().tolist() == [3.0]


def test_an_unknown_size() -> None:
    with pytest.raises(TypeError, match="unknown"):
        td.constant([Dimension(None)])
