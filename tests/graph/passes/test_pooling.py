"""Masks behind the gradient of max pooling become part of the winners."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check_unchanged, graph_of, text_of
from treadle.graph.passes import disabled
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.passes.pooling import mask_winners
from treadle.graph.verifier import verify

# window, strides, padding
CASES = [
    ((2, 2), (2, 2), "VALID"),
    ((2, 2), (2, 2), "SAME"),
    ((3, 3), (2, 2), "SAME"),
    ((3, 2), (1, 1), "SAME"),
    ((2, 2), (3, 3), "VALID"),
    ((4, 4), (1, 2), ((1, 0), (0, 1))),
]
DTYPES = [td.float32, td.float64, td.float16, td.bfloat16]


def images(dtype: td.DType, count: int = 40) -> td.Tensor:
    """Images with many ties, negative numbers, NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(count)
    x = rng.integers(-2, 3, (2, 7, 8, count)).astype(np.float32)
    for value in (np.nan, np.inf, -np.inf, -0.0):
        x[rng.random(x.shape) < 0.04] = value
    return td.cast(x, dtype)


def step(case, activation):
    window, strides, padding = case
    pads = padding if isinstance(padding, str) else [[0, 0], *padding, [0, 0]]

    def gradient(x, bias):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.nn.max_pool2d(activation(x + bias), window, strides, pads)
            loss = td.reduce_sum(y * td.cast(td.range(y.shape[-1]) + 1, y.dtype))
        return y, tape.gradient(loss, x)

    return gradient


def same(found, wanted) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(
            np.asarray(td.cast(a, td.float64)), np.asarray(td.cast(b, td.float64))
        )


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("activation", [td.nn.relu, td.nn.relu6], ids=["relu", "relu6"])
def test_compiled_gradients_are_those_of_eager_ops(case, dtype, activation) -> None:
    x, bias = images(dtype), td.cast(np.linspace(-1, 1, 40), dtype)
    gradient = step(case, activation)
    same(td.function(gradient)(x, bias), gradient(x, bias))


@pytest.mark.parametrize("activation", [td.nn.relu, td.nn.relu6], ids=["relu", "relu6"])
def test_the_image_is_read_once_and_its_gradient_reads_bytes(activation) -> None:
    x, bias = images(td.float32), td.zeros([40])
    compiled = td.function(step(CASES[0], activation))
    executable = compiled.get_concrete_function(x, bias).executable
    kernels = [k for k in executable.stages["kernels"].split("\n\n") if "7, 8, 40]" in k]
    assert [("x: f32[2, 7, 8, 40]" in k, "u8[2, 3, 4, 40]" in k) for k in kernels] == [
        (True, True),
        (False, True),
    ]


def test_the_pass_can_be_switched_off() -> None:
    x, bias = images(td.float32), td.zeros([40])
    gradient = step(CASES[2], td.nn.relu)
    with disabled("pooling"):
        compiled = td.function(gradient)
        executable = compiled.get_concrete_function(x, bias).executable
        same(compiled(x, bias), gradient(x, bias))
    assert "max_pool_masked_index" not in executable.stages["graph"]


ATTRS = "window=(2, 2), strides=(2, 2), padding='VALID'"
BODY = f"""(%x: f32[2, 4, 4, 3], %d: f32[2, 2, 2, 3]) {{
  %y: f32[2, 4, 4, 3] = relu(%x)
  %w: u8[2, 2, 2, 3] = max_pool_index(%y) {{{ATTRS}}}
  %s: f32[2, 4, 4, 3] = max_pool_scatter(%d, %w) {{image=(4, 4), {ATTRS}}}
  %r: f32[2, 4, 4, 3] = relu_grad(%s, %y)
  return %r
}}"""


def test_the_mask_moves_into_the_winners() -> None:
    graph = graph_of(BODY)
    assert mask_winners(graph)
    eliminate_dead_code(graph)
    verify(graph)
    text = text_of(graph)
    assert "max_pool_masked_index(%y, " in text
    assert "relu_grad" not in text
    assert "max_pool_index" not in text
    assert not mask_winners(graph)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return %r", "return %r, %s"),  # the unmasked gradient is wanted too
        ("relu_grad(%s, %y)", "relu_grad(%s, %x)"),  # another image: it would have to be kept
        ("window=(2, 2), strides=(2, 2)", "window=(6, 6), strides=(2, 2)"),  # too large
        ("relu_grad(%s, %y)", "multiply(%s, %y)"),  # no mask
    ],
)
def test_what_stays(old: str, new: str) -> None:
    text = BODY.replace(old, new)
    if "6, 6" in new:
        text = text.replace("4, 4", "8, 8")
    check_unchanged(mask_winners, text)


def test_other_values_than_zero_are_no_mask() -> None:
    for other, moved in ((0.0, True), (-0.0, False), (1.0, False)):
        graph = graph_of(f"""(%y: f32[2, 4, 4, 3], %d: f32[2, 2, 2, 3]) {{
          %w: u8[2, 2, 2, 3] = max_pool_index(%y) {{{ATTRS}}}
          %s: f32[2, 4, 4, 3] = max_pool_scatter(%d, %w) {{image=(4, 4), {ATTRS}}}
          %o: f32[] = const() {{value=f32[]({other})}}
          %m: bool[2, 4, 4, 3] = less(%y, %o)
          %r: f32[2, 4, 4, 3] = where(%m, %s, %o)
          return %r
        }}""")
        assert mask_winners(graph) is moved
