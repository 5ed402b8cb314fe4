"""Functions of NumPy's that call Python code or decide by values, and orders of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import treadle as td

X = np.array([1.5, -2.0, 0.5, 0.0])


@np.vectorize
def clipped(x: Any, low: Any) -> Any:
    return low if x < low else x


def along_axes(x: Any) -> Any:
    grid = np.outer(x, x + 1)
    return (
        np.apply_along_axis(lambda row: row.max() - row.min(), 1, grid),
        np.apply_along_axis(lambda column: column * 2.0, 0, grid),
        np.apply_along_axis(np.sort, -1, grid),
    )


def by_elements(x: Any) -> Any:
    halves = np.vectorize(lambda v: v // 2, otypes=[float])
    total = 0.0
    for element in np.nditer(x):
        total += element * total + 1.0
    return clipped(x, 0.25), clipped(np.outer(x, x), x), halves(x), total


def from_iterables(x: Any) -> Any:
    return np.fromiter((v * 2 for v in x), dtype=float), np.fromiter(range(4), np.int32, count=3)


def without_zeros(x: Any) -> Any:
    return np.trim_zeros(x), np.trim_zeros(x * 0.0), np.trim_zeros(np.append(0.0, x), "f")


def complex_orders(x: Any) -> Any:
    z = np.append(x, x) + 1j * (np.arange(8.0) % 3)
    grid = z.reshape(2, 4)
    return (
        np.sort(z), np.argsort(grid, 0), np.max(z), grid.min(axis=1), np.round(z * 1.37, 1),
        np.sort(grid, axis=None),
    )  # fmt: skip


def checked(x: Any) -> Any:
    infinite = np.zeros(len(x), bool)
    np.isposinf(x / 0.0, infinite)
    return (
        np.asarray_chkfinite(x), np.nan_to_num(x, copy=True), sorted(x, reverse=True), infinite,
    )  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [along_axes, by_elements, from_iterables, without_zeros, complex_orders, checked],
)
def test_functions(function: Any) -> None:
    with np.errstate(all="ignore"):
        wanted, found = function(X.copy()), td.jit(function)(X.copy())
    for a, b in zip(wanted, found, strict=True):
        assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(b, a, rtol=1e-14)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="array must not contain infs or NaNs"):
        td.jit(checked)(np.array([1.0, np.nan]))
    with pytest.raises(TypeError, match="np.nditer takes one array and no flags"):
        td.jit(lambda x: list(np.nditer([x, x])))(X)


def windows(x: Any) -> Any:
    step = x.strides[0]
    shape = (len(x) - 3) // 2 + 1, 3
    pairs = np.lib.stride_tricks.as_strided(x, shape=shape, strides=(2 * step, step))
    grid = x.reshape(3, -1)
    row, column = grid.strides
    blocks = as_strided(grid, (2, 3, 2, 2), (row, column, row, column))
    return pairs.mean(axis=1), blocks.sum(axis=(2, 3)), as_strided(x, (2, x.size), (0, step)) + 1.0


def test_elements_by_their_distance_in_memory() -> None:
    x = np.arange(12.0) ** 2
    for found, wanted in zip(td.jit(windows)(x), windows(x), strict=True):
        np.testing.assert_allclose(found, wanted)

    @td.jit
    def changes(x: Any) -> Any:
        pairs = as_strided(x, (4, 2), (8, 8))
        x[0] = 5.0
        return pairs.sum()

    with pytest.raises(TypeError, match=r"\.copy\(\)"):
        changes(x)
    with pytest.raises(TypeError, match="takes contiguous arrays"):
        td.jit(lambda x: as_strided(x[::2], (2, 2), (8, 8)))(x)
