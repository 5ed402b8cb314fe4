"""Functions of NumPy in jitted functions that programs of others found to differ."""

from __future__ import annotations

import cmath

import numpy as np
import pytest

import treadle as td


def alike(function, *arguments):
    jitted = td.jit(function)
    for _ in range(2):
        found, wanted = jitted(*arguments), function(*arguments)
        for x, y in zip(found, wanted, strict=True):
            assert type(x) is type(y)
            assert np.asarray(x).dtype == np.asarray(y).dtype
            np.testing.assert_allclose(x, y, rtol=1e-6)


def ranges(a):
    return (
        np.arange(a), np.arange(2, a), np.arange(a, stop=a + 3), np.arange(a, step=0.5, stop=4),
        np.arange(start=1, stop=a), np.arange(1, a, 2, np.float32), np.arange(a, dtype=np.int8),
        np.arange(a, 0, -2),
    )  # fmt: skip


def test_arange_of_ints_that_vary():
    jitted = td.jit(ranges)
    for a in (3, 4, 0, -2, 7):
        for x, y in zip(jitted(a), ranges(a), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("bound", [2.5, 3.5, -1.5, 3.0])
def test_arange_of_floats(bound):
    alike(lambda a: (np.arange(a), np.arange(a, dtype=np.int8), np.arange(0.5, a, 0.25)), bound)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_statistics_without_nan_of_complex_arrays(dtype):
    values = (np.arange(6) * (1 + 2j)).astype(dtype)
    values[2] = np.nan
    alike(
        lambda a: (np.nanmean(a), np.nanstd(a), np.nanvar(a), np.nansum(a), np.nanprod(a)), values
    )
    alike(lambda a: (np.nanmean(a, 0), np.nanvar(a, 0)), values.reshape(2, 3))


def test_statistics_without_nan_of_ints():
    alike(lambda a: (np.nanmean(a), np.nanvar(a), np.nanmean(a, 0)), np.arange(6).reshape(2, 3))


def test_answers_are_bools_of_pythons():
    alike(
        lambda a: (np.allclose(a, a), np.array_equal(a, a + 1), np.array_equal(a, np.ones(2))),
        np.arange(3.0),
    )


def test_types_of_traced_values():
    def kinds(a, n):
        if type(a) == np.ndarray and type(a) is not list:  # noqa: E721
            return a.sum(), n
        return a, n

    alike(kinds, np.arange(3.0), 2.5)


@pytest.mark.parametrize("z", [0.3 + 0.4j, 1.5, -2.0])
def test_functions_of_cmath(z):
    alike(lambda z: (cmath.sqrt(z), cmath.exp(z), cmath.sin(z), cmath.log(z), abs(z)), z)


def test_lengths_of_empty_ranges():
    jitted = td.jit(lambda a, b: (len(range(a, b)), [i * 2 for i in range(a, b)]))
    for a, b in ((0, 3), (1, 4), (5, 2), (2, 2)):
        assert jitted(a, b) == (len(range(a, b)), [i * 2 for i in range(a, b)])


def test_interp_of_complex_numbers():
    heights = np.array([1.0 + 1j, 2.0, 3.0 - 1j])
    alike(
        lambda x: (np.interp(x, np.arange(3.0), heights), np.interp(x[0], x, x)),
        np.array([0.5, 1.25, 2.0, 7.0]),
    )
