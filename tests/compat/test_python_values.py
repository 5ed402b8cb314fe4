"""``td.compat``: what programs for several versions of TensorFlow use. `tests/facts_tf` has the
values."""

from pathlib import Path

import pytest

import treadle as td
import treadle.compat.v2 as tf


def test_v2_is_treadle():
    assert tf.reduce_sum is td.reduce_sum and tf.keras is td.keras
    assert "reduce_sum" in dir(tf)
    with pytest.raises(AttributeError, match="td has no 'redcue_sum'"):
        tf.redcue_sum


def test_shapes_of_both_versions():
    dimension = td.TensorShape([None, 3]).dims[1]
    assert td.compat.dimension_value(dimension) == td.compat.dimension_value(3) == 3
    assert td.compat.dimension_at_index(td.TensorShape(None), 0).value is None
    assert td.TensorShape([dimension, td.compat.v1.Dimension(None)]) == [3, None]


def test_paths_and_blocks():
    assert td.compat.path_to_str(Path("a") / "b") == "a/b"
    with td.compat.forward_compatibility_horizon(2020, 1, 1):
        assert td.compat.forward_compatible(2019, 1, 1)
