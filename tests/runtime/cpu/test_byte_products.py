"""Products of integers of 8 bits: every form has the bits of NumPy's products of int32."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import graph_of, text_of
from tests.runtime.cpu.amx_emulation import emulation
from tests.runtime.cpu.machines import MACHINES
from tests.runtime.cpu.test_library import call, node_of
from treadle.core.shapes import SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node
from treadle.graph.verifier import verify
from treadle.runtime.cpu.alike import Form
from treadle.runtime.cpu.facts import CpuFacts
from treadle.runtime.cpu.jit import Jit, jit
from treadle.runtime.cpu.library import product_share, routine_for
from treadle.runtime.cpu.library_code import library_text
from treadle.runtime.cpu.library_text import WHOLE_BYTES
from treadle.runtime.cpu.matmul.byte_forms import (
    DOTS,
    MATRICES,
    PAIRS,
    QUADS,
    byte_element,
    byte_form,
)
from treadle.runtime.cpu.matmul.byte_tiles import most_byte_dots, most_byte_rows
from treadle.runtime.cpu.matmul.classes import Products, class_of
from treadle.runtime.cpu.matmul.packing import packer_text
from treadle.runtime.cpu.matmul.tile_text import tile_text
from treadle.runtime.cpu.matmul.tiles import Tile, lanes
from treadle.runtime.cpu.matmul.tiling import Product, tiling_of
from treadle.runtime.cpu.target import Target, can_run, host, named, using
from treadle.runtime.cpu.trials import Scratch, Trial
from treadle.runtime.passes.narrow_products import narrow_products

# Of A and B: two of them have all code of the forms, with and without the shift of A.
SIGNS = [
    (np.int8, np.int8), (np.uint8, np.int8),
    pytest.param(np.int8, np.uint8, marks=pytest.mark.thorough),
    pytest.param(np.uint8, np.uint8, marks=pytest.mark.thorough),
]  # fmt: skip
AVX2, AVX512, AMX = (named(f"{n},l1=48K/12,l2=2M/16,l3=32M/16") for n in ("avx2", "avx512", "amx"))


def plus(machine: Target, *features: str) -> Target:
    return dataclasses.replace(machine, features=machine.features | set(features))


# Machines for all forms, with the instruction of each.
FORMS: dict[str, tuple[Target, str, str]] = {
    "matrices": (AMX, MATRICES, "tdpb"),
    "quads of 512 bits": (plus(AVX512, "avx512vnni"), QUADS, "vpdpbusd"),
    "quads of 256 bits": (plus(AVX2, "avxvnni"), QUADS, "vpdpbusd"),
    "pairs of 512 bits": (AVX512, PAIRS, "vpmaddwd"),
    "pairs of 256 bits": (AVX2, PAIRS, "vpmaddwd"),
    "pairs of 128 bits": (MACHINES["sse2"], PAIRS, "pmaddwd"),
    "dots": (plus(MACHINES["neon"], "dotprod", "i8mm"), DOTS, "dot"),
}
RUNNABLE = [name for name, (machine, _, _) in FORMS.items() if can_run(machine)]
EMULATED = "emulated matrices"  # on processors with AVX-512: the text is that of `MATRICES`
if host().avx512:
    RUNNABLE.append(EMULATED)


@contextmanager
def machine_of(name: str) -> Iterator[Target]:
    """Code is made for the machine of a form."""
    with emulation() if name == EMULATED else using(FORMS[name][0]) as machine:
        yield machine


def byte_node(a: Any, b: Any, ta: bool = False, tb: bool = False) -> Node:
    attrs = {"transpose_a": ta, "transpose_b": tb}
    return node_of("byte_matmul", [TensorSpec(x.shape, x.dtype) for x in (a, b)], attrs)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found: np.ndarray = a.astype(np.int32) @ b.astype(np.int32)
    return found


# -- the code --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("element", WHOLE_BYTES)
def test_tiles_use_the_instruction(name: str, element: str) -> None:
    machine, form, instruction = FORMS[name]
    assert byte_form(element, machine) == form
    compiler = Jit(machine, jit().cache)
    vectors = 2
    height = 20 if form == MATRICES else most_byte_rows(element, machine, vectors)
    along = "rows" if form == MATRICES else "columns"
    assembly = compiler.assembly(tile_text(Tile(element, along, height, vectors), machine))
    if form == MATRICES:
        signs = {"ss8": "ssd", "su8": "sud", "us8": "usd", "uu8": "uud"}[element]
        assert assembly.count(f"tdpb{signs}") == 2 * 2 * 2
        return
    assert assembly.count(instruction) >= height * vectors
    step = assembly.split(instruction)[1]  # between two products: no sum is in memory
    assert "(%rsp)" not in step and "[sp" not in step


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("element", ["ss8", "us8"])
def test_the_routine_and_its_copies_compile(name: str, element: str) -> None:
    machine = FORMS[name][0]
    compiler = Jit(machine, jit().cache)
    assert f"matmul_{element}:" in compiler.assembly(library_text("matmul", element, machine))
    for packer in ("copy_panels", "transpose_panel", "pack_columns", "pack_rows"):
        text = packer_text(packer, element, machine)
        assert f"{packer}_{element}:" in compiler.assembly(text)


def test_which_form_a_machine_has() -> None:
    assert byte_element(td.int8, td.uint8) == "su8"
    assert byte_element(td.int8, td.int16) is None
    for element in WHOLE_BYTES:
        assert byte_form(element, AMX.without("amx-int8")) == QUADS
        assert byte_form(element, AMX.without("amx-tile", "avx512vnni")) == PAIRS
        # Without instructions for 8 bits products are those of 32 bits.
        assert byte_form(element, MACHINES["neon"]) is None
    dots = plus(MACHINES["neon"], "dotprod")
    assert [byte_form(element, dots) for element in WHOLE_BYTES] == [DOTS, None, None, DOTS]


def test_matrix_registers_read_rows_of_whole_groups_where_they_are() -> None:
    assert not tiling_of(Product("ss8", 1, 50, 300, 64), AMX).pack_a
    assert not tiling_of(Product("ss8", 1, 50, 30, 68), AMX).pack_a
    sizes = ((50, 30, 63), (50, 300, 68), (50, 300, 64, 1))
    copied = [Product("ss8", 1, *given) for given in sizes]
    for other in copied:
        assert tiling_of(other, AMX).pack_a
    assert tiling_of(Product("ss8", 1, 50, 300, 64), AVX2).pack_a  # vectors take copies


def test_threads_share_what_takes_longer_to_copy() -> None:
    def by_rows(m: int, n: int, k: int) -> int:
        return tiling_of(Product("ss8", 1, m, n, k), FORMS["quads of 512 bits"][0]).by_rows

    for m in (16, 32, 128):  # each of two threads copies its panels of B, and all of A
        assert not by_rows(m, 1024, 1024)
    assert by_rows(1024, 128, 1024)
    assert by_rows(1000, 96, 1024)  # three panels are not even
    assert not by_rows(100, 128, 1024)


def test_few_rows_by_a_transposed_matrix_copy_nothing() -> None:
    vnni = FORMS["quads of 512 bits"][0]
    for m, n, k, turned, copied in [
        (1, 1000, 1024, 1, False), (20, 30, 1001, 1, False),
        (30, 1000, 1024, 1, True), (1, 1000, 200, 1, True), (1, 1000, 1024, 0, True),
    ]:  # fmt: skip
        tiling = tiling_of(Product("ss8", 1, m, n, k, 0, turned), vnni)
        assert (tiling.space > 0) is copied, (m, n, k, turned)
        assert {tile.along for tile in tiling.needs} == {"columns" if copied else "dots"}
    # Masks for the last steps of k are those of AVX-512.
    assert tiling_of(Product("ss8", 1, 1, 1000, 1024, 0, 1), AVX2).space > 0


@pytest.mark.parametrize("name", [n for n in FORMS if "512" in n])
@pytest.mark.parametrize("element", WHOLE_BYTES)
def test_tiles_of_dot_products_keep_their_sums_in_registers(name: str, element: str) -> None:
    machine, _, instruction = FORMS[name]
    tile = Tile(element, "dots", most_byte_dots(element, machine), 4)
    assembly = Jit(machine, jit().cache).assembly(tile_text(tile, machine))
    whole = assembly.split(instruction)[1 : tile.height * 4]
    assert not any("(%rsp)" in between for between in whole)


# -- results ---------------------------------------------------------------------------------------

SHAPES = [
    (1, 1, 3), (5, 7, 4), (17, 65, 30), (32, 32, 64), (50, 100, 784), (33, 300, 70), (1, 64, 65),
    (33, 1, 67), (7, 270, 4099), (3, 3, 9001), (0, 3, 4), (4, 5, 0), (3, 0, 5),
]  # fmt: skip


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize(("left", "right"), SIGNS)
def test_products(name: str, left: Any, right: Any) -> None:
    rng = np.random.default_rng(0)
    with machine_of(name):
        for m, n, k in SHAPES:
            a, b = numbers(rng, (m, k), left), numbers(rng, (k, n), right)
            wanted = product(a, b)
            for ta in (False, True):
                for tb in (False, True):
                    given = [np.ascontiguousarray(a.T) if ta else a]
                    given.append(np.ascontiguousarray(b.T) if tb else b)
                    found = call(byte_node(*given, ta, tb), given)
                    assert found.dtype == np.int32
                    assert found.tobytes() == wanted.tobytes(), (m, n, k, ta, tb)


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize(("left", "right"), SIGNS)
def test_extremes_wrap_around_in_32_bits_only(name: str, left: Any, right: Any) -> None:
    """k is so large that sums of the largest products leave the range of int32."""
    rng = np.random.default_rng(0)
    k = 140_001
    ends = [[np.iinfo(kind).min, np.iinfo(kind).max] for kind in (left, right)]
    a = np.stack([np.full(k, ends[0][0]), np.full(k, ends[0][1]), rng.choice(ends[0], k)])
    b = np.stack([np.full(k, ends[1][0]), np.full(k, ends[1][1]), rng.choice(ends[1], k)], 1)
    a, b = a.astype(left), b.astype(right)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    assert np.abs(exact).max() > 2**31
    turned = np.ascontiguousarray(b.T)
    with machine_of(name):
        found = call(byte_node(a, b), [a, b])
        dots = call(byte_node(a, turned, tb=True), [a, turned])
    assert found.tobytes() == dots.tobytes() == exact.astype(np.int32).tobytes()


@pytest.mark.parametrize("name", RUNNABLE)
def test_any_number_of_threads(name: str) -> None:
    rng = np.random.default_rng(0)
    with machine_of(name):
        for m, n, k in ((200, 70, 90), (1, 700, 100), (77, 500, 1030)):
            a, b = numbers(rng, (m, k), np.int8), numbers(rng, (k, n), np.int8)
            for workers in (2, 3, 7):
                found = call(byte_node(a, b), [a, b], workers)
                assert found.tobytes() == product(a, b).tobytes()


@pytest.mark.parametrize("name", RUNNABLE)
def test_batches_and_open_sizes(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (3, 40, 50), np.int8), numbers(rng, (3, 50, 37), np.uint8)
    dims = [SymbolicDim.symbol(x) for x in "MKN"]
    specs = [TensorSpec((dims[0], dims[1]), "int8"), TensorSpec((dims[1], dims[2]), "uint8")]
    attrs = {"transpose_a": False, "transpose_b": False}
    rows = node_of("byte_matmul", specs, attrs)
    with machine_of(name):
        found = call(byte_node(a, b), [a, b])
        assert found.tobytes() == product(a, b).tobytes()
        one = call(byte_node(a, b[0]), [a, b[0]])
        assert one.tobytes() == product(a, b[0]).tobytes()
        for m, k, n in ((1, 50, 37), (40, 50, 37), (9, 13, 1), (0, 4, 3), (40, 3, 20), (2, 0, 3)):
            x, y = a[0, :m, :k].copy(), b[0, :k, :n].copy()
            part = call(rows, [x, y], 2, dict(zip("MKN", (m, k, n), strict=True)))
            assert part.tobytes() == product(x, y).tobytes(), (m, k, n)


@pytest.mark.parametrize("name", [n for n in RUNNABLE if n != EMULATED])
def test_every_choice_has_the_same_bits(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (60, 130), np.int8), numbers(rng, (130, 150), np.int8)
    for ta in (0, 1):
        given = [np.ascontiguousarray(a.T) if ta else a, b]
        alike = class_of(Product("ss8", 1, 60, 150, 130, ta))
        assert alike is not None and Products.named(alike.name) == alike
        assert alike.title == f"60x150x130 int8 by int8{' a transposed' if ta else ''}"
        assert alike.sizes == (a.nbytes, b.nbytes, 60 * 150 * 4)
        with machine_of(name) as machine:
            forms: list[Form] = list(alike.forms(machine, 2))
            assert (len(forms) > 1) is (FORMS[name][1] != MATRICES)
            for form in forms or [alike.rule(machine)]:
                assert form.pack  # the groups of B are a copy
                scratch = Scratch(alike)
                for array, values in zip(scratch.arrays, given, strict=False):
                    array[:] = values.ravel()
                Trial(alike, form, [scratch], 1).run()
                found = scratch.arrays[2].view(np.int32).reshape(60, 150)
                assert np.array_equal(found, product(a, b))
                assert product_share(alike.product, form)[1] > 0


# -- programs --------------------------------------------------------------------------------------

TEXT = """(%x: i8[4, 6], %y: u8[6, 2]) {
  %a: WIDE[4, 6] = cast(%x) {dtype=WIDE}
  %b: WIDE[6, 2] = cast(%y) {dtype=WIDE}
  %0: WIDE[4, 2] = matmul(%a, %b) {transpose_a=False, transpose_b=False}
  return %0
}"""


@pytest.mark.parametrize("wide", ["i32", "u32"])
def test_conversions_before_a_product_go(wide: str) -> None:
    for machine in (AVX2, MACHINES["neon"]):
        graph = graph_of(TEXT.replace("WIDE", wide))
        with using(machine, run=False):
            narrow_products(graph, CpuFacts())
        verify(graph)
        narrowed = machine is AVX2
        assert ("= byte_matmul(%x, %y)" in text_of(graph)) is narrowed
        assert text_of(graph).count("cast(") == ((wide == "u32") if narrowed else 2)


def test_products_that_are_wider_stay() -> None:
    graph = graph_of(TEXT.replace("WIDE", "i64"))
    narrow_products(graph, CpuFacts())
    assert "byte_matmul" not in text_of(graph)


def check(f: Any, *arrays: np.ndarray, dtype: Any = np.int32) -> None:
    """A function gives the same in eager mode and in a program; and what the product of the arrays
    as int32 gives, where it is one."""
    tensors = [td.constant(a) for a in arrays]
    eager, made = f(*tensors), td.function(f, autograph=False)(*tensors)
    assert eager.dtype == made.dtype == td.as_dtype(dtype)
    assert np.array_equal(eager.numpy(), made.numpy())


def test_functions() -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (40, 70), np.int8), numbers(rng, (70, 33), np.int8)
    wide = lambda x: td.cast(x, td.int32)
    for x, y in ((a, b), (a.astype(np.uint8), b), (a, b.astype(np.uint8))):
        found = td.matmul(td.constant(x), td.constant(y), output_type=td.int32)
        assert np.array_equal(found.numpy(), product(x, y))
        check(lambda x, y: td.matmul(x, y, output_type=td.int32), x, y)
        check(lambda x, y: td.matmul(wide(x), wide(y)) + 1, x, y)
        check(lambda x, y: td.matmul(y, x, True, True, output_type=td.int32), x, y)
        turned = lambda x, y: td.matmul(td.transpose(x), y, False, True, output_type=td.int32)
        check(turned, np.ascontiguousarray(x.T), np.ascontiguousarray(y.T))
    # In 8 bits sums wrap around.
    check(td.matmul, a, b, dtype=np.int8)
    assert np.array_equal(td.matmul(a, b).numpy(), product(a, b).astype(np.int8))
    check(td.matmul, a.astype(np.uint8), b.astype(np.uint8), dtype=np.uint8)
    p, q = numbers(rng, (3, 40, 70), np.int8), numbers(rng, (3, 70, 2, 8), np.int8)
    check(lambda x, y: td.einsum("bij,bjhk->bhik", wide(x), wide(y)), p, q)
    check(lambda x, y: td.tensordot(wide(x), wide(y), 1), p, b)
    mixed = numbers(rng, (2, 1, 4, 6), np.int8), numbers(rng, (1, 3, 6, 5), np.uint8)
    check(lambda x, y: td.matmul(x, y, output_type=td.int32), *mixed)
    constant = td.constant(b)
    check(lambda x: td.matmul(x, constant, output_type=td.int32), a)
    rows = lambda x, y: td.vectorized_map(lambda r: td.matmul(r, y, output_type=td.int32), x)
    check(rows, p, b)


def test_slices_are_read_where_they_are() -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (50, 90), np.int8), numbers(rng, (90, 80), np.int8)
    f = td.function(
        lambda x, y: td.matmul(x[3:40, 5:75], y[2:72, 7:60], output_type=td.int32), autograph=False
    )
    wanted = product(a[3:40, 5:75], b[2:72, 7:60])
    assert np.array_equal(f(td.constant(a), td.constant(b)).numpy(), wanted)


def test_errors() -> None:
    a, b = td.constant(np.ones((2, 3), np.int8)), td.constant(np.ones((4, 2), np.int8))
    for f in (td.matmul, td.function(td.matmul, autograph=False)):
        with pytest.raises(td.errors.InvalidArgumentError, match="inner dims 3 and 4 differ"):
            f(a, b, output_type=td.int32)
    with pytest.raises(td.errors.InvalidArgumentError, match="needs at least two axes"):
        td.matmul(a[0], b, output_type=td.int32)
    open_sizes = td.function(
        lambda x, y: td.matmul(x, y, output_type=td.int32), autograph=False,
        input_signature=[td.TensorSpec([None, None], td.int8)] * 2,
    )  # fmt: skip
    with pytest.raises(td.errors.InvalidArgumentError, match="inner dims 3 and 4 differ"):
        open_sizes(a, b)


def test_large_eager_products_are_programs_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (130, 140), np.int8), numbers(rng, (140, 150), np.int8)
    seen = []
    monkeypatch.setattr(td.tracing.settings, "wait_for_eager_programs", True)
    from treadle.runtime.cpu import library

    original = library.routine_for

    def routine(node: Node, *args: Any, **kwargs: Any) -> Any:
        found = original(node, *args, **kwargs)
        seen.append((node.op.name, found))
        return found

    monkeypatch.setattr(library, "routine_for", routine)
    td.clear_caches()
    found = td.matmul(td.constant(a), td.constant(b), output_type=td.int32)
    assert np.array_equal(found.numpy(), product(a, b))
    expected = byte_form("ss8", host()) is not None
    assert any(name == "byte_matmul" and made for name, made in seen) is expected


def test_dense_layers_of_8_bits_multiply_bytes() -> None:
    rng = np.random.default_rng(0)
    for shape in ((20, 64), (3, 7, 64)):
        layer = td.keras.layers.Dense(50)
        layer.build((None, 64))
        layer.quantize("int8")
        x = rng.standard_normal(shape).astype(np.float32)
        check(lambda t, layer=layer: layer(t), x, dtype=np.float32)


def test_which_routine_a_node_has() -> None:
    a = np.zeros((20, 64), np.int8)
    with using(AMX, run=False):
        routine = routine_for(byte_node(a, np.zeros((64, 40), np.uint8)))
    assert routine is not None and routine.symbol == (
        "matmul_su8@tile_su8_rows_20x1,tile_su8_rows_20x2,copy_panels_su8"
    )
    with using(MACHINES["neon"], run=False):
        assert routine_for(byte_node(a, a, tb=True)) is None
    assert lanes(AMX, "su8") == 16
