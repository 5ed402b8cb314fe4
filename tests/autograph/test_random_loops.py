"""Random loops over Python ranges: rolled = unrolled, bit for bit."""

from __future__ import annotations

import pytest

from tests.autograph.random_loops import difference

pytestmark = pytest.mark.thorough


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [0, 4, 1100, 1206])
def test_random_loops(first):
    found = [difference(seed) for seed in range(first, first + 4)]
    assert not [text for text, _ in found if text]
    assert any(rolled for _, rolled in found)
