"""What is computed from the columns of products that are split into groups."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged
from treadle.graph.passes.joined_columns import join_columns

NORMAL = "{transpose_a=False, transpose_b=False}"


def test_nodes_move_before_the_split() -> None:
    check(
        join_columns,
        f"""(%x: f32[8, 3], %w: f32[3, 10], %b: f32[2, 5], %s: f32[]) {{
          %0: f32[8, 10] = matmul(%x, %w) {NORMAL}
          %1: f32[8, 2, 5] = reshape(%0) {{shape=(8, 2, 5)}}
          %2: f32[8, 2, 5] = add(%1, %b)
          %3: f32[8, 2, 5] = multiply(%s, %2)
          return %3
        }}""",
        f"""(%x: f32[8, 3], %w: f32[3, 10], %b: f32[2, 5], %s: f32[]) {{
          %0: f32[8, 10] = matmul(%x, %w) {NORMAL}
          %4: f32[10] = reshape(%b) {{shape=(10,)}}
          %5: f32[8, 10] = add(%0, %4)
          %7: f32[8, 10] = multiply(%s, %5)
          %8: f32[8, 2, 5] = reshape(%7) {{shape=(8, 2, 5)}}
          return %8
        }}""",
    )


@pytest.mark.parametrize(
    ("dims", "other"),
    [
        ("8, 2, 5", "8, 2, 5"), ("8, 2, 5", "5"), ("8, 2, 5", "2, 1"), ("4, 2, 10", "10"),
        ("4, 2, 2, 5", "2, 5"), ("2, 5, 8", "5, 8"),
    ],
)  # fmt: skip
def test_what_stays(dims: str, other: str) -> None:
    other = f"{other}," if "," not in other else other
    text = f"""(%x: f32[8, 3], %w: f32[3, 10], %b: f32[{other}]) {{
      %0: f32[8, 10] = matmul(%x, %w) {NORMAL}
      %1: f32[{dims}] = reshape(%0) {{shape=({dims})}}
      %2: f32[{dims}] = add(%1, %b)
      return %2
    }}"""
    check_unchanged(join_columns, text.replace(",]", "]"))


def test_a_gradient_that_is_scaled_stays() -> None:
    check_unchanged(
        join_columns,
        f"""(%x: f32[8, 3], %w: f32[3, 10], %s: f32[]) {{
          %0: f32[8, 10] = matmul(%x, %w) {NORMAL}
          %1: f32[8, 2, 5] = reshape(%0) {{shape=(8, 2, 5)}}
          %2: f32[8, 2, 5] = multiply(%1, %s)
          return %2
        }}""",
    )


def test_heads_of_attention_have_epilogues() -> None:
    random = np.random.default_rng(0)
    x, w = random.standard_normal((4, 6, 8), np.float32), random.standard_normal((8, 2, 4), "f")
    b = random.standard_normal((2, 4), np.float32)

    def heads(x, w, b):  # type: ignore[no-untyped-def]
        return td.transpose((td.einsum("btd,dhk->bthk", x, w) + b) * 0.5, [0, 2, 1, 3])

    expected = np.transpose((np.einsum("btd,dhk->bthk", x, w) + b) * 0.5, [0, 2, 1, 3])
    for spec in (td.TensorSpec([4, 6, 8]), td.TensorSpec([None, None, 8])):
        compiled = td.function(heads)
        found = compiled(x, w, b)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        schedule = td.inspect.stages(compiled, spec, w, b)["schedule"]
        assert schedule.count("with blocked kernel") == 1


def test_gradients_are_as_before() -> None:
    layer = td.keras.layers.MultiHeadAttention(2, 4)
    x = td.constant(np.random.default_rng(1).standard_normal((2, 3, 8)), td.float32)
    layer(x, x)

    def gradients(x):  # type: ignore[no-untyped-def]
        with td.GradientTape() as tape:
            tape.watch(x)
            loss = td.reduce_sum(td.square(layer(x, x)))
        return tape.gradient(loss, [x, *layer.trainable_variables])

    for found, eager in zip(td.function(gradients)(x), gradients(x), strict=True):
        np.testing.assert_allclose(found, eager, rtol=2e-4, atol=2e-5)
