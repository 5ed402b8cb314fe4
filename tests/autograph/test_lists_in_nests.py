"""Lists made in loops on tensors are lists to `td.nest`."""

from __future__ import annotations

from typing import Any

import treadle as td


def test_lists_of_a_loop_have_the_structure_of_lists() -> None:
    @td.function
    def grown(x: Any, n: Any) -> Any:
        first, second = [x, x * 2.0], [x, x]
        for _ in td.range(n):
            first = td.nest.map_structure(lambda a, b: a + b, first, second)
            second = td.nest.map_structure(lambda a, b: a * b, [x, x], first)
        return first

    assert [float(v) for v in grown(td.constant(1.0), td.constant(3))] == [8.0, 12.0]
