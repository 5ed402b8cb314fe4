"""Products of bfloat16 in the matrix registers of AMX: what is written for a machine that has them,
and, with their instructions computed by `amx_emulation`, what the results are."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.amx_emulation import DECLARATION, emulation
from tests.runtime.cpu.test_library import call, matmul_node
from tests.runtime.cpu.test_pairs import pointwise
from treadle.core.shapes import SymbolicDim
from treadle.runtime.cpu import amx_permission, library_code, target
from treadle.runtime.cpu.jit import Jit, jit
from treadle.runtime.cpu.library import routine_for
from treadle.runtime.cpu.library_code import library_text
from treadle.runtime.cpu.matmul.packing import packer_text
from treadle.runtime.cpu.matmul.pairs import has_matrix_registers, multiplies_pairs
from treadle.runtime.cpu.matmul.tile_text import tile_text
from treadle.runtime.cpu.matmul.tiles import Tile
from treadle.runtime.cpu.matmul.tiling import Product, tiling_of
from treadle.runtime.cpu.target import AMX_FEATURES, can_run, host, named, this_machine, using

BF16 = ml_dtypes.bfloat16
AMX = named("amx,l1=48K/12,l2=2M/16,l3=32M/16")
emulates = pytest.mark.skipif(
    not multiplies_pairs(host()), reason="the emulation stands on the AVX-512 form"
)


# -- the code --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "vectors"), [(1, 1), (7, 4), (16, 3), (17, 2), (32, 2)])
def test_tiles_use_the_registers(height: int, vectors: int) -> None:
    text = tile_text(Tile("i32", "pairrows", height, vectors), AMX)
    assembly = Jit(AMX, jit().cache).assembly(text)
    rows = -(-height // 16)
    assert assembly.count("tdpbf16ps") == 2 * rows * vectors  # for whole steps, and for the rest
    assert assembly.count("tilezero") == rows * vectors
    assert assembly.count("tilestored") == 2 * rows * vectors
    assert assembly.count("tileloadd") == 2 * (rows + vectors) + rows * vectors
    assert assembly.count("ldtilecfg") == 2 and assembly.count("tilerelease") == 1
    assert "vcvtneps2bf16" in assembly


def test_an_instruction_has_three_registers_and_sums_are_apart_from_factors() -> None:
    for height in (3, 16, 20, 32):
        for vectors in range(1, 3 if height > 16 else 5):
            text = tile_text(Tile("i32", "pairrows", height, vectors), AMX)
            used = re.findall(r"tdpbf16ps\(i8 (\d), i8 (\d), i8 (\d)\)", text)
            assert len(used) == 2 * vectors * -(-height // 16)
            for total, a, b in used:
                assert int(total) < 4 <= int(a) < int(b) < 8


def test_the_routine_and_its_copies_compile() -> None:
    compiler = Jit(AMX, jit().cache)
    assert "matmul_i32:" in compiler.assembly(library_text("matmul", "i32", AMX))
    for name in ("pair_panels", "pair_columns"):
        assert f"{name}_i32:" in compiler.assembly(packer_text(name, "i32", AMX))


def test_where_it_is_used() -> None:
    assert has_matrix_registers(AMX)
    for lacking in ("amx-tile", "amx-bf16", "avx512bf16"):
        assert not has_matrix_registers(AMX.without(lacking))
    with using(AMX, run=False):
        routine = routine_for(matmul_node((50, 784), (784, 100), False, False, "bfloat16"))
        turned = routine_for(matmul_node((784, 50), (784, 100), True, False, "bfloat16"))
    assert routine is not None and turned is not None
    assert "tile_i32_pairrows_25x2" in routine.symbol
    assert "pair_columns" in turned.symbol and "paircolumns" not in turned.symbol


@pytest.mark.parametrize("m", [1, 5, 16, 17, 33, 50, 1000])
def test_tiles_fill_the_registers(m: int) -> None:
    found = tiling_of(Product("i32", 1, m, 300, 392, pairs=1), AMX)
    assert found.vectors == (4 if m <= 16 else 2)
    assert max(tile.height for tile in found.needs) <= 16 * 4 // found.vectors
    assert int(found.tiles) >= -(-m // 32) and not found.pack_a


# -- permission ------------------------------------------------------------------------------------


def test_without_permission_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    here = this_machine()
    full = here.without().__class__(here.triple, "sapphirerapids", here.features | AMX_FEATURES)
    monkeypatch.setattr(target, "_asked", lambda: full)
    for allowed in (True, False):
        monkeypatch.setattr(target, "may_use_amx", lambda allowed=allowed: allowed)
        found = this_machine.__wrapped__()
        others = {f for f in full.features if not f.startswith("amx-")}
        assert found.features == (full.features if allowed else others)


def test_tuning_does_not_depend_on_the_permission() -> None:
    assert AMX.without(*AMX_FEATURES).tuning == AMX.tuning
    assert AMX.tuning.wide_rows > named("avx512,l1=48K/12,l2=2M/16,l3=32M/16").tuning.wide_rows


def test_the_kernel_answers() -> None:
    """It refuses where the processor lacks the registers, whatever its version."""
    allowed = amx_permission.may_use_amx()
    with open("/proc/cpuinfo") as file:
        assert allowed <= ("amx_tile" in file.read())


def test_a_machine_without_them_does_not_run_the_code() -> None:
    if not can_run(AMX):
        with pytest.raises(ValueError, match="this processor lacks .*amx-tile"), using(AMX):
            pass


# -- results ---------------------------------------------------------------------------------------


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sums of a product of bfloat16, in the order and with the roundings that `amx.py` tells.

    A product of two bfloat16 and a float32 is exact in float64, or nearly so: it is rounded to
    float32 once.
    """
    a, b = (x.astype(np.float64) for x in (a, b))
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], 32):
        halves = []
        for half in (0, 1):
            found = np.zeros_like(total)
            for k in range(start + half, min(start + 32, a.shape[1]), 2):
                found = (a[:, k, None] * b[k] + found).astype(np.float32)
            halves.append(found)
        total = total + (halves[0] + halves[1])
    return total


