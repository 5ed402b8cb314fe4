"""What the number of iterations tells."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes.trips import apply_trip_counts
from treadle.graph.verifier import verify


def loop(limit: int = 7, step: int = 2, test: str = "less(%i, %n)", dtype: str = "i32") -> str:
    params = f"%i: {dtype}[], %k: list f32[2], %x: f32[2], %n: {dtype}[]"
    return f"""(%x: f32[2]) {{
      %z: {dtype}[] = const() {{value={dtype}[](1)}}
      %n: {dtype}[] = const() {{value={dtype}[]({limit})}}
      %k: list f32[2] = list_new() {{dims=(2,), dtype=f32, capacity=None}}
      %0: {dtype}[], %1: list f32[2] = while(%z, %k, %x, %n)
        condition({params.replace("%x: f32[2], %n", "%x: f32[2], %n")}) {{
          %t: bool[] = {test}
          return %t
        }}
        body({params}) {{
          %s: {dtype}[] = const() {{value={dtype}[]({step})}}
          %j: {dtype}[] = add(%i, %s)
          %p: list f32[2] = list_push(%k, %x)
          return %j, %p
        }}
      %2: f32[m, 2] = list_stack(%1) {{dims=(2,)}}
      return %0, %2
    }}"""


def test_counters_are_known_after_the_loop_and_lists_before() -> None:
    graph = graph_of(loop())
    assert apply_trip_counts(graph)
    verify(graph)
    text = text_of(graph)
    assert "capacity=3" in text
    assert graph.results[0].node is not None
    assert graph.results[0].node.attrs["value"] == 7  # 1, 3, 5 and then
    assert not apply_trip_counts(graph)


def test_a_counter_passes_its_limit() -> None:
    graph = graph_of(loop(limit=6))
    apply_trip_counts(graph)
    assert graph.results[0].node is not None
    assert graph.results[0].node.attrs["value"] == 7


@pytest.mark.parametrize(
    "text",
    [
        loop(step=0),
        loop(limit=126, step=100, dtype="i8").replace("capacity=None", "capacity=2"),  # wraps
    ],
)
def test_what_stays(text: str) -> None:
    check_unchanged(apply_trip_counts, text)


def test_positions_that_count_inside_are_not_checked() -> None:
    @td.function
    def f(x):
        total = td.constant(0.0)
        for i in td.range(5):
            total += x[i] * x[4 - i]
        return total

    x = td.constant(np.arange(5, dtype=np.float32))
    assert f(x).numpy() == sum(i * (4 - i) for i in range(5))
    checks = f.get_concrete_function(x).executable.stages["schedule"].count("check")
    assert checks <= 1

    @td.function
    def outside(x):
        total = td.constant(0.0)
        for i in td.range(6):
            total += x[i]
        return total

    with pytest.raises(td.errors.InvalidArgumentError):
        outside(x)
