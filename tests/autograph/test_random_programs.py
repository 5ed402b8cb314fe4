"""Random programs: plain Python = converted = traced = compiled."""

from __future__ import annotations

import pytest

from tests.autograph.random_programs import differences


@pytest.mark.parametrize("first", range(0, 200, 10))
def test_random_programs(first):
    """Ten programs each; one of them compiled. `run_random_programs` runs many more."""
    for seed in range(first, first + 10):
        assert differences(seed, True, seed == first) == []
