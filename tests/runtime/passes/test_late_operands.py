"""Minima and maxima of integers take last what the previous iteration gives."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged
from treadle.core.switches import disabled
from treadle.runtime.cpu.facts import CpuFacts
from treadle.runtime.passes import late_operands


def order_operands(graph):
    return late_operands.order_operands(graph, CpuFacts())


LOOP = """(%n: i64[], %a: {kind}[], %x: {kind}[], %y: {kind}[]) {{
  %i: i64[], %r: {kind}[] = while(%n, %a, %x, %y)
    condition(%i1: i64[], %c1: {kind}[], %x1: {kind}[], %y1: {kind}[]) {{
      %zero: i64[] = const() {{value=i64[](0)}}
      %more: bool[] = greater(%i1, %zero)
      return %more
    }}
    body(%i2: i64[], %c: {kind}[], %x2: {kind}[], %y2: {kind}[]) {{
      %one: i64[] = const() {{value=i64[](1)}}
      %next: i64[] = subtract(%i2, %one)
      {body}
      return %next, %best
    }}
  return %r
}}"""


def loop(*lines, kind="i64"):
    return LOOP.format(kind=kind, body="\n      ".join(lines))


def test_the_carried_number_comes_last():
    check(
        order_operands,
        loop("%p: i64[] = maximum(%c, %x2)", "%best: i64[] = maximum(%p, %y2)"),
        loop("%0: i64[] = maximum(%x2, %y2)", "%best: i64[] = maximum(%0, %c)"),
    )


def test_comparisons_and_choices():
    check(
        order_operands,
        loop(
            "%d: i64[] = add(%c, %x2)",
            "%t: bool[] = less(%d, %x2)",
            "%p: i64[] = where(%t, %d, %x2)",
            "%u: bool[] = greater(%y2, %p)",
            "%best: i64[] = where(%u, %p, %y2)",
        ),
        loop(
            "%d: i64[] = add(%c, %x2)",
            "%0: i64[] = minimum(%x2, %y2)",
            "%best: i64[] = minimum(%0, %d)",
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        loop("%0: i64[] = maximum(%x2, %y2)", "%best: i64[] = maximum(%0, %c)"),
        loop("%p: i64[] = minimum(%c, %x2)", "%best: i64[] = maximum(%p, %y2)"),
        loop("%p: f64[] = minimum(%c, %x2)", "%best: f64[] = minimum(%p, %y2)", kind="f64"),
        loop(
            "%p: i64[] = minimum(%c, %x2)",
            "%q: i64[] = minimum(%p, %y2)",
            "%best: i64[] = add(%p, %q)",
        ),
        loop("%p: i64[] = minimum(%i2, %x2)", "%best: i64[] = minimum(%p, %y2)"),
    ],
    ids=["in order", "of two kinds", "floats", "read by others", "counters"],
)
def test_others_stay(text):
    check_unchanged(order_operands, text)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_results_are_the_same(dtype):
    def distances(a, b, costs):
        n, m = a.shape[0], b.shape[0]
        d = np.zeros((n + 1, m + 1), dtype=costs.dtype)
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                d[i, j] = min(
                    d[i, j - 1] + 1, d[i - 1, j] + costs[i - 1], d[i - 1, j - 1] + b[j - 1]
                )
                d[i, j] = max(d[i, j], d[i, j - 1], a[i - 1], 2)
        return d

    numbers = np.random.default_rng(1)
    a, b, costs = (numbers.integers(0, 6, 12).astype(dtype) for _ in range(3))
    expected = distances(a, b, costs)
    np.testing.assert_array_equal(td.jit(distances)(a, b, costs), expected, strict=True)
    with disabled("late_operands"):
        plain = td.jit(lambda a, b, costs: distances(a, b, costs))(a, b, costs)
    np.testing.assert_array_equal(plain, expected, strict=True)
