"""Products of flattened rows."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged, graph_of
from treadle.graph.passes.unflatten import unflatten_rows
from treadle.graph.verifier import verify
from treadle.runtime import interpreter

NORMAL = "transpose_a=False, transpose_b=False"
FLAT = """(%a: f32[40, 2], %b: f32[2, 3]) {{
  %0: f32[40, 3] = matmul(%a, %b) {{{flags}}}
  %1: f32[{dims}] = reshape(%0) {{shape=({dims})}}
  return %1{more}
}}"""


def test_the_reshape_moves_to_the_other_side() -> None:
    check(
        unflatten_rows,
        FLAT.format(dims="8, 5, 3", flags=NORMAL, more=""),
        f"""(%a: f32[40, 2], %b: f32[2, 3]) {{
          %2: f32[8, 5, 2] = reshape(%a) {{shape=(8, 5, 2)}}
          %3: f32[8, 5, 3] = matmul(%2, %b) {{{NORMAL}}}
          return %3
        }}""",
    )


@pytest.mark.parametrize(
    ("dims", "more"),
    [("8, 15", ""), ("8, 3, 5", ""), ("120,", ""), ("8, 5, 3", ", %0"), ("40, 3", "")],
)
def test_what_stays(dims: str, more: str) -> None:
    text = FLAT.format(dims=dims, flags=NORMAL, more=more)
    check_unchanged(unflatten_rows, text.replace("f32[120,]", "f32[120]"))


def test_transposed_operands() -> None:
    check_unchanged(
        unflatten_rows,
        FLAT.format(dims="8, 5, 3", flags="transpose_a=True, transpose_b=False", more="").replace(
            "%a: f32[40, 2]", "%a: f32[2, 40]"
        ),
    )
    graph = graph_of(
        FLAT.format(dims="8, 5, 3", flags="transpose_a=False, transpose_b=True", more="").replace(
            "%b: f32[2, 3]", "%b: f32[3, 2]"
        )
    )
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((40, 2), np.float32), rng.standard_normal((3, 2), np.float32)]
    assert unflatten_rows(graph)
    verify(graph)
    (found,) = interpreter.run(graph, arrays)
    np.testing.assert_allclose(found, (arrays[0] @ arrays[1].T).reshape(8, 5, 3), rtol=1e-5)


def test_a_dense_layer_over_sequences_has_an_epilogue() -> None:
    dense = td.keras.layers.Dense(6, activation="relu")
    x = td.constant(np.random.default_rng(1).standard_normal((4, 3, 5), np.float32))
    expected = dense(x)
    for spec in (x, td.TensorSpec([None, 3, 5]), td.TensorSpec([None, None, 5])):
        layer = td.function(lambda x: dense(x))
        schedule = td.inspect.stages(layer, spec)["schedule"]
        assert "reshape" not in schedule and "with blocked kernel" in schedule
        np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("equation", "weight", "blocked"),
    [("btd,df->btf", (5, 6), 1), ("bthk,hkf->btf", (2, 4, 6), 1), ("bthk,bshk->bhts", None, 1)],
)
def test_einsum_keeps_the_axes_of_rows_apart(
    equation: str, weight: tuple[int, ...] | None, blocked: int
) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4, 3, 2, 4) if "hk" in equation else (4, 3, 5), np.float32)
    w = x + 1 if weight is None else rng.standard_normal(weight, np.float32)
    layer = td.function(lambda x, w: td.nn.relu(td.einsum(equation, x, w) * 0.5))
    np.testing.assert_allclose(
        layer(x, w), np.maximum(np.einsum(equation, x, w) * 0.5, 0), rtol=1e-5, atol=1e-5
    )
    schedule = td.inspect.stages(layer, x, w)["schedule"]
    assert schedule.count("with blocked kernel") == blocked
