"""Products of a loop's slices taken together."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes.batching import batch_products
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.verifier import verify


def loop(
    trips: int = 5,
    start: int = 0,
    step: int = 1,
    test: str = "less(%i, %n)",
    x: str = "f32[5, 2, 3]",
    body: str = "%3: f32[2, 3] = index(%x, %i) {axis=0}",
    factors: str = "%3, %w",
    flags: str = "transpose_a=False, transpose_b=False",
) -> str:
    params = f"%i: i32[], %s: f32[2, 4], %n: i32[], %x: {x}, %w: f32[3, 4]"
    return f"""(%x: {x}, %w: f32[3, 4], %s: f32[2, 4]) {{
      %a: i32[] = const() {{value=i32[]({start})}}
      %n: i32[] = const() {{value=i32[]({trips})}}
      %0: i32[], %1: f32[2, 4] = while(%a, %s, %n, %x, %w)
        condition({params}) {{
          %2: bool[] = {test}
          return %2
        }}
        body({params}) {{
          %k: i32[] = const() {{value=i32[]({step})}}
          %j: i32[] = add(%i, %k)
          {body}
          %4: f32[2, 4] = matmul({factors}) {{{flags}}}
          %5: f32[2, 4] = add(%s, %4)
          return %j, %5
        }}
      return %1
    }}"""


def test_one_product_before_the_loop() -> None:
    graph = graph_of(loop())
    assert batch_products(graph)
    verify(graph)
    eliminate_dead_code(graph)
    text = text_of(graph)
    before, _, inside = text.partition("while(")
    assert "f32[5, 2, 4] = matmul(%x, %w)" in before
    assert "matmul" not in inside
    assert "f32[2, 4] = index(" in inside
    assert not batch_products(graph)


def test_a_loop_may_leave_out_a_few_slices() -> None:
    graph = graph_of(loop(start=1))
    assert batch_products(graph)
    verify(graph)
    assert "f32[5, 2, 4] = matmul(%x, %w)" in text_of(graph).partition("while(")[0]


@pytest.mark.parametrize(
    "text",
    [
        loop(trips=3),  # not all slices, or too many
        loop(trips=6),
        loop(start=2),
        loop(step=2),
        loop(test="less_equal(%i, %n)"),
        loop(body="%3: f32[2, 3] = index(%x, %j) {axis=0}"),
        loop(x="f32[B, 2, 3]"),
        loop(
            body="%3: f32[3, 2] = index(%x, %i) {axis=0}", x="f32[5, 3, 2]",
            flags="transpose_a=True, transpose_b=False",
        ),
        loop(trips=3, x="f32[3, 2, 3]"),  # too few to be worth it
    ],
)  # fmt: skip
def test_what_stays(text: str) -> None:
    check_unchanged(batch_products, text)


@pytest.mark.parametrize("transpose", [False, True])
def test_results_have_the_same_bits(transpose: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 5, 6)).astype(np.float32)
    w = rng.standard_normal((4, 6) if transpose else (6, 4)).astype(np.float32)

    def run(xs, w):
        s = td.zeros([5, 4])
        for piece in xs:
            s = td.tanh(s + td.matmul(piece, w, transpose_b=transpose))
        return s

    def gradient(xs, w):
        with td.GradientTape() as tape:
            tape.watch([xs, w])
            y = td.reduce_sum(run(xs, w))
        return tape.gradient(y, [xs, w])

    from treadle.graph.passes import disabled

    for python in (run, gradient):
        found = td.nest.flatten(td.function(python)(x, w))
        with disabled("batching"):
            expected = td.nest.flatten(td.function(python)(x, w))
        for a, b in zip(found, expected, strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()
