"""Right factors of products in loops are laid out in panels before the loops."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import graph_of, text_of
from treadle.core.switches import disabled
from treadle.graph.verifier import verify
from treadle.ops.linalg.panels import MATMUL_PANELS, PANELS
from treadle.ops.registry import run
from treadle.runtime.cpu.target import host
from treadle.runtime.passes.factor_panels import lay_out_panels
from treadle.runtime.schedule.facts import Facts


class FourColumns(Facts):
    """A machine that reads all factors in panels of four columns, and was asked for these."""

    def __init__(self):
        super().__init__(host().tuning)
        self.times = []

    def panel_width(self, node, times):
        self.times.append(times)
        return 4


PARAMS = "%h: f32[2, 6], %w: f32[6, 6], %n: f32[]"
CONDITION = f"""condition({PARAMS}) {{
          %s: f32[] = reduce_sum(%h) {{axis=(0, 1), keepdims=False}}
          %t: bool[] = less(%s, %n)
          return %t
        }}"""
PRODUCTS = """%1: f32[2, 6] = matmul(%h, FACTOR) {transpose_a=False, transpose_b=False}
          %2: f32[2, 6] = matmul(%1, FACTOR) {transpose_a=False, transpose_b=False}
          return %2"""


def loop(inside, name="%0"):
    return f"""{name}: f32[2, 6] = while(%h, %w, %n)
        {CONDITION}
        body({PARAMS}) {{
          {inside}
        }}"""


def whole(text):
    return graph_of(f"({PARAMS}) {{\n{text}\nreturn %0\n}}")


def test_one_copy_for_all_products_of_a_loop():
    graph, facts = whole(loop(PRODUCTS.replace("FACTOR", "%w"))), FourColumns()
    assert lay_out_panels(graph, facts)
    verify(graph)
    before, _, inside = text_of(graph).partition("while(")
    assert before.count(": f32[2, 6, 4] = panels(%w) {width=4}") == 1
    assert inside.count("matmul_panels(") == 2 and "matmul(" not in inside
    assert facts.times == [None, None]
    assert not lay_out_panels(graph, facts)


def test_factors_that_a_loop_computes_stay():
    text = "%v: f32[6, 6] = add(%w, %n)\n          " + PRODUCTS.replace("FACTOR", "%v")
    graph = whole(loop(text))
    assert not lay_out_panels(graph, FourColumns())
    assert not lay_out_panels(whole(loop(PRODUCTS.replace("FACTOR", "%w"))), Facts(host().tuning))


def test_panels_leave_all_loops_that_do_not_change_the_factor():
    inner = loop(PRODUCTS.replace("FACTOR", "%w"), "%3") + "\n          return %3"
    graph = whole(loop(inner))
    assert lay_out_panels(graph, FourColumns())
    verify(graph)
    before, _, inside = text_of(graph).partition("while(")
    assert before.count("panels(") == 1
    assert inside.count(" = matmul_panels(") == 2 and " = panels(" not in inside


def numbers(*shape, dtype):
    drawn = np.random.default_rng(0).standard_normal(shape) * 9.0
    return drawn.astype(dtype) if np.dtype(dtype).kind in "iu" else (drawn / 30).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("n", [3, 16, 40, 130])
@pytest.mark.parametrize("rows", [(1,), (5,), (33,), (100,), (3, 7)])
def test_results_have_the_same_bits(rows, n, dtype):
    """The last panel may be narrower than the others, and products have any number of rows."""
    check_bits(numbers(*rows, n, dtype=dtype), numbers(n, n, dtype=dtype))


def test_sums_of_several_blocks_of_k_have_the_same_bits():
    check_bits(numbers(6, 1100, dtype=np.float32), numbers(1100, 1100, dtype=np.float32))


def check_bits(h, w):
    def f(h, w):
        total = h
        for _ in td.range(300):
            h = td.clip_by_value(td.matmul(h, w), -2, 2)
            total = total + h
        return total

    got = td.function(f)
    assert "matmul_panels(" in td.inspect.stages(got, h, w)["schedule"]
    with disabled("factor_panels"):
        plain = td.function(f)
        assert "matmul_panels(" not in td.inspect.stages(plain, h, w)["schedule"]
        want = plain(h, w).numpy()
    assert got(h, w).numpy().tobytes() == want.tobytes()


def test_a_copy_must_pay():
    def few(h, w):
        for _ in td.range(3):
            h = td.matmul(h, w)
        return h

    for rows, pays in ((1, False), (200, True)):
        h, w = numbers(rows, 40, dtype=np.float32), numbers(40, 40, dtype=np.float32)
        schedule = td.inspect.stages(td.function(few), h, w)["schedule"]
        assert ("matmul_panels(" in schedule) == pays


def test_factors_of_open_sizes_stay():
    def f(h, w):
        for _ in td.range(60):
            h = td.matmul(h, w)
        return h

    specs = td.TensorSpec([None, 8]), td.TensorSpec([8, 8])
    assert "matmul_panels(" in td.inspect.stages(td.function(f), *specs)["schedule"]
    specs = td.TensorSpec([4, None]), td.TensorSpec([None, None])
    assert "matmul_panels(" not in td.inspect.stages(td.function(f), *specs)["schedule"]


@pytest.mark.parametrize("n", [1, 7, 8, 20])
def test_the_ops_compute_what_numpy_does(n):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 9)), rng.standard_normal((9, n))
    width = host().tuning.vector_bytes // 8

    def f(a, b):
        panels = run(PANELS, b, width=width)
        return panels, run(MATMUL_PANELS, a, panels, columns=n)

    native, eager = td.function(f)(a, b), f(td.constant(a), td.constant(b))
    np.testing.assert_array_equal(native[0], eager[0])
    assert native[0].shape == (-(-n // width), 9, width)
    for found in (native[1], eager[1]):
        np.testing.assert_allclose(found, a @ b, rtol=1e-13, atol=1e-13)
