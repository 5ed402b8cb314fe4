"""Random programs: plain Python = converted = traced = compiled."""

from __future__ import annotations

import pytest

from tests.autograph.random_programs import differences

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("first", range(0, 100, 5))
def test_random_programs(first):
    """Five programs each; one of them compiled. `run_random_programs` runs many more."""
    for seed in range(first, first + 5):
        assert differences(seed, True, seed == first) == []
