"""Loops over single elements that keep the smaller one, or choose, in place."""

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import LARGE_CACHES
from treadle.runtime.cpu.target import using


def smaller(d: Any) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


def chosen(d: Any) -> None:
    for i in range(d.shape[0]):
        for j in range(d.shape[0]):
            d[i, j] = d[i, j] * 2 if d[i, j] > 0.5 else d[i, j]


@pytest.mark.parametrize("function", [smaller, chosen])
def test_vectors_are_stored_without_masks(function: Any) -> None:
    d = np.random.default_rng(1).random((32, 32))
    found, expected = d.copy(), d.copy()
    function(expected)
    td.jit(function)(found)
    np.testing.assert_array_equal(found, expected)
    with using(LARGE_CACHES, run=False):
        code = td.inspect.stages(td.jit(function), d)["assembly"]
    assert "ymm" in code
    assert "maskmov" not in code
