"""Statistics, linear algebra, Fourier transforms and more of NumPy inside td.function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.numpy_cases_more import GRADIENTS, MORE, SQUARE, Case
from tests.ops.test_numpy_staging import agree, numpy_result, tensors


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@pytest.mark.parametrize("case", MORE.values(), ids=MORE)
def test_staged_is_numpy(case: Case) -> None:
    fn = case[0]
    compiled = td.function(lambda *args: fn(*args), autograph=False)
    agree(compiled(*tensors(case)), numpy_result(case))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_more(name: str) -> None:
    staged = td.function(lambda x: GRADIENTS[name](x), autograph=False)
    check_gradients(staged, SQUARE + 0.1 * np.eye(3), second=False)


@pytest.mark.parametrize("wrap", [lambda f: f, td.function], ids=["eager", "function"])
def test_orders_of_elements_in_methods(wrap: Any) -> None:
    a = np.arange(24).reshape(2, 3, 4)
    x = td.constant(a)
    for order in "CFAKf":
        np.testing.assert_array_equal(wrap(lambda v, o=order: v.flatten(o))(x), a.flatten(order))
        np.testing.assert_array_equal(wrap(lambda v, o=order: v.ravel(o))(x), a.ravel(order))
    for order in "CFA":
        found = wrap(lambda v, o=order: v.reshape(4, -1, order=o))(x)
        np.testing.assert_array_equal(found, a.reshape(4, -1, order=order))
        found = wrap(lambda v, o=order: v.reshape((6, 4), order=o))(x)
        np.testing.assert_array_equal(found, a.reshape((6, 4), order=order))
    for wrong in (lambda v: v.flatten("X"), lambda v: v.reshape(6, 4, order="K")):
        with pytest.raises(ValueError, match="order must be one of"):
            wrap(wrong)(x)
