"""No path of a call leaks references, blocks or memory; and the counting would notice."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import treadle as td
from benchmarks.refcounts.measure import Growth, growth, leaks
from benchmarks.refcounts.paths import PATHS
from treadle.runtime.cpu.dispatch import eager
from treadle.runtime.cpu.dispatch.layout import call_layout

pytestmark = pytest.mark.skipif(
    call_layout() is None, reason="this interpreter has no native calls"
)


@pytest.fixture(autouse=True)
def native_operators() -> Iterator[None]:
    assert eager.install()
    yield
    eager.uninstall()


@pytest.mark.parametrize("name", PATHS)
def test_nothing_leaks(name: str) -> None:
    path = PATHS[name]
    calls = 2000 if path.native else max(60, 500 // path.slowness)
    call = path.make()
    tries = [growth(call, calls, warm=calls // 2)]
    while leaks(tries[-1]) and len(tries) < 3:  # a cache may have grown; a leak always does
        tries.append(growth(call, calls))
    assert not leaks(tries[-1]), tries


def test_leaks_are_noticed() -> None:
    kept: list[Any] = []
    f = td.function(lambda x: x + 1.0, autograph=False)
    x = td.ones([2])
    found = growth(lambda: kept.append(f(x)), 1000)
    assert "blocks" in leaks(found) and "watched" in leaks(found)
    assert leaks(Growth(1000, 1000, 0, 0, 0, 0.1)) == ["references"]
    assert leaks(Growth(1000, None, 0, 0, 50_000, 0.1)) == ["kilobytes"]


def test_the_sum_of_references_is_counted_where_there_is_one() -> None:
    found = growth(lambda: None, 10)
    assert (found.references is None) == (not hasattr(sys, "gettotalrefcount"))
