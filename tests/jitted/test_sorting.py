"""`sorted`, `list.sort`, `min` and `max` of what only the run knows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle as td


def pairs(x: Any) -> list[Any]:
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append((int(x[i]), i))
    return found


def of_tuples(x: Any) -> Any:
    return sorted(pairs(x)), sorted(pairs(x), reverse=True), max(pairs(x)), min(pairs(x))


def by_keys(x: Any) -> Any:
    found = pairs(x)
    last = max(found, key=lambda pair: pair[1])
    return sorted(found, key=lambda pair: pair[0], reverse=True), last, min(found, key=sum)


def in_place(x: Any) -> Any:
    found = pairs(x)
    found.sort(key=lambda pair: -pair[0])
    first = found[0]
    found.sort()
    plain = [int(v) for v in x]
    plain.sort(reverse=True)
    return found, first, plain, list(reversed(plain))


def of_positions(x: Any) -> Any:
    return sorted(range(len(x)), key=lambda i: x[i]), min(range(len(x)), key=lambda i: x[i])


def of_counts(x: Any) -> Any:
    counts: dict[int, int] = {}
    for v in x:
        counts[int(v)] = counts.get(int(v), 0) + 1
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ordered, sorted(counts), max(counts, key=counts.get), max(counts.values())


def of_zipped(x: Any) -> Any:
    return sorted(zip(x.tolist(), range(len(x)), strict=True), key=lambda t: (t[0], -t[1]))


def of_builtin_keys(x: Any) -> Any:
    found = [float(v) - 2.5 for v in x]
    return sorted(found, key=abs), min(found, key=abs), max(found, key=lambda v: (v - 1.0) ** 2)


def sum_behind(x: Any) -> Any:
    found = x.tolist()
    found.sort()
    return found[-1] < sum(found[:-1])


FUNCTIONS = (
    of_tuples, by_keys, in_place, of_positions, of_counts, of_zipped, of_builtin_keys, sum_behind,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_python_puts_them_in_order(function):
    jitted = td.jit(function)
    for values in ([3, 1, 2, 5, 1], [1, 1, 1, 1, 2]):
        assert jitted(np.array(values)) == function(np.array(values))


def test_many_elements():
    x = np.random.default_rng(0).integers(0, 9, 50)
    for function in (of_tuples, of_positions, of_counts):
        assert td.jit(function)(x) == function(x)


def test_lists_among_the_arguments():
    def ratios(a: list[float], b: list[float]) -> Any:
        ordered = sorted(zip(a, b, strict=True), key=lambda p: p[0] / p[1], reverse=True)
        a.sort()
        return ordered

    given = [1.0, 5.0, 2.0], [2.0, 3.0, 1.0]
    own = copy.deepcopy(given)
    assert td.jit(ratios)(*own) == ratios(*given)
    assert own == given


def test_the_largest_of_nothing_is_an_error():
    @td.jit
    def largest(x):
        return max([v for v in x if v > 0], key=lambda v: -v)

    assert largest(np.array([3, 1, -1])) == 1
    with pytest.raises(ValueError):
        largest(np.array([-3, -1, -1]))
