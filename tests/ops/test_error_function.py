"""erf and erfc against the standard library's, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from treadle.ops.elementwise.error_function import erf, erfc

POINTS = np.concatenate(
    [np.linspace(-8, 8, 20_001), np.linspace(-0.5, 0.5, 1001), [4.0, 26.5, 0.46875, 5e-324]]
)
PAIRS = [(erf, math.erf), (erfc, math.erfc)]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_float64(ours: Callable, theirs: Callable) -> None:
    expected = np.array([theirs(v) for v in POINTS])
    np.testing.assert_allclose(ours(POINTS), expected, rtol=2e-15, atol=0)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_once(ours: Callable, theirs: Callable, dtype: type) -> None:
    x = POINTS.astype(dtype)
    expected = np.array([theirs(float(v)) for v in x]).astype(dtype)
    result = ours(x)
    assert result.dtype == dtype
    differ = result.astype(np.float64) != expected.astype(np.float64)
    assert differ.mean() < 1e-4  # a value between two floats may be rounded the other way


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_special_values(ours: Callable, theirs: Callable) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 28.0, -28.0])
    with np.errstate(all="ignore"):
        result = ours(x)
    np.testing.assert_array_equal(result, [theirs(v) for v in x])
    assert np.signbit(ours(np.array([-0.0])))[0] == (ours is erf)


def test_shapes() -> None:
    assert erf(np.zeros(())).shape == ()
    assert erf(np.zeros((0, 3))).shape == (0, 3)
    big = np.linspace(-2, 2, 30_000, dtype=np.float32).reshape(3, 100, 100).transpose(1, 0, 2)
    np.testing.assert_array_equal(erf(big)[7, 2], erf(big[7, 2].copy()))
