"""Products of bfloat16 by the instruction that multiplies pairs, where there is one."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import graph_of, text_of
from tests.runtime.cpu.test_library import check, matmul_node, node_of
from treadle.core.spec import TensorSpec
from treadle.graph.passes import disabled
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.verifier import verify
from treadle.runtime.cpu.facts import CpuFacts
from treadle.runtime.cpu.jit import Jit, jit
from treadle.runtime.cpu.library import routine_for
from treadle.runtime.cpu.library_code import library_text
from treadle.runtime.cpu.matmul.packing import packer_text
from treadle.runtime.cpu.matmul.pairs import MOST_PAIRS, multiplies_pairs
from treadle.runtime.cpu.matmul.tile_text import tile_text
from treadle.runtime.cpu.matmul.tiles import MOST_STEPS, PRODUCTS, Tile
from treadle.runtime.cpu.target import Target, baseline, host
from treadle.runtime.passes.narrow_products import narrow_products

BF16 = ml_dtypes.bfloat16
HAS_PAIRS = multiplies_pairs(host())
ZEN5 = Target(
    host().triple, "znver4",
    frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16", "avx2", "fma"}),
)  # fmt: skip


@pytest.mark.parametrize("along", ["pairrows", "paircolumns"])
@pytest.mark.parametrize("vectors", [1, 4])
def test_tiles_use_the_instruction(along: str, vectors: int) -> None:
    text = tile_text(Tile("i32", along, 6, vectors), ZEN5)
    assembly = Jit(ZEN5, jit().cache).assembly(text)
    steps = min(MOST_STEPS, -(-PRODUCTS // (6 * vectors)))  # and one for those that are left
    assert assembly.count("vdpbf16ps") == 6 * vectors * (steps + 1)
    assert "(%rsp)" not in assembly.split("vdpbf16ps")[1]  # the sums stay in registers


def test_the_routine_and_its_copies_compile_with_and_without_the_instruction() -> None:
    for target in (ZEN5, baseline(3)):
        compiler = Jit(target, jit().cache)
        assert "matmul_i32:" in compiler.assembly(library_text("matmul", "i32", target))
        for name in ("pair_panels", "pair_columns"):
            assembly = compiler.assembly(packer_text(name, "i32", target))
            assert f"{name}_i32:" in assembly


SHAPES = [
    (1, 1, 2), (5, 7, 4), (16, 16, 32), (50, 100, 784), (100, 33, 70), (300, 300, 300),
    (20, 900, 64), (1, 64, 64), (64, 1, 64), (13, 17, 2 * MOST_PAIRS), (3, 3, 2 * MOST_PAIRS + 2),
    (3, 3, 5), (0, 3, 4), (4, 5, 0),
]  # fmt: skip


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_products_are_rounded_once(m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((k, m) if ta else (m, k)).astype(BF16)
    b = rng.standard_normal((n, k) if tb else (k, n)).astype(BF16)
    run = td.function(lambda x, y: td.matmul(x, y, transpose_a=ta, transpose_b=tb), autograph=False)
    found = run(a, b)
    assert found.dtype is td.bfloat16
    exact = (a.T if ta else a).astype(np.float64) @ (b.T if tb else b).astype(np.float64)
    np.testing.assert_allclose(
        found.numpy().astype(np.float64), exact, rtol=2**-8 * 1.01, atol=2e-6 * (k + 1)
    )


@pytest.mark.skipif(not HAS_PAIRS, reason="the processor has no such instruction")
@pytest.mark.parametrize(("m", "n", "k"), [(50, 100, 784), (200, 70, 90), (1, 700, 100)])
@pytest.mark.parametrize("ta", [False, True])
def test_any_number_of_threads(m: int, n: int, k: int, ta: bool) -> None:
    a, b = (k, m) if ta else (m, k), (k, n)
    node = matmul_node(a, b, ta, False, "bfloat16")
    routine = routine_for(node)
    assert routine is not None
    assert "pair" in routine.symbol
    check(node, [a, b], tolerance=2**-7)


TEXT = """(%x: bf16[4, 6], %y: bf16[6, 2]) {
  %a: f32[4, 6] = cast(%x) {dtype=f32}
  %b: f32[6, 2] = cast(%y) {dtype=f32}
  %0: f32[4, 2] = matmul(%a, %b) {transpose_a=False, transpose_b=False}
  %1: bf16[4, 2] = cast(%0) {dtype=bf16}
  return RESULTS
}"""


def narrowed(results: str) -> str:
    graph = graph_of(TEXT.replace("RESULTS", results))
    narrow_products(graph, CpuFacts())
    verify(graph)
    eliminate_dead_code(graph)
    return text_of(graph)


def test_conversions_around_a_product_go() -> None:
    text = narrowed("%1")
    assert ("cast" in text) is not HAS_PAIRS
    assert ("bf16[4, 2] = matmul(%x, %y)" in text) is HAS_PAIRS


def test_a_product_that_is_needed_in_float32_stays() -> None:
    assert "f32[4, 2] = matmul(%a, %b)" in narrowed("%0")


def test_training_with_and_without() -> None:
    rng = np.random.default_rng(0)
    x = td.constant(rng.standard_normal((32, 64)).astype(BF16))
    w = td.constant((rng.standard_normal((64, 48)) / 8).astype(BF16))

    def gradients(x: td.Tensor, w: td.Tensor) -> Any:
        with td.GradientTape() as tape:
            tape.watch([x, w])
            loss = td.reduce_sum(td.nn.relu(td.matmul(x, w)))
        return tape.gradient(loss, [x, w])

    found = td.function(gradients, autograph=False)(x, w)
    with disabled("narrow_products"):
        expected = td.function(gradients, autograph=False)(x, w)
    for a, b in zip(found, expected, strict=True):
        wide = [t.numpy().astype(np.float32) for t in (a, b)]
        np.testing.assert_allclose(*wide, rtol=2**-7, atol=1e-3)


CONVOLUTIONS = [((3, 9, 7, 16), 24), ((2, 5, 5, 6), 2), ((4, 30, 31, 64), 40)]


def pointwise(x: Any, f: Any) -> Any:
    """A 1x1 convolution of bfloat16 and both gradients."""
    with td.GradientTape() as tape:
        tape.watch([x, f])
        y = td.nn.conv2d(x, f, 1, "SAME")
        loss = td.reduce_sum(td.cast(y, td.float32) ** 2)
    return (y, *tape.gradient(loss, [x, f]))


@pytest.mark.parametrize(("images", "channels"), CONVOLUTIONS)
def test_pointwise_convolutions_and_both_gradients(images: tuple, channels: int) -> None:
    rng = np.random.default_rng(0)
    x = td.constant(rng.standard_normal(images).astype(BF16))
    f = td.constant(rng.standard_normal((1, 1, images[-1], channels)).astype(BF16))
    found = td.function(pointwise, autograph=False)(x, f)
    with disabled("narrow_products"):
        expected = td.function(pointwise, autograph=False)(x, f)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype is td.bfloat16
        wide = [t.numpy().astype(np.float32) for t in (a, b)]
        np.testing.assert_allclose(*wide, rtol=2**-7, atol=2e-3 * np.abs(wide[1]).max())


@pytest.mark.skipif(not HAS_PAIRS, reason="the processor has no such instruction")
def test_convolutions_that_are_products_take_pairs() -> None:
    def routine(filters: tuple[int, ...], images: tuple[int, ...] = (4, 6, 6, 8)) -> Any:
        attrs = {"strides": (1, 1), "padding": "SAME", "dilations": (1, 1)}
        specs = [TensorSpec(images, "bfloat16"), TensorSpec(filters, "bfloat16")]
        return routine_for(node_of("conv2d", specs, attrs))

    found = routine((1, 1, 8, 10))
    assert found is not None and "pair" in found.symbol
    assert routine((3, 3, 8, 10)) is None  # float32 between conversions
    assert routine((1, 1, 7, 10), (4, 6, 6, 7)) is None  # no pairs
