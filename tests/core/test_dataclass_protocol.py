"""Classes with TensorFlow's protocol of dataclasses: they say what their children are."""

from __future__ import annotations

import dataclasses
from typing import Any

import treadle as td

C = td.constant


@dataclasses.dataclass
class Masked:
    mask: list[bool]
    value: Any

    def __tf_flatten__(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, data: tuple[Any, ...], parts: tuple[Any, ...]) -> Masked:
        return cls(data[0], parts[0])


def test_only_the_parts_are_leaves() -> None:
    pair = [Masked([True], 1), Masked([False], Masked([], 2))]
    assert td.nest.flatten(pair) == [1, 2]
    assert td.nest.map_structure(lambda x: x + 1, pair) == [
        Masked([True], 2), Masked([False], Masked([], 3)),
    ]  # fmt: skip


def test_functions_keep_the_data_and_are_traced_for_it() -> None:
    traces = []

    @td.function
    def f(x: Masked) -> Masked:
        traces.append(x.mask)
        return Masked([*x.mask, True], x.value * 2.0 if x.mask[0] else x.value)

    for number in range(3):
        assert f(Masked([True], C(float(number)))) == Masked([True, True], C(2.0 * number))
        assert f(Masked([False], C(float(number)))) == Masked([False, True], C(1.0 * number))
    assert traces == [[True], [False]]


def test_gradients_branches_and_loops() -> None:
    v = td.Variable(3.0)

    @td.function
    def f(x: Masked, n: Any) -> Masked:
        i = 0
        while i < n:
            x = Masked(x.mask, x.value * 2.0)
            i += 1
        return td.cond(n > 0, lambda: x, lambda: Masked(x.mask, x.value + 1.0))

    with td.GradientTape() as tape:
        result = f(Masked([True], v * 1.0), C(2))
    assert result.mask == [True] and float(result.value) == 12
    assert float(tape.gradient(result.value, v)) == 4
