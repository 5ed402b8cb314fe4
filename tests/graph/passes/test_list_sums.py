"""Sums of a list and of lists with one element."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.passes.list_sums import add_to_elements
from treadle.graph.verifier import verify
from treadle.inspect import stages

ONE = """(%x: f32[3, 2], %v: f32[2], %i: i32[]) {
  %a: list f32[2] = list_unstack(%x)
  %n: i32[] = list_length(%a)
  %z: list f32[2] = list_new(%n) {dims=(2,), dtype=f32}
  %s: list f32[2] = list_set(%z, %i, %v) {grow=False}
  %b: list f32[2] = list_add(%a, %s)
  %y: f32[3, 2] = list_stack(%b) {dims=(2,)}
  return %y
}"""


@pytest.mark.parametrize("text", [ONE, ONE.replace("list_add(%a, %s)", "list_add(%s, %a)")])
def test_a_list_with_one_element_is_added_there(text: str) -> None:
    graph = graph_of(text)
    assert add_to_elements(graph)
    verify(graph)
    eliminate_dead_code(graph)
    found = text_of(graph)
    assert "list_add" not in found and "list_new" not in found
    assert not add_to_elements(graph)


def test_a_list_that_somebody_else_reads_stays() -> None:
    text = ONE.replace("return %y", "%t: f32[3, 2] = list_stack(%s) {dims=(2,)}\n  return %y, %t")
    check_unchanged(add_to_elements, text)


def recurrence(x):
    """Every element from the two before."""
    with td.GradientTape() as tape:
        tape.watch(x)
        states = td.TensorArray(x.dtype, size=8, clear_after_read=False)
        states = states.write(0, x)
        states = states.write(1, td.cos(x))
        for i in td.range(2, 8):
            states = states.write(i, td.sin(states.read(i - 1)) * x + states.read(i - 2))
        total = td.reduce_sum(states.stack() ** 2)
    return total, tape.gradient(total, x)


def test_gradients_of_recurrences_over_arrays_are_native() -> None:
    x = np.array([0.3, -0.7, 1.1])
    assert "python" not in stages(recurrence, x)["schedule"]
    total, gradient = td.function(recurrence)(x)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-6
        ahead, behind = (td.function(recurrence)(x + s)[0].numpy() for s in (step, -step))
        np.testing.assert_allclose(gradient[k], (ahead - behind) / 2e-6, 1e-6)
