"""Random programs of nested loops and conditions: gradients are those of finite differences."""

from __future__ import annotations

import pytest

from tests.autodiff.random_programs import differences

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("first", range(0, 30, 5))
def test_random_programs(first):
    """Five programs each. `run_random_programs` runs many more."""
    for seed in range(first, first + 5):
        assert not differences(seed, compiled=seed == 5, second=seed % 3 == 0)


@pytest.mark.parametrize("seed", [60, 102, 135])
def test_branches_that_save_bools_for_the_gradient(seed):
    assert not differences(seed, compiled=False, second=True)


def test_branches_that_save_parts_of_sizes_that_only_an_iteration_knows():
    assert not differences(96, compiled=False, second=True)
