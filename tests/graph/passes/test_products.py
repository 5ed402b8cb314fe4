"""Products of narrow types and of mixed batches."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes.products import prepare_products
from treadle.graph.verifier import verify
from treadle.runtime import interpreter


def product(dtype: str, left: str, right: str, out: str, transpose_a: bool = False) -> str:
    attrs = f"transpose_a={transpose_a}, transpose_b=False"
    return f"""(%x: {dtype}[{left}], %y: {dtype}[{right}]) {{
      %0: {dtype}[{out}] = matmul(%x, %y) {{{attrs}}}
      return %0
    }}"""


@pytest.mark.parametrize(
    ("dtype", "wide"), [("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("u16", "u32")]
)
def test_narrow_types_are_multiplied_as_wider_ones(dtype: str, wide: str) -> None:
    graph = graph_of(product(dtype, "2, 3", "3, 4", "2, 4"))
    assert prepare_products(graph)
    verify(graph)
    assert f"{wide}[2, 4] = matmul(" in text_of(graph)
    assert text_of(graph).count("cast(") == 3


def test_both_operands_get_the_matrices_they_lack() -> None:
    graph = graph_of(product("f32", "4, 1, 2, 3", "5, 3, 6", "4, 5, 2, 6"))
    assert prepare_products(graph)
    verify(graph)
    assert text_of(graph).count("broadcast_to(") == 2
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 1, 2, 3)).astype(np.float32)
    y = rng.standard_normal((5, 3, 6)).astype(np.float32)
    (found,) = interpreter.run(graph, [td.constant(x), td.constant(y)])
    np.testing.assert_allclose(np.asarray(found), x @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        product("f32", "2, 3", "3, 4", "2, 4"),
        product("f32", "5, 2, 3", "5, 3, 4", "5, 2, 4"),
        product("f32", "5, 2, 3", "3, 4", "5, 2, 4"),
        product("f32", "2, 3", "5, 3, 4", "5, 2, 4"),
        product("f32", "5, 7, 2, 3", "5, 1, 3, 4", "5, 7, 2, 4"),  # 5 matrices of 14 rows
        product("f32", "1, 1, 2, 3", "1, 1, 3, 4", "1, 1, 2, 4"),
    ],
)
def test_what_the_library_multiplies_as_it_is(text: str) -> None:
    check_unchanged(prepare_products, text)


def test_rows_of_a_transposed_operand_do_not_join() -> None:
    graph = graph_of(product("f32", "5, 7, 3, 2", "5, 1, 3, 4", "5, 7, 2, 4", transpose_a=True))
    assert prepare_products(graph)
    assert text_of(graph).count("broadcast_to(") == 1
