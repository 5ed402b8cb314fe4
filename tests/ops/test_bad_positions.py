"""`bad_indices_policy`: positions outside of a tensor are left out, also of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td

X = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
PLACES = np.array([[2], [7], [0], [-1]])
NEW = np.array([10.0, 20.0, 30.0, 40.0], np.float32)

CASES: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "gather_nd": (lambda x, i, y: td.gather_nd(x, i, bad_indices_policy="IGNORE"), [3, 0, 1, 0]),
    "scatter_nd": (lambda x, i, y: td.scatter_nd(i, y, [4], "IGNORE"), [30, 0, 10, 0]),
    "add": (lambda x, i, y: td.tensor_scatter_nd_add(x, i, y, "IGNORE"), [31, 2, 13, 4]),
    "sub": (lambda x, i, y: td.tensor_scatter_nd_sub(x, i, y, "IGNORE"), [-29, 2, -7, 4]),
    "max": (lambda x, i, y: td.tensor_scatter_nd_max(x, i, y, "IGNORE"), [30, 2, 10, 4]),
    "min": (lambda x, i, y: td.tensor_scatter_nd_min(x, i, y, "IGNORE"), [1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("opened", [False, True])
def test_positions_outside_are_left_out(name: str, opened: bool) -> None:
    fn, expected = CASES[name]
    specs = [td.TensorSpec([None] * a.ndim if opened else a.shape, a.dtype) for a in (X, NEW)]
    places = td.TensorSpec([None, 1] if opened else PLACES.shape, td.int64)
    traced = td.function(fn, input_signature=[specs[0], places, specs[1]])
    for run in (fn, traced):
        found = run(td.constant(X), td.constant(PLACES), td.constant(NEW))
        np.testing.assert_array_equal(found.numpy(), np.float32(expected))


def test_gradients() -> None:
    def slopes(x: Any, y: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([x, y])
            whole = td.tensor_scatter_nd_add(x, PLACES, y, "IGNORE")
            read = td.gather_nd(whole * whole, PLACES, bad_indices_policy="IGNORE")
        return tape.gradient(read, [x, y])

    for run in (slopes, td.function(slopes)):
        of_x, of_y = run(td.constant(X), td.constant(NEW))
        np.testing.assert_allclose(of_x.numpy(), [62, 0, 26, 0])
        np.testing.assert_allclose(of_y.numpy(), [26, 0, 62, 0])


def test_a_single_position() -> None:
    found = td.gather_nd(td.constant(X), [9], bad_indices_policy="IGNORE")
    assert found.shape == [] and float(found) == 0


@pytest.mark.parametrize("policy", ["ERROR", "DEFAULT", "", "ignore"])
def test_errors(policy: str) -> None:
    with pytest.raises(td.errors.InvalidArgumentError):
        td.gather_nd(X, PLACES, bad_indices_policy=policy)
    with pytest.raises(td.errors.InvalidArgumentError):
        td.scatter_nd(PLACES, NEW, [4], policy)
