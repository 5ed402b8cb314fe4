"""np.random inside a function: one warning that names what to use."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import treadle as td


def test_one_warning_for_numpy_random() -> None:
    @td.function
    def noisy_step(x: Any) -> Any:
        return x + np.random.normal(size=2).astype(np.float32)  # noqa: NPY002

    x = td.constant([1.0, 2.0])
    with pytest.warns(UserWarning, match=r"'noisy_step' draws numbers from np.random.*td.random"):
        first = noisy_step(x)
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(noisy_step(x).numpy(), first.numpy())
        noisy_step(td.constant([3.0, 4.0]) * 2.0)
        noisy_step(td.constant([[1.0, 2.0]]))


def test_no_warning_without_it() -> None:
    np.random.rand()  # noqa: NPY002

    @td.function
    def quiet_step(x: Any) -> Any:
        return x + td.random.normal([2])

    with warnings.catch_warnings(action="error"):
        quiet_step(td.constant([1.0, 2.0]))
