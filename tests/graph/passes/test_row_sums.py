"""Totals that loops add up by rows."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.passes.row_sums import keep_rows_apart
from treadle.graph.verifier import verify


def loop(
    x: str = "f32[2, 3]", axis: str = "(0, 1)", result: str = "%s2", test: str = "less(%m, %n)"
) -> str:
    params = f"%h: {x}, %s: f32[], %n: f32[]"
    return f"""(%h: {x}, %s: f32[], %n: f32[]) {{
      %0: {x}, %1: f32[] = while(%h, %s, %n)
        condition({params}) {{
          %m: f32[] = reduce_max(%h) {{axis={axis}, keepdims=False}}
          %t: bool[] = {test}
          return %t
        }}
        body({params}) {{
          %h2: {x} = add(%h, %h)
          %r: f32[] = reduce_sum(%h2) {{axis={axis}, keepdims=False}}
          %s2: f32[] = add(%r, %s)
          return %h2, {result}
        }}
      return %0, %1
    }}"""


@pytest.mark.parametrize(("x", "axis"), [("f32[2, 3]", "(0, 1)"), ("f32[4]", "(0,)")])
def test_rows_are_added_up_after_the_loop(x: str, axis: str) -> None:
    graph = graph_of(loop(x, axis))
    assert keep_rows_apart(graph)
    verify(graph)
    eliminate_dead_code(graph)
    lines = text_of(graph).splitlines()
    inside = [line for line in lines if line.startswith("      ") and "reduce_sum" in line]
    after = [line for line in lines if line.startswith("  %") and "reduce_sum" in line]
    assert len(inside) == (1 if "," in x else 0) and all("axis=(1,)" in line for line in inside)
    assert len(after) == 1
    assert not keep_rows_apart(graph)


@pytest.mark.parametrize(
    "text",
    [
        loop(result="%r"),  # no sum
        loop(test="less(%s, %n)"),  # the condition reads it
        loop(x="f32[1, 3]"),
        loop(x="f32[B, 3]"),
    ],
)
def test_what_stays(text: str) -> None:
    check_unchanged(keep_rows_apart, text)


def test_values() -> None:
    def f(x, n):
        total = td.constant(3.0, td.float64)
        while td.reduce_max(x) < n:
            x = x * 1.5
            total += td.reduce_sum(x)
        return total

    x = td.constant(np.random.default_rng(0).random((5, 7)))
    for n in (0.0, 20.0):
        n = td.constant(n, td.float64)
        np.testing.assert_allclose(td.function(f)(x, n).numpy(), f(x, n).numpy(), rtol=1e-12)