def factors(m: int, n: int, k: int, ta: bool, tb: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(m + n + k)
    shapes = [(k, m) if ta else (m, k), (n, k) if tb else (k, n)]
    return [rng.standard_normal(s).astype(BF16) for s in shapes]


def test_the_text_of_the_emulation_has_no_instructions() -> None:
    text = tile_text(Tile("i32", "pairrows", 20, 2), AMX)
    assert len(DECLARATION.findall(text)) == 6  # all that `emulated` replaces


SHAPES = [
    (1, 1, 2), (5, 7, 4), (16, 16, 32), (17, 65, 30), (32, 32, 64), (50, 100, 784), (100, 33, 70),
    (300, 130, 300), (20, 900, 64), (1, 64, 64), (64, 1, 64), (7, 47, 8192), (100, 9, 40),
    (0, 3, 4), (4, 5, 0),
]  # fmt: skip


@emulates
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_products(m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    """They have the bits that the manual tells, on any number of threads, and those of the
    AVX-512 form but where sums are rounded to another of two neighbours."""
    a, b = factors(m, n, k, ta, tb)
    node = matmul_node(a.shape, b.shape, ta, tb, "bfloat16")
    by_vectors = call(node, [a, b])
    with emulation():
        found = call(node, [a, b])
        for workers in (2, 5):
            assert call(node, [a, b], workers).tobytes() == found.tobytes()
    wanted = reference(a.T if ta else a, b.T if tb else b).astype(BF16)
    assert found.tobytes() == wanted.tobytes()
    unlike = found != by_vectors
    assert unlike.sum() <= 0.002 * found.size + 1
    pair = [x[unlike].astype(np.float64) for x in (found, by_vectors)]
    np.testing.assert_allclose(*pair, rtol=2**-7, atol=1e-4)


@emulates
def test_batches_and_open_sizes() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(BF16) for s in ((3, 40, 50), (3, 50, 37)))
    rows = matmul_node((SymbolicDim.symbol("B"), 50), (50, 37), False, False, "bfloat16")
    with emulation():
        found = call(matmul_node(a.shape, b.shape, False, False, "bfloat16"), [a, b])
        for x, y, result in zip(a, b, found, strict=True):
            assert result.tobytes() == reference(x, y).astype(BF16).tobytes()
            for count in (1, 16, 40):  # the order of sums depends on k alone
                part = call(rows, [x[:count].copy(), y], 2, {"B": count})
                assert part.tobytes() == result[:count].tobytes()


@emulates
def test_subnormal_numbers_are_zeros() -> None:
    tiny = np.full((4, 32), 1e-39).astype(BF16)
    with emulation():
        found = call(matmul_node((4, 32), (32, 5), False, False, "bfloat16"), [
            tiny, np.full((32, 5), 1e30).astype(BF16)
        ])  # fmt: skip
    assert not found.astype(np.float32).any()


@emulates
def test_pointwise_convolutions() -> None:
    rng = np.random.default_rng(0)
    x = td.constant(rng.standard_normal((3, 9, 7, 16)).astype(BF16))
    f = td.constant(rng.standard_normal((1, 1, 16, 24)).astype(BF16))
    by_vectors = td.function(pointwise, autograph=False)(x, f)
    with emulation():
        found = td.function(pointwise, autograph=False)(x, f)
    pixels, filters = x.numpy().reshape(-1, 16), f.numpy()[0, 0]
    assert found[0].numpy().tobytes() == reference(pixels, filters).astype(BF16).tobytes()
    for a, b in zip(found, by_vectors, strict=True):
        wide = [t.numpy().astype(np.float64) for t in (a, b)]
        np.testing.assert_allclose(*wide, rtol=2**-7, atol=2e-3 * np.abs(wide[1]).max())


@emulates
@pytest.mark.thorough
def test_training_with_mixed_precision() -> None:
    """Steps of a network under mixed_bfloat16 use the registers, forwards and backwards; their
    losses are those of the AVX-512 form within bfloat16's precision."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((48, 64)).astype(np.float32)
    labels = rng.integers(0, 10, 48)

    def losses() -> list[float]:
        td.keras.utils.set_random_seed(1)
        td.keras.mixed_precision.set_global_policy("mixed_bfloat16")
        try:
            net: Any = td.keras.Sequential([
                td.keras.layers.Input((64,)), td.keras.layers.Dense(96, "relu"),
                td.keras.layers.Dense(10),
            ])  # fmt: skip
            optimizer = td.keras.optimizers.SGD(0.1)

            @td.function
            def step(x: Any, y: Any) -> Any:
                with td.GradientTape() as tape:
                    logits = td.cast(net(x, training=True), td.float32)
                    loss = td.reduce_mean(
                        td.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                    )
                variables = net.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                return loss

            return [float(step(td.constant(x), td.constant(labels))) for _ in range(8)]
        finally:
            td.keras.mixed_precision.set_global_policy("float32")

    by_vectors = losses()
    with emulation() as machine:
        assert jit().target == machine
        in_matrices = losses()
        loaded = [code for code in library_code._tiles("i32", machine) if code]
        assert len(loaded) > 2  # tiles of pairs, and copies
    np.testing.assert_allclose(in_matrices, by_vectors, rtol=0.02)
    assert in_matrices[-1] < 0.8 * in_matrices[0]
