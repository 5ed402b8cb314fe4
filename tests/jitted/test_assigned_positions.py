"""Assignments to what arrays of positions or masks select together with numbers and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

RANDOM = np.random.default_rng(0)
X = RANDOM.random((4, 5, 3))
ROWS, ROWS_TAKEN = np.array([1, 3]), np.array([True, False, True, True])
CELLS, LAST = RANDOM.random((4, 5)) < 0.5, np.array([True, False, True])
PART = RANDOM.random((2, 3, 3))

# Keys, for a number that only the run knows, and the values that are assigned.
CASES: dict[str, tuple[Any, Any]] = {
    "positions and a number": (lambda i: (ROWS, i), 5.0),
    "a number and positions": (lambda i: (i, ROWS), np.arange(3.0)),
    "a mask and a known number": (lambda i: (ROWS_TAKEN, 2), np.arange(9.0).reshape(3, 3)),
    "a mask and a number": (lambda i: (ROWS_TAKEN, i), -1.0),
    "positions and a slice": (lambda i: (ROWS, slice(1, 4)), PART),
    "a slice and positions": (lambda i: (slice(1, 3), ROWS), 2.0),
    "a number between": (lambda i: (ROWS, 1, slice(0, 2)), np.arange(4.0).reshape(2, 2)),
    "a mask of two axes": (lambda i: (CELLS, i), 4.0),
    "apart": (lambda i: (1, slice(None), np.array([0, 2])), 9.0),
    "an ellipsis": (lambda i: (..., LAST), 8.0),
    "steps": (lambda i: (ROWS, slice(None, None, 2)), 1.5),
    "a slice of the run": (lambda i: (ROWS, slice(i, None)), 1.5),
}


@pytest.mark.parametrize("name", CASES)
def test_assigned(name: str) -> None:
    key, value = CASES[name]

    def assign(x: Any, at: Any) -> Any:
        i = int(at[0])
        x[key(i)] = value
        return x.sum()

    ours, plain = X.copy(), X.copy()
    for place in (2, 0):
        at = np.array([place])
        np.testing.assert_allclose(td.jit(assign)(ours, at), assign(plain, at), rtol=1e-14)
        np.testing.assert_array_equal(ours, plain)


def test_axes_that_come_in_another_order_are_refused() -> None:
    @td.jit
    def assign(x: Any) -> None:
        x[1, :, ROWS - 1] = np.arange(10.0).reshape(2, 5)

    with pytest.raises(TypeError, match="neighbouring arrays of positions"):
        assign(X.copy())
