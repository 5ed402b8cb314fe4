"""Orders of elements: every dtype, special values, and elements that are equal."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import treadle as td

DTYPES = ["float16", "bfloat16", "float32", "float64"]
DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TINY = float(np.float32(1e-45))
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.0, 1.0]


def stable(x: Any, descending: bool) -> Any:
    """The order by a comparison of Python numbers; NaN is larger than all."""

    def order(row: Any) -> list[int]:
        keys = [(bool(v != v), 0.0 if v != v else v) for v in row.tolist()]
        found = sorted(range(len(keys)), key=keys.__getitem__)
        if descending:
            back = sorted(range(len(keys))[::-1], key=keys.__getitem__)
            found = back[::-1]
        return found

    rows = x.reshape(-1, x.shape[-1])
    return np.array([order(r) for r in rows], np.int32).reshape(x.shape)


@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str, direction: str) -> None:
    kind = td.as_dtype(dtype)
    rng = np.random.default_rng(3)
    if kind.is_floating:
        x = rng.choice(SPECIAL, (4, 33)).astype(kind.np_dtype)
        wide = x.astype(np.float64)
    else:
        limits = np.iinfo(kind.np_dtype)
        x = rng.integers(limits.min, limits.max, (4, 33), kind.np_dtype, endpoint=True)
        x[0, ::2], x[1, 5:20], x[2, ::3] = 1, limits.min, limits.max
        wide = x
    expected = stable(wide, direction == "DESCENDING")
    found = td.argsort(td.constant(x), direction=direction)
    np.testing.assert_array_equal(found, expected)
    in_order = np.take_along_axis(wide, expected, -1)
    result = td.sort(td.constant(x), direction=direction).numpy()
    np.testing.assert_array_equal(result.astype(wide.dtype), in_order)
    if direction == "DESCENDING":
        for k in (0, 1, 5, 32, 33):
            values, places = td.math.top_k(td.constant(x), k)
            np.testing.assert_array_equal(places, expected[:, :k])
            np.testing.assert_array_equal(values.numpy().astype(wide.dtype), in_order[:, :k])


@given(
    x=arrays(
        np.float32,
        array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9),
        elements=st.sampled_from(
            [*map(np.float32, SPECIAL), np.float32(1e-45), np.float32(-1e-45)]
        ),
    ),
    descending=st.booleans(),
)
def test_random_rows(x: Any, descending: bool) -> None:
    direction = "DESCENDING" if descending else "ASCENDING"
    found = td.argsort(td.constant(x), direction=direction)
    np.testing.assert_array_equal(found, stable(x.astype(np.float64), descending))


def test_empty_rows_and_no_rows() -> None:
    for shape in ((0,), (3, 0), (0, 3)):
        x = td.zeros(shape)
        assert tuple(td.argsort(x).shape) == tuple(td.sort(x).shape) == shape


def test_approximate_extremes_are_exact():
    # TensorFlow has them on TPUs only, so that there is no fact of it.
    x = td.constant([[3.0, 9.0, 1.0, 5.0], [2.0, 4.0, 8.0, 6.0]])
    values, places = td.math.approx_max_k(x, 2)
    np.testing.assert_array_equal(values, [[9, 5], [8, 6]])
    np.testing.assert_array_equal(places, [[1, 3], [2, 3]])
    values, places = td.math.approx_min_k(x, 1, reduction_dimension=0)
    np.testing.assert_array_equal(values, [[2, 4, 1, 5]])
    np.testing.assert_array_equal(places, [[1, 1, 0, 0]])
