"""Random programs whose functions and blocks share variables: plain Python = converted = traced."""

from __future__ import annotations

import pytest

import treadle as td
from tests.autograph.random_programs import differences
from tests.autograph.random_scopes import ScopeWriter

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.mark.parametrize("first", range(0, 100, 5))
def test_random_scopes(first):
    """Five programs each; one of them compiled. One in sixty raises under a condition on a tensor,
    which is refused by name."""
    for seed in range(first, first + 5):
        try:
            assert differences(seed, True, seed == first, ScopeWriter) == []
        except td.autograph.StagingError as error:
            assert "was raised in a branch on a tensor" in str(error)
