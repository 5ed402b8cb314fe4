"""Conditionals that only choose between cheap numbers."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import graph_of, text_of
from treadle.graph.passes import disabled
from treadle.graph.passes.choices import choose_numbers
from treadle.graph.verifier import verify


def choice(then: str, result: str = "%t", shape: str = "") -> str:
    kind = f"f32[{shape}]"
    return f"""(%p: bool[], %x: {kind}) {{
      %y: {kind} = cond(%p, %x)
        then(%a: {kind}) {{
          {then}
          return {result}
        }}
        else(%b: {kind}) {{
          return %b
        }}
      return %y
    }}"""


def test_cheap_numbers_are_chosen() -> None:
    graph = graph_of(choice("%t: f32[] = add(%a, %a)"))
    assert choose_numbers(graph)
    verify(graph)
    assert "where(%p" in text_of(graph) and "cond" not in text_of(graph)
    assert not choose_numbers(graph)


@pytest.mark.parametrize(
    "graph",
    [
        choice("%t: f32[] = exp(%a)"),
        choice("%t: f32[] = divide(%a, %a)"),
        choice("%t: f32[3] = add(%a, %a)", shape="3"),
        choice("\n".join(f"%t{i}: f32[] = add(%a, %a)" for i in range(9)), "%t8"),
    ],
    ids=["function", "division", "array", "many"],
)
def test_others_stay(graph: str) -> None:
    made = graph_of(graph)
    assert not choose_numbers(made)


def test_results_stay_the_same() -> None:
    def f(x: td.Tensor, t: td.Tensor) -> td.Tensor:
        total = td.constant(0.0)
        for v in x:
            if v > t:
                total += v
            else:
                total -= 1.0
        return total

    x = td.constant(np.linspace(-2, 2, 9), td.float32)
    chosen = td.function(f)
    text = str(chosen.get_concrete_function(x, td.constant(0.3)).executable.graph)
    assert "where(" in text and "cond(" not in text
    with disabled("choices"):
        assert float(td.function(f)(x, td.constant(0.3))) == float(chosen(x, td.constant(0.3)))
