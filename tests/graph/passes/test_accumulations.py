"""Sums of products taken out of loops."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes.accumulations import gather_accumulations
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.verifier import verify


def loop(
    trips: int = 5,
    factor: str = "%a: f32[2, 3] = index(%x, %i) {axis=0}",
    term: str = "matmul(%a, %h) {transpose_a=True, transpose_b=False}",
    result: str = "%h2, %s2",
    dtype: str = "f32",
) -> str:
    """Sums x[i]^T h_i and carries h."""
    params = (
        f"%i: i32[], %h: {dtype}[2, 4], %s: {dtype}[3, 4], %n: i32[], %x: {dtype}[5, 2, 3], "
        f"%w: {dtype}[4, 4]"
    )
    text = f"""(%x: f32[5, 2, 3], %w: f32[4, 4], %h: f32[2, 4], %s: f32[3, 4]) {{
      %z: i32[] = const() {{value=i32[](0)}}
      %n: i32[] = const() {{value=i32[]({trips})}}
      %0: i32[], %1: f32[2, 4], %2: f32[3, 4] = while(%z, %h, %s, %n, %x, %w)
        condition({params}) {{
          %t: bool[] = less(%i, %n)
          return %t
        }}
        body({params}) {{
          %one: i32[] = const() {{value=i32[](1)}}
          %j: i32[] = add(%i, %one)
          {factor}
          %m: f32[3, 4] = {term}
          %s2: f32[3, 4] = add(%s, %m)
          %h2: f32[2, 4] = matmul(%h, %w) {{transpose_a=False, transpose_b=False}}
          return %j, {result}
        }}
      return %1, %2
    }}"""
    return text.replace("f32", dtype)


def test_one_product_after_the_loop() -> None:
    graph = graph_of(loop())
    assert gather_accumulations(graph)
    verify(graph)
    eliminate_dead_code(graph)
    lines = text_of(graph).splitlines()
    inside = "\n".join(line for line in lines if line.startswith("      "))
    after = "\n".join(line for line in lines if not line.startswith("     "))
    assert "matmul" in inside and "transpose_a=True" not in inside
    assert "list_set" in inside and "index" not in inside
    assert "list_stack" in after
    assert "f32[3, 4] = matmul(" in after and "transpose_a=True" in after
    assert not gather_accumulations(graph)


READ_TWICE = (
    loop()
    .replace(
        "%h2: f32[2, 4] = matmul(%h, %w)",
        "%q: f32[3, 4] = add(%s, %s)\n          %h2: f32[2, 4] = matmul(%h, %w)",
    )
    .replace("return %j, %h2, %s2", "return %j, %h2, %q")
)
INVARIANT_ROWS = loop(
    term="matmul(%b, %w) {transpose_a=False, transpose_b=False}",
    factor="%c: f32[] = const() {value=f32[](1.0)}\n          %b: f32[3, 4] = fill(%c) "
    "{shape=(3, 4)}",
)


@pytest.mark.parametrize(
    "text", [loop(trips=3), loop(dtype="i32"), loop(result="%h2, %m"), READ_TWICE, INVARIANT_ROWS]
)
def test_what_stays(text: str) -> None:
    check_unchanged(gather_accumulations, text)


def test_slices_that_do_not_cover_their_array_are_a_part_of_it() -> None:
    graph = graph_of(loop(trips=4))
    assert gather_accumulations(graph)
    verify(graph)
    text = text_of(graph)
    assert text.count("list_set(") == 1
    assert "strided_slice(%x) {begin=(0, 0, 0), size=(4, 2, 3)" in text


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_gradients_where_a_loop_leaves_out_the_first_slices(first: int, backwards: bool) -> None:
    rng = np.random.default_rng(0)
    x, w = td.constant(rng.standard_normal((9, 3, 4))), td.constant(rng.standard_normal((4, 4)))

    def gradient(w):
        with td.GradientTape() as tape:
            tape.watch(w)
            h = td.zeros((3, 4), td.float64)
            for t in td.range(first, 9):
                h = td.tanh(x[8 - t + first if backwards else t] @ w + 0.5 * h)
            value = td.reduce_sum(h * h)
        return value, tape.gradient(value, w)

    expected = gradient(w)
    for got, want in zip(td.function(gradient)(w), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10, atol=1e-10)


def test_sums_in_several_places_of_an_array() -> None:
    """The gradient of an array whose parts the loop uses: no iteration adds up rows."""
    rng = np.random.default_rng(0)
    w, b = td.constant(rng.standard_normal((4, 4)) / 2), td.constant(rng.standard_normal((3, 4)))

    def gradient(w, b):
        with td.GradientTape() as tape:
            tape.watch([w, b])
            h = td.ones((3, 4), td.float64)
            for _ in td.range(7):
                h = td.tanh(h @ w[::-1] + b[2]) * td.sigmoid(h + b[0])
            value = td.reduce_sum(h * h)
        return value, *tape.gradient(value, [w, b])

    expected, compiled = gradient(w, b), td.function(gradient)
    for got, want in zip(compiled(w, b), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10, atol=1e-10)
    text = compiled.get_concrete_function(w, b).executable.stages["graph"]
    inside = [line for line in text.splitlines() if line.startswith("      ")]
    assert sum(" matmul(" in line for line in inside) == 2
    assert not any("reduce_sum(" in line or "strided_slice_grad(" in line for line in inside)


def recurrent(steps: int, axis: int, bias: bool):
    """The gradients of a recurrent network's parameters."""
    rng = np.random.default_rng(0)
    shape = (steps, 3, 4) if axis == 0 else (3, steps, 4)
    x = td.constant(rng.standard_normal(shape), td.float64)
    w, u = (td.constant(rng.standard_normal((4, 4)) / 2, td.float64) for _ in range(2))
    b = td.constant(rng.standard_normal(4), td.float64)

    def loss(w, u, b):
        h = td.zeros((3, 4), td.float64)
        total = td.constant(0.0, td.float64)
        for t in td.range(steps):
            slice_ = x[t] if axis == 0 else x[:, t]
            h = td.tanh(slice_ @ w + h @ u + (b if bias else 0.0))
            total += td.reduce_sum(h * h * td.cast(t + 1, td.float64))
        return total

    def gradient(w, u, b):
        with td.GradientTape() as tape:
            tape.watch([w, u, b])
            value = loss(w, u, b)
        return value, *tape.gradient(value, [w, u, b] if bias else [w, u])

    return gradient, (w, u, b)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("steps", [1, 4, 9])
