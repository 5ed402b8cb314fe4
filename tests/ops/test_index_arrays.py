"""Reading with arrays of positions and masks, and ``@``, as NumPy does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

X = np.arange(24.0).reshape(2, 3, 4)
MASK = np.array([True, False, True])

KEYS: dict[str, Any] = {
    "rows": [1, 0],
    "axis": (slice(None), [2, 0]),
    "pairs": ([0, 1], [2, 1]),
    "int_beside": (0, [1, 2]),
    "apart": ([0, 1], slice(None), [1, 3]),
    "last_axes": (slice(None), [0, 1], [1, 3]),
    "matrix": (np.array([[0, 1], [1, 1]]),),
    "new_axis": (slice(None), None, [0, -1]),
    "ellipsis": (..., [0, 3]),
    "slice_after": ([1, 0], slice(1, 3)),
    "mask_inside": (slice(None), MASK, slice(1, 3)),
    "broadcast": ([[0], [1]], [0, 2]),
    "reversed": ([0], slice(None), slice(None, None, -1)),
    "empty": (slice(None), slice(None), []),
    "mask_and_positions": (np.array([True, False]), [0]),
    "int_apart": (1, slice(None), [0, 2]),
    "unsigned": (slice(None), np.array([2, 1], np.uint8)),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_reads_as_numpy(key: Any) -> None:
    x = td.constant(X)
    np.testing.assert_array_equal(x[key].numpy(), X[key])
    np.testing.assert_array_equal(td.function(lambda x: x[key])(x).numpy(), X[key])


def test_positions_that_only_a_run_can_tell() -> None:
    @td.function
    def pick(x: Any, i: Any, j: Any) -> Any:
        return x[i, j + 1], x[i], x[:, i, 1:3], x[i, ..., j]

    for i, j in (([0, 1], [0, 1]), ([1, -1], [1, -2])):
        a, b = np.array(i), np.array(j)
        wanted = X[a, b + 1], X[a], X[:, a, 1:3], X[a, ..., b]
        for found, value in zip(pick(X, a, b), wanted, strict=True):
            np.testing.assert_array_equal(found.numpy(), value)
    assert pick.experimental_get_tracing_count() == 1
    with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
        pick(X, np.array([0, 2]), np.array([0, 0]))


def test_gradient_of_a_read() -> None:
    def slope(x: Any, i: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(x[i, [0, 0]] ** 2)
        return tape.gradient(y, x)

    x, i = td.constant(X[0]), td.constant([1, 1])
    wanted = np.zeros_like(X[0])
    wanted[1, 0] = 2 * 2 * X[0, 1, 0]
    np.testing.assert_array_equal(slope(x, i).numpy(), wanted)
    np.testing.assert_array_equal(td.function(slope)(x, i).numpy(), wanted)


@pytest.mark.parametrize("key", [[0.5, 1.0], ([0, 1], [0, 1, 2]), [0, 5]])
def test_refused(key: Any) -> None:
    for f in (lambda x: x[key], td.function(lambda x: x[key])):
        with pytest.raises((TypeError, td.errors.InvalidArgumentError)):
            f(td.constant(X))


# -- products ------------------------------------------------------------------------------------

SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((2,), (2, 3)), ((4, 2, 3), (3,)), ((2,), (4, 2, 3)),
          ((2, 3), (3, 2))]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_the_operator_multiplies_vectors(left: Any, right: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(left), rng.random(right)
    for f in (lambda a, b: a @ b, td.function(lambda a, b: a @ b)):
        for x, y in ((td.constant(a), td.constant(b)), (td.constant(a), b), (a, td.constant(b))):
            np.testing.assert_allclose(np.asarray(f(x, y)), a @ b, rtol=1e-12)


def test_matmul_keeps_the_rule_of_tensorflow() -> None:
    a, v = td.ones([2, 3]), td.ones([3])
    with pytest.raises(td.errors.InvalidArgumentError):
        td.matmul(a, v)
    with pytest.raises(td.errors.InvalidArgumentError, match=r"use \*"):
        a @ td.constant(2.0)


# -- dtypes --------------------------------------------------------------------------------------


def test_dtypes_are_numpys_too() -> None:
    x = td.constant([1.0, 2.0])
    assert np.dtype(td.float32) == np.float32
    assert np.zeros(3, dtype=x.dtype).dtype == np.float32
    assert np.array([1, 2], dtype=td.int64).dtype == np.int64
    assert np.eye(2).astype(td.bfloat16).dtype == td.bfloat16.as_numpy_dtype


def test_python_types_mean_what_numpy_has_for_them() -> None:
    @td.function
    def f(x: Any) -> Any:
        return x.astype(int), x.astype(float), np.sum(x, dtype=int), np.zeros_like(x, dtype=float)

    x = np.array([1.5, 2.5], np.float32)
    wanted = x.astype(int), x.astype(float), np.sum(x, dtype=int), np.zeros_like(x, dtype=float)
    for found, value in zip(f(x), wanted, strict=True):
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, value)
    assert td.cast(x, int).dtype is td.int32  # as in TensorFlow
