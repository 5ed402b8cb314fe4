"""Random NumPy programs: jitted = NumPy in values, dtypes and what the caller's arrays hold.

`python -m tests.jitted.run` goes on for as many programs as one likes.
"""

import pytest

from tests.jitted.differential import difference

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("first", range(0, 60, 12))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 12):
        found = difference(seed)
        assert found is None, f"seed {seed}\n{found}"
