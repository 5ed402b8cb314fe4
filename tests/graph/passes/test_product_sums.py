"""Sums over rows of products."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged, graph_of, text_of
from treadle.graph.passes.product_sums import add_rows_first
from treadle.graph.verifier import verify
from treadle.runtime import interpreter


def pooled(
    a: str = "8, 5, 2", b: str = "2, 3", out: str = "8, 5, 3", terms: str = "", axis: str = "1,",
    result: str = "8, 3", op: str = "mean", value: str = "%m", dtype: str = "f32",
    flags: str = "transpose_a=False, transpose_b=False", params: str = "", returned: str = "%0",
) -> str:  # fmt: skip
    text = f"""(%a: f32[{a}], %b: f32[{b}]{params}) {{
      %m: f32[{out}] = matmul(%a, %b) {{{flags}}}
      {terms}
      %0: f32[{result}] = reduce_{op}({value}) {{axis=({axis}), keepdims=False}}
      return {returned}
    }}"""
    return text.replace("f32", dtype)


RESIDUAL = {
    "params": ", %x: f32[8, 5, 3], %c: f32[3]",
    "terms": "%s: f32[8, 5, 3] = add(%x, %m)\n      %t: f32[8, 5, 3] = subtract(%s, %c)",
    "value": "%t",
}


def results(text: str) -> tuple[np.ndarray, np.ndarray, str]:
    """What the graph gives before and after the pass, and its text afterwards."""
    before, graph = graph_of(text), graph_of(text)
    assert add_rows_first(graph)
    verify(graph)
    rng = np.random.default_rng(0)
    inputs = [
        td.constant(rng.standard_normal(p.spec.dims).astype(p.spec.dtype.np_dtype))
        for p in graph.params
    ]
    wanted, found = (np.asarray(interpreter.run(g, inputs)[0]) for g in (before, graph))
    return wanted, found, text_of(graph)


def test_the_mean_of_a_product() -> None:
    check(
        add_rows_first,
        pooled(),
        """(%a: f32[8, 5, 2], %b: f32[2, 3]) {
          %0: f32[8, 1, 2] = reduce_mean(%a) {axis=(1,), keepdims=True}
          %1: f32[8, 1, 3] = matmul(%0, %b) {transpose_a=False, transpose_b=False}
          %2: f32[8, 3] = reshape(%1) {shape=(8, 3)}
          return %2
        }""",
    )


def test_the_mean_of_a_sum_with_a_residual_and_a_bias() -> None:
    check(
        add_rows_first,
        pooled(**RESIDUAL),
        """(%a: f32[8, 5, 2], %b: f32[2, 3], %x: f32[8, 5, 3], %c: f32[3]) {
          %0: f32[8, 1, 3] = reduce_mean(%x) {axis=(1,), keepdims=True}
          %1: f32[8, 1, 2] = reduce_mean(%a) {axis=(1,), keepdims=True}
          %2: f32[8, 1, 3] = matmul(%1, %b) {transpose_a=False, transpose_b=False}
          %3: f32[8, 1, 3] = add(%0, %2)
          %4: f32[8, 1, 3] = subtract(%3, %c)
          %5: f32[8, 3] = reshape(%4) {shape=(8, 3)}
          return %5
        }""",
    )


CASES = {
    "rows": {},
    "all rows": {"axis": "0, 1", "result": "3"},
    "first rows": {"axis": "0,", "result": "5, 3"},
    "batch": {"b": "8, 2, 3"},
    "transposed": {"b": "3, 2", "flags": "transpose_a=False, transpose_b=True"},
    "matrix": {"a": "40, 2", "out": "40, 3", "axis": "0,", "result": "3"},
    "residual": RESIDUAL,
    "residual, all rows": {**RESIDUAL, "axis": "0, 1", "result": "3"},
    "repeated term": {
        "params": ", %x: f32[1, 5, 3]",
        "terms": "%s: f32[8, 5, 3] = add(%m, %x)",
        "value": "%s",
        "axis": "0, 1",
        "result": "3",
    },
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sums_and_means(case: dict[str, str], op: str, dtype: str) -> None:
    wanted, found, text = results(pooled(**case, op=op, dtype=dtype))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert text.index(f"reduce_{op}") < text.rindex("matmul(")


@pytest.mark.parametrize(
    "text",
    [
        pooled(dtype="i32"),
        pooled(dtype="bf16"),
        pooled(axis="2,", result="8, 5"),
        pooled(axis="1, 2", result="8"),
        pooled(b="8, 2, 3", axis="0,", result="5, 3"),  # matrices differ
        pooled(b="8, 2, 3", axis="0, 1", result="3"),
        pooled(a="8, 2, 5", flags="transpose_a=True, transpose_b=False"),
        pooled(a="8, 3, 2", out="8, 3, 3"),  # few rows
        pooled(returned="%0, %m"),
        pooled(op="max"),
        pooled(**{**RESIDUAL, "returned": "%0, %s"}),
        pooled(**{**RESIDUAL, "terms": RESIDUAL["terms"].replace("add", "multiply")}),
    ],
)
def test_what_stays(text: str) -> None:
    check_unchanged(add_rows_first, text)


def test_a_training_step_of_a_model_that_averages_over_time() -> None:
    rng = np.random.default_rng(0)
    x, w1, w2, w3 = (
        rng.standard_normal(s).astype(np.float32) for s in ((4, 12, 8), (8, 16), (16, 8), (8, 3))
    )

    def step(x: td.Tensor, ws: list[td.Tensor]) -> list[td.Tensor]:
        with td.GradientTape() as tape:
            tape.watch(ws)
            hidden = td.tanh(x @ ws[0])
            pooled = td.reduce_mean(x + hidden @ ws[1], axis=1)
            loss = td.reduce_mean((pooled @ ws[2]) ** 2)
        return [loss, *tape.gradient(loss, ws)]

    arguments = td.constant(x), [td.constant(w) for w in (w1, w2, w3)]
    compiled = td.function(step)
    for found, wanted in zip(compiled(*arguments), step(*arguments), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-6)
    stages = compiled.get_concrete_function(*arguments).executable.stages
    assert "4, 12, 8] = matmul" not in stages["graph"]  # neither the product nor its gradients
    assert "transpose_a=True" in stages["graph"]
