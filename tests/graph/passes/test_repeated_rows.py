"""Products that contract repeated rows, sums of repeated arrays."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged, graph_of, text_of
from treadle.graph.passes.repeated_rows import add_repeats_first
from treadle.graph.verifier import verify
from treadle.runtime import interpreter


def product(
    source: str = "8, 1, 3", dims: str = "8, 5, 3", rows: str = "40", flags: str = "True, False",
    dtype: str = "f32", swapped: bool = False,
) -> str:  # fmt: skip
    """A^T R with R a reshaped broadcast."""
    ta, tb = flags.split(", ")
    operands, out = ("%r, %a", "3, 2") if swapped else ("%a, %r", "2, 3")
    return f"""(%a: {dtype}[{rows}, 2], %g: {dtype}[{source}]) {{
      %b: {dtype}[{dims}] = broadcast_to(%g) {{shape=({dims})}}
      %r: {dtype}[{rows}, 3] = reshape(%b) {{shape=({rows}, 3)}}
      %0: {dtype}[{out}] = matmul({operands}) {{transpose_a={ta}, transpose_b={tb}}}
      return %0
    }}"""


def results(text: str) -> tuple[list[np.ndarray], str]:
    """What the graph gives before and after the pass, and its text afterwards."""
    before, graph = graph_of(text), graph_of(text)
    assert add_repeats_first(graph)
    verify(graph)
    rng = np.random.default_rng(0)
    inputs = [
        td.constant(rng.standard_normal(p.spec.dims).astype(p.spec.dtype.np_dtype))
        for p in graph.params
    ]
    found = [np.asarray(interpreter.run(g, inputs)[0]) for g in (before, graph)]
    return found, text_of(graph)


def test_rows_that_meet_the_same_row_are_added_up_first() -> None:
    check(
        add_repeats_first,
        product(),
        """(%a: f32[40, 2], %g: f32[8, 1, 3]) {
          %0: f32[8, 5, 2] = reshape(%a) {shape=(8, 5, 2)}
          %1: f32[8, 1, 2] = reduce_sum(%0) {axis=(1,), keepdims=True}
          %2: f32[8, 3] = reshape(%g) {shape=(8, 3)}
          %3: f32[8, 2] = reshape(%1) {shape=(8, 2)}
          %4: f32[2, 3] = matmul(%3, %2) {transpose_a=True, transpose_b=False}
          return %4
        }""",
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("source", "dims"),
    [
        ("8, 1, 3", "8, 5, 3"),
        ("1, 5, 3", "8, 5, 3"),
        ("1, 1, 3", "8, 5, 3"),
        ("5, 3", "8, 5, 3"),
        ("3", "40, 3"),
        ("1, 3", "40, 3"),
        ("2, 1, 5, 1, 3", "2, 2, 5, 2, 3"),
    ],
)
def test_products_of_repeated_rows(source: str, dims: str, swapped: bool, dtype: str) -> None:
    (wanted, found), text = results(product(source, dims, swapped=swapped, dtype=dtype))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert "reduce_sum" in text


@pytest.mark.parametrize(
    "text",
    [
        product(source="8, 5, 1"),  # columns are repeated
        product(source="8, 5, 3"),  # nothing is
        product(dtype="i32"),
        product(dtype="bf16"),
    ],
)
def test_what_stays(text: str) -> None:
    check_unchanged(add_repeats_first, text)


def test_no_rows_at_all_add_up_to_zeros() -> None:
    (wanted, found), _ = results(product(source="0, 1, 3", dims="0, 5, 3", rows="0"))
    np.testing.assert_array_equal(found, wanted)


def test_other_products_stay() -> None:
    square = """(%a: f32[6, 6], %g: f32[6]) {
      %b: f32[6, 6] = broadcast_to(%g) {shape=(6, 6)}
      %0: f32[6, 6] = matmul(%a, %b) {transpose_a=TA, transpose_b=TB}
      return %0
    }"""
    for flags in (("False", "False"), ("True", "True"), ("False", "True")):
        check_unchanged(add_repeats_first, square.replace("TA", flags[0]).replace("TB", flags[1]))


def summed(axis: str, out: str, keepdims: bool = False, dtype: str = "f32") -> str:
    return f"""(%g: {dtype}[8, 1, 3]) {{
      %b: {dtype}[8, 5, 3] = broadcast_to(%g) {{shape=(8, 5, 3)}}
      %0: {dtype}[{out}] = reduce_sum(%b) {{axis=({axis}), keepdims={keepdims}}}
      return %0
    }}"""


def test_a_sum_of_copies_is_a_multiple() -> None:
    check(
        add_repeats_first,
        summed("0, 1", "3"),
        """(%g: f32[8, 1, 3]) {
          %0: f32[8, 1, 3] = reshape(%g) {shape=(8, 1, 3)}
          %1: f32[] = const() {value=f32[](5.0)}
          %2: f32[8, 1, 3] = multiply(%0, %1)
          %3: f32[3] = reduce_sum(%2) {axis=(0, 1), keepdims=False}
          return %3
        }""",
    )


@pytest.mark.parametrize(
    ("axis", "out", "keepdims"),
    [("1,", "8, 3", False), ("1,", "8, 1, 3", True), ("0, 1, 2", "", False), ("1, 2", "8", False)],
)
def test_sums_of_copies(axis: str, out: str, keepdims: bool) -> None:
    (wanted, found), _ = results(summed(axis, out, keepdims))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "text", [summed("0,", "5, 3"), summed("2,", "8, 5"), summed("1,", "8, 3", dtype="i32")]
)
def test_sums_that_stay(text: str) -> None:
    check_unchanged(add_repeats_first, text)