def test_gradients_of_a_recurrent_network(steps: int, axis: int, bias: bool) -> None:
    gradient, arguments = recurrent(steps, axis, bias)
    expected = gradient(*arguments)  # eager
    compiled = td.function(gradient)
    for got, want in zip(compiled(*arguments), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10, atol=1e-10)
    if steps < 4:
        return
    text = compiled.get_concrete_function(*arguments).executable.stages["graph"]
    inside = [line for line in text.splitlines() if line.startswith("      ")]
    assert sum(" matmul(" in line for line in inside) == 2  # a step forward, a step back
    assert not any("reduce_sum(" in line and "axis=(0,)" in line for line in inside)


def test_a_list_of_unknown_length_is_not_stacked() -> None:
    @td.function
    def f(x, n):
        w = td.ones((4, 4))
        with td.GradientTape() as tape:
            tape.watch(w)
            h = x
            for _ in td.range(n):
                h = td.tanh(h @ w)
            y = td.reduce_sum(h)
        return tape.gradient(y, w)

    x = td.constant(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    with td.GradientTape() as tape:
        w = td.ones((4, 4))
        tape.watch(w)
        h = x
        for _ in range(6):
            h = td.tanh(h @ w)
        y = td.reduce_sum(h)
    np.testing.assert_allclose(
        f(x, td.constant(6)).numpy(), tape.gradient(y, w).numpy(), rtol=1e-4, atol=1e-6
    )
