"""Every op of the tables: eager = NumPy, traced = eager, lowered = eager, shapes known or not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops import cases, cases_arrays, cases_linalg, cases_nn, cases_special
from tests.ops.cases import TOLERANCE, Case
from tests.ops.traced import check_lowering, run_traced
from treadle.core.tensor import from_array

TABLES = (
    cases.UNARY, cases.BINARY, cases.REDUCTIONS, cases.POSITIONS, cases.SCANS,
    cases_arrays.MATMULS, cases_arrays.LINALG, cases_arrays.SHAPING, cases_arrays.INDEXING,
    cases_arrays.GATHERS, cases_arrays.CASTS, cases_arrays.EINSUMS, cases_arrays.SORTING,
    cases_special.SPECIAL, cases_linalg.LINALG, cases_nn.LAYERS,
)  # fmt: skip
ALL = [case for table in TABLES for case in table]
every_case = pytest.mark.parametrize("case", ALL, ids=str)


def reference(case: Case, arrays: list[Any]) -> Any:
    """What the case must give, computed in a wide dtype."""
    wide = []
    for array in arrays:
        kind = array.dtype.kind
        wide.append(array.astype({"c": np.complex128, "i": np.int64, "u": np.int64, "b": bool}.get(
            kind, np.float64)))  # fmt: skip
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        assert case.ref is not None
        return np.asarray(case.ref(*wide))  # NumPy warns of empty means


def close(actual: Any, expected: Any, dtype: str) -> None:
    assert actual.shape == expected.shape
    if actual.dtype.kind in "iub":
        expected = np.asarray(expected).astype(actual.dtype)  # sums wrap around
        np.testing.assert_array_equal(actual, expected)
        return
    tolerance = TOLERANCE.get(dtype, 3e-6)
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(actual.astype(wide), expected, rtol=tolerance, atol=tolerance)


def variants(case: Case) -> list[tuple[Any, str]]:
    return [(shapes, dtype) for shapes in case.shapes for dtype in case.dtypes]


@pytest.mark.parametrize("case", [c for c in ALL if c.ref is not None], ids=str)
def test_eager_is_numpy(case: Case) -> None:
    for shapes, dtype in variants(case):
        arrays = case.arrays(shapes, dtype)
        result = case.fn(*(from_array(a) for a in arrays))
        assert result.dtype.np_dtype == result._buffer.dtype
        close(result._buffer, reference(case, arrays), dtype)


@every_case
def test_traced_is_eager(case: Case) -> None:
    """The same bits, with dims known and, for what works on any size, unknown."""
    for shapes, dtype in variants(case):
        arrays = case.arrays(shapes, dtype)
        expected = case.fn(*(from_array(a) for a in arrays))._buffer
        for symbolic in (False, True) if case.symbolic else (False,):
            (result,) = run_traced(case.fn, arrays, symbolic)
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            assert result.tobytes() == expected.tobytes()


@every_case
def test_lowered_is_eager(case: Case) -> None:
    count = 0
    for shapes, dtype in variants(case):
        arrays = case.arrays(shapes, dtype)
        tolerance = TOLERANCE.get(dtype, 0) or 3e-6
        for symbolic in (False, True) if case.symbolic else (False,):
            count += check_lowering(case.fn, arrays, symbolic, tolerance)
    assert count or not case.kernels


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_of_a_half_are_no_roots(dtype):
    x = np.array([-np.inf, -0.0, np.inf, -1.0, 4.0], dtype)
    expected = np.array([np.inf, 0.0, np.inf, np.nan, 2.0], dtype)
    for found in (td.pow(x, 0.5), td.function(lambda x: x**0.5)(x)):
        np.testing.assert_array_equal(found, expected)
        assert not np.signbit(found[1])
