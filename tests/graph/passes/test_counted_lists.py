"""Lists of counted loops, whose lengths and positions are known."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.core.switches import disabled
from treadle.graph.passes.counted_lists import resolve_counted_lists
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.verifier import verify


def reading(trips: int = 5, place: str = "%i", x: str = "f32[5, 2]") -> str:
    params = "%i: i32[], %s: f32[2], %n: i32[], %l: list f32[2]"
    return f"""(%x: {x}, %s: f32[2]) {{
      %z: i32[] = const() {{value=i32[](0)}}
      %n: i32[] = const() {{value=i32[]({trips})}}
      %l: list f32[2] = list_unstack(%x)
      %0: i32[], %1: f32[2] = while(%z, %s, %n, %l)
        condition({params}) {{
          %t: bool[] = less(%i, %n)
          return %t
        }}
        body({params}) {{
          %one: i32[] = const() {{value=i32[](1)}}
          %j: i32[] = add(%i, %one)
          %e: f32[2] = list_get(%l, {place}) {{dims=(2,)}}
          %a: f32[2] = add(%s, %e)
          return %j, %a
        }}
      return %1
    }}"""


def test_elements_of_an_unstacked_array_are_its_slices() -> None:
    graph = graph_of(reading())
    assert resolve_counted_lists(graph)
    verify(graph)
    eliminate_dead_code(graph)
    text = text_of(graph)
    assert "list_" not in text and "index(" in text
    assert not resolve_counted_lists(graph)


@pytest.mark.parametrize(
    "text", [reading(trips=6), reading(place="%j"), reading(x="f32[T, 2]"), reading(place="%n")]
)
def test_reads_that_may_be_outside_stay(text: str) -> None:
    check_unchanged(resolve_counted_lists, text)


def clearing(place: str = "%i", results: str = "%1", read: str = "%i", step: int = 1) -> str:
    params = "%i: i32[], %s: f32[2], %l: list f32[2], %n: i32[], %v: f32[2]"
    return f"""(%s: f32[2], %v: f32[2], %x: f32[5, 2]) {{
      %z: i32[] = const() {{value=i32[](0)}}
      %n: i32[] = const() {{value=i32[](5)}}
      %l: list f32[2] = list_unstack(%x)
      %0: i32[], %1: f32[2], %2: list f32[2] = while(%z, %s, %l, %n, %v)
        condition({params}) {{
          %t: bool[] = less(%i, %n)
          return %t
        }}
        body({params}) {{
          %one: i32[] = const() {{value=i32[]({step})}}
          %j: i32[] = add(%i, %one)
          %e: f32[2] = list_get(%l, {read}) {{dims=(2,)}}
          %a: f32[2] = add(%s, %e)
          %w: list f32[2] = list_set(%l, {place}, %v) {{grow=False}}
          return %j, %a, %w
        }}
      %3: f32[2] = list_get(%2, %z) {{dims=(2,)}}
      return {results}
    }}"""


def test_writes_that_nobody_reads_are_left_out() -> None:
    graph = graph_of(clearing())
    eliminate_dead_code(graph)
    assert resolve_counted_lists(graph)
    verify(graph)
    eliminate_dead_code(graph)
    assert "list_set" not in text_of(graph)


@pytest.mark.parametrize(
    "text",
    [
        clearing(results="%1, %3"),  # read after the loop
        clearing(read="%j"),  # read in the next iteration
        clearing(step=0),
    ],
)
def test_writes_that_are_read_stay(text: str) -> None:
    graph = graph_of(text)
    eliminate_dead_code(graph)
    resolve_counted_lists(graph)
    verify(graph)
    assert "list_set" in text_of(graph)


@pytest.mark.parametrize(
    ("count", "write"),
    [
        (9, lambda i, h, a: a.write(i, h)),
        (4, lambda i, h, a: a.write(2 * i, h)),
        (3, lambda i, h, a: a.write(8 - i, h).write(i, h * 2.0)),
    ],
)
def test_values_and_gradients_of_written_arrays(count, write) -> None:
    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            rows = td.TensorArray(td.float64, size=9, element_shape=(3,)).unstack(x)
            out = td.TensorArray(td.float64, size=9, element_shape=(3,), clear_after_read=False)
            h = td.zeros((3,), td.float64)
            for i in range(9):
                out = out.write(i, h)
            for i in td.range(count):
                h = td.sin(h + rows.read(i))
                out = write(i, h, out)
            y = out.stack() * td.reshape(td.range(27, dtype=td.float64), (9, 3))
        return y, tape.gradient(y, x)

    x = td.constant(np.random.default_rng(0).standard_normal((9, 3)))
    got = td.function(f)(x)
    with disabled("counted_lists"):
        plain = td.function(f)(x)
    assert got[0].shape == (9, 3)
    for a, b, c in zip(got, plain, f(x), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
        np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-12, atol=1e-14)
