"""Statistics, linear algebra, Fourier transforms and more of NumPy inside td.function."""

from __future__ import annotations

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
