"""Invariant right factors are transposed before loops."""

import numpy as np

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.passes.transposed_factors import lay_out_factors
from treadle.graph.verifier import verify


def loop(factor: str = "%w") -> str:
    params = "%h: f32[2, 3], %w: f32[3, 3], %n: f32[]"
    return f"""(%h: f32[2, 3], %w: f32[3, 3], %n: f32[]) {{
      %0: f32[2, 3] = while(%h, %w, %n)
        condition({params}) {{
          %s: f32[] = reduce_sum(%h) {{axis=(0, 1), keepdims=False}}
          %t: bool[] = less(%s, %n)
          return %t
        }}
        body({params}) {{
          %v: f32[3, 3] = add(%w, %n)
          %1: f32[2, 3] = matmul(%h, {factor}) {{transpose_a=False, transpose_b=True}}
          %2: f32[2, 3] = matmul(%1, {factor}) {{transpose_a=False, transpose_b=True}}
          return %2
        }}
      return %0
    }}"""


def test_the_copy_is_made_once() -> None:
    graph = graph_of(loop())
    assert lay_out_factors(graph)
    verify(graph)
    eliminate_dead_code(graph)
    before, _, inside = text_of(graph).partition("while(")
    assert before.count("transpose(%w) {perm=(1, 0)}") == 1
    assert "transpose_b=True" not in inside
    assert not lay_out_factors(graph)


def test_factors_that_the_loop_computes_stay() -> None:
    check_unchanged(lay_out_factors, loop("%v"))


def test_results_have_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    w, h = (td.constant(rng.standard_normal(s), td.float32) for s in ((40, 40), (5, 40)))

    def f(h, w):
        for _ in td.range(3):
            h = td.tanh(td.matmul(h, w, transpose_b=True))
        return h

    from treadle.graph import passes

    got = td.function(f)(h, w).numpy()
    with passes.disabled("transposed_factors"):
        want = td.function(f)(h, w).numpy()
    assert got.tobytes() == want.tobytes()
