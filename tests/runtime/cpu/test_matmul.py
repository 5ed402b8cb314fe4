"""Generated matrix products: tiles on every kind of target, plans, and products by the routine."""

import ctypes
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle
from tests.runtime.cpu.machines import PROCESSORS, ZEN3, ZEN5
from treadle.core.shapes import SymbolicDim
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.matmul import tiles
from treadle.runtime.cpu.matmul.dots import most_dot_rows
from treadle.runtime.cpu.matmul.tile_text import tile_text
from treadle.runtime.cpu.matmul.tiles import (
    ALONG,
    PAST,
    TABLE_WORDS,
    TILE_WORDS,
    Tile,
    lanes,
    most_rows,
    stores_past,
)  # fmt: skip
from treadle.runtime.cpu.matmul.tiling import COPY, FILL, NO_PACK, Product, tiling_of
from treadle.runtime.cpu.target import Target, aarch64, baseline, host
from treadle.runtime.cpu.threads import pool
from treadle.runtime.tuning import Cache

TARGETS = [host(), baseline(3), baseline(1)]
TILE = ctypes.CFUNCTYPE(
    None, *[ctypes.c_void_p, ctypes.c_int64] * 3, *[ctypes.c_int64] * 4, ctypes.c_void_p
)
FULL_TILE = ctypes.CFUNCTYPE(None, *TILE._argtypes_, ctypes.c_int64)
DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Integers fill their range, so that products wrap around."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def run_tile(tile: Tile, target: Target, n: int, k: int) -> None:
    """The tile sets and then adds, in two segments of k; what lies beside its columns stays."""
    code = jit().load(tile_text(tile, target))
    dtype = np.dtype(DTYPES[tile.element])
    rng = np.random.default_rng(n * 1000 + k)
    a = numbers(rng, (tile.height, 2 * k), dtype)
    stored = a if tile.along == "rows" else np.ascontiguousarray(a.T)
    b = numbers(rng, (2 * k, n + 3), dtype)
    c = np.full((tile.height, n + 5), 7, dtype)
    second = k * (dtype.itemsize if tile.along == "rows" else stored.strides[0])
    offsets = np.array([second, k * b.strides[0], 0, 0], np.int64)  # the later half first
    for add in (0, 1):
        TILE(code.address(tile.symbol))(
            stored.ctypes.data, stored.strides[0], b.ctypes.data, b.strides[0], c.ctypes.data,
            c.strides[0], k, n, add, 2, offsets.ctypes.data,
        )  # fmt: skip
    assert (c[:, n:] == 7).all()
    if dtype.kind == "i":
        np.testing.assert_array_equal(c[:, :n], 2 * (a @ b[:, :n]))
        return
    expected = 2 * (a.astype(np.float64) @ b[:, :n].astype(np.float64))
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(c[:, :n], expected, atol=tolerance * (k + 1))


@pytest.mark.parametrize("target", TARGETS, ids=["host", "avx2", "sse2"])
@pytest.mark.parametrize("along", ["rows", "columns"])
@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("element", DTYPES)
def test_tiles(element: str, vectors: int, along: str, target: Target) -> None:
    width = lanes(target, element)
    tall = most_rows(target, vectors)
    for height in (1, tall):
        for n in {vectors * width, vectors * width - 1, (vectors - 1) * width + 1}:
            run_tile(Tile(element, along, height, vectors), target, n, 37)
    run_tile(Tile(element, along, tall, vectors), target, 1, 0)


@pytest.mark.parametrize("target", TARGETS[:2], ids=["host", "avx2"])
@pytest.mark.parametrize("along", ["rows", "columns"])
@pytest.mark.parametrize("element", DTYPES)
def test_tiles_that_copy_their_panel(element: str, along: str, target: Target) -> None:
    """They have the bits of those that do not, and leave whole vectors of B for the next tiles."""
    dtype, rng = np.dtype(DTYPES[element]), np.random.default_rng(0)
    width = lanes(target, element)
    for vectors, k, ahead in itertools.product((1, 2, 3), (0, 1, 37), (0, 5)):
        for n in {vectors * width, (vectors - 1) * width + 1}:
            height = most_rows(target, vectors)
            shape = (height, k + 1) if along == "rows" else (k + 1, height)
            a, b = numbers(rng, shape, dtype), numbers(rng, (k + 8, n + 3), dtype)
            panel = np.full((k, vectors * width), 7, dtype)
            where = np.array([panel.ctypes.data, vectors * width * dtype.itemsize], np.int64)
            found = []
            for form, offsets in ((along, np.zeros(2, np.int64)), (f"fill{along}", where)):
                tile = Tile(element, form, height, vectors)
                c = np.ones((height, n + 2), dtype)
                for add in (0, 1):
                    FULL_TILE(jit().load(tile_text(tile, target)).address(tile.symbol))(
                        a.ctypes.data, a.strides[0], b.ctypes.data, b.strides[0], c.ctypes.data,
                        c.strides[0], k, n, add, 1, offsets.ctypes.data, ahead * b.strides[0],
                    )  # fmt: skip
                found.append(c)
            np.testing.assert_array_equal(found[0], found[1])
            assert (found[1][:, n:] == 1).all()
            np.testing.assert_array_equal(panel[:, :n], b[:k, :n])
            assert not panel[:, n:].any()


@pytest.mark.parametrize("element", ["float", "double"])
def test_stores_past_the_caches(element: str) -> None:
    """Whole tiles whose rows begin at lines store the same bits, others as usual."""
    target = host()
    width, dtype = lanes(target, element), np.dtype(DTYPES[element])
    text = tile_text(Tile(element, "rows", 5, 2), target)
    assert ("!nontemporal" in text) == stores_past(target, element)
    assert "!nontemporal" not in tile_text(Tile("i32", "rows", 5, 2), target)
    rng, code = np.random.default_rng(0), jit().load(text).address(f"tile_{element}_rows_5x2")
    a, b = numbers(rng, (5, 30), dtype), numbers(rng, (30, 2 * width), dtype)
    space = np.ones(5 * 4 * width + 64, dtype)
    first = -space.ctypes.data % 64 // dtype.itemsize
    found = []
    for n in (2 * width, 2 * width - 1):
        for add in (0, PAST):
            c = space[first : first + 20 * width].reshape(5, 4 * width)
            c[:] = 7
            FULL_TILE(code)(
                a.ctypes.data, a.strides[0], b.ctypes.data, b.strides[0], c.ctypes.data,
                c.strides[0], 30, n, add, 1, np.zeros(2, np.int64).ctypes.data, 0,
            )  # fmt: skip
            found.append(c.copy())
    assert (found[0] == found[1]).all() and (found[2] == found[3]).all()
    assert (found[0][:, : 2 * width - 1] == found[2][:, : 2 * width - 1]).all()
    assert (found[2][:, 2 * width - 1 :] == 7).all()


@pytest.mark.parametrize("columns", [512, 520, 516])
@pytest.mark.parametrize("follows", [False, True])
def test_large_results(columns: int, follows: bool) -> None:
    """Stored past the caches where rows begin at lines; what follows reads what was stored."""
    rng = np.random.default_rng(0)
    rows = (8 << 20) // (4 * columns) + 3
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in ((40, rows), (40, columns)))
    last = treadle.nn.relu if follows else treadle.identity
    run = treadle.function(
        lambda x, y: last(treadle.matmul(x, y, transpose_a=True)), autograph=False
    )
    expected = a.T @ b
    np.testing.assert_array_equal(
        run(a, b).numpy(), np.maximum(expected, 0) if follows else expected
    )


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_that_copy_panels(threads: int) -> None:
    random, before = np.random.default_rng(3), pool().threads
    x = random.integers(-9, 9, (310, 1100)).astype(np.float32)
    y = random.integers(-9, 9, (1100, 330)).astype(np.float32)
    bias = random.integers(-9, 9, 330).astype(np.float32)
    run = treadle.function(lambda x, y: treadle.matmul(x, y))
    follows = treadle.function(lambda x, y: treadle.matmul(x, y) + bias)
    pool().set_threads(threads)
    try:
        assert (run(x, y).numpy() == x @ y).all()
        assert (follows(x, y).numpy() == x @ y + bias).all()
    finally:
        pool().set_threads(before)


def test_few_rows_copy_b_as_they_read_it() -> None:
    server = PROCESSORS["Intel server with AMX"]

    def packs(m: int, on: Target = server) -> tuple[int, int]:
        found = tiling_of(Product("float", 1, m, 1024, 1024), on)
        return found.pack, found.pack_a

    assert packs(50) == packs(500) == (FILL, 0)
    assert packs(1024) == (COPY, 0)  # the copy costs little beside the products
    assert packs(50, ZEN5) == (NO_PACK, 1) and packs(500, ZEN5) == (COPY, 0)


@pytest.mark.parametrize("along", ["rows", "columns"])
def test_steps_written_out_add_in_the_order_of_k(
    along: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles that do several steps of k at once give the bits of those that do one."""
    tile, rng = Tile("float", along, most_rows(host(), 2), 2), np.random.default_rng(0)
    columns = 2 * lanes(host(), "float")
    texts = []
    for most in (tiles.MOST_STEPS, 1):
        monkeypatch.setattr(tiles, "MOST_STEPS", most)
        texts.append(tile_text(tile, host()))
    several, single = (jit().load(text).address(tile.symbol) for text in texts)
    assert len(texts[0]) > len(texts[1]) and several != single
    for k, beside in itertools.product((0, 1, 3, 4, 5, 8, 30, 129), (0, 3)):
        shape = (tile.height, k + 1) if along == "rows" else (k + 1, tile.height)
        a, b = numbers(rng, shape, np.float32), numbers(rng, (k + 1, columns + beside), np.float32)
        found = []
        for address in (several, single):
            c = np.zeros((tile.height, columns), np.float32)
            TILE(address)(
                a.ctypes.data, a.strides[0], b.ctypes.data, b.strides[0], c.ctypes.data,
                c.strides[0], k, columns, 0, 1, np.zeros(2, np.int64).ctypes.data,
            )  # fmt: skip
            found.append(c.tobytes())
        assert found[0] == found[1]


@pytest.mark.parametrize("target", TARGETS[:2], ids=["host", "avx2"])
@pytest.mark.parametrize("element", DTYPES)
def test_dots(element: str, target: Target) -> None:
    """Sets and then adds the products of rows; what lies beside them stays."""
    dtype, rng = np.dtype(DTYPES[element]), np.random.default_rng(0)
    for height, across, k in itertools.product((1, most_dot_rows(target)), (1, 3, 4), (0, 5, 37)):
        tile = Tile(element, "dots", height, across)
        code = jit().load(tile_text(tile, target))
        a, b = numbers(rng, (height, k + 2), dtype), numbers(rng, (across, k + 3), dtype)
        c = np.full((height, across + 1), 7, dtype)
        for add in (0, 1):
            TILE(code.address(tile.symbol))(
                a.ctypes.data, a.strides[0], b.ctypes.data, b.strides[0], c.ctypes.data,
                c.strides[0], k, across, add, 1, np.zeros(2, np.int64).ctypes.data,
            )  # fmt: skip
        expected = 2 * (a[:, :k] @ b[:, :k].T)
        np.testing.assert_allclose(c[:, :across], expected, rtol=1e-4, atol=1e-4)
        assert (c[:, across:] == 7).all()


def test_tiles_compile_for_arm() -> None:
    text = tile_text(Tile("float", "rows", most_rows(aarch64(), 2), 2), aarch64())
    llvm_text = treadle.runtime.cpu.jit.Jit(aarch64(), jit().cache).assembly(text)
    assert "fmla" in llvm_text
    for element in DTYPES:
        tile = Tile(element, "columns", most_rows(aarch64(), 2), 2)
        assert treadle.runtime.cpu.jit.Jit(aarch64(), jit().cache).assembly(
            tile_text(tile, aarch64())
        )


def test_symbols_and_places_are_unique() -> None:
    tiles = [
        Tile("float", along, height, vectors)
        for along in ALONG
        for height in range(1, 25)
        for vectors in range(1, 5)
    ]
    assert all(Tile.named(t.symbol) == t for t in tiles)
    places = {t.place for t in tiles}
    assert len(places) == len(tiles)
    assert max(places) < TILE_WORDS < TABLE_WORDS


dims = st.integers(0, 70) | st.sampled_from([128, 255, 256, 257, 400, 512])


@settings(max_examples=120, deadline=None)
@given(
    dims, dims, dims | st.sampled_from([1024, 1025]), st.booleans(), st.booleans(), st.booleans()
)
def test_products(m: int, n: int, k: int, ta: bool, tb: bool, double: bool) -> None:
    dtype = np.float64 if double else np.float32
    rng = np.random.default_rng(m + 1000 * n + 10**6 * k)
    a = rng.standard_normal((k, m) if ta else (m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if tb else (k, n)).astype(dtype)
    run = treadle.function(
        lambda x, y: treadle.matmul(x, y, transpose_a=ta, transpose_b=tb), autograph=False
    )
    expected = (a.T if ta else a).astype(np.float64) @ (b.T if tb else b).astype(np.float64)
    tolerance = (2e-6 if dtype == np.float32 else 1e-14) * (k + 1) ** 0.5 * 4
    np.testing.assert_allclose(run(a, b).numpy(), expected, rtol=0, atol=tolerance)


INTEGERS = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
NARROW = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
BATCHES: list[tuple[tuple[int, ...], tuple[int, ...], bool, bool]] = [
    ((50, 70), (70, 40), False, False),
    ((70, 50), (40, 70), True, True),
    ((1, 70), (70, 1), False, False),
    ((60, 70), (70, 1), False, False),
    ((70, 60), (70, 1), True, False),
    ((3, 60, 70), (3, 1, 70), False, True),
    ((3, 5, 60, 70), (1, 70), False, True),
    ((2, 300), (40, 300), False, True),
    ((3, 1, 5, 6), (4, 6, 7), False, False),
    ((3, 4, 5, 6), (3, 1, 6, 7), False, False),
    ((3, 4, 6, 5), (3, 1, 6, 7), True, False),
    ((2, 1, 4, 5, 6), (3, 1, 6, 7), False, False),
    ((6, 5), (3, 6, 7), True, False),
    ((2, 0), (0, 3), False, False),
]


@pytest.mark.parametrize("dtype", [*INTEGERS, *NARROW, np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize(("left", "right", "ta", "tb"), BATCHES)
def test_types_and_batches(left: Any, right: Any, ta: bool, tb: bool, dtype: np.dtype) -> None:
    """Integers wrap around, 16-bit floats are rounded once, and nothing is left to Python."""
    rng = np.random.default_rng(0)
    a, b = numbers(rng, left, dtype), numbers(rng, right, dtype)
    run = treadle.function(
        lambda x, y: treadle.matmul(x, y, transpose_a=ta, transpose_b=tb), autograph=False
    )
    x, y = a.swapaxes(-1, -2) if ta else a, b.swapaxes(-1, -2) if tb else b
    found = run(a, b).numpy()
    assert run.get_concrete_function(a, b).executable.counters["callbacks"] == 0
    if dtype.kind in "iu":
        np.testing.assert_array_equal(found, x @ y)
        return
    exact = x.astype(np.float64) @ y.astype(np.float64)
    step = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=0.51 * step, atol=1e-5)


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("rows", [1, 5, 70])
def test_what_follows_a_product(rows: int, n: int) -> None:
    """Whether the routine or a kernel of its own computes it."""
    rng = np.random.default_rng(0)
    x, w, bias = (numbers(rng, s, np.float32) for s in ((2, rows, 900), (n, 900), (2, rows, n)))
    run = treadle.function(
        lambda x, w, bias: treadle.nn.relu(treadle.matmul(x, w, transpose_b=True) + bias),
        autograph=False,
    )
    expected = np.maximum(x.astype(np.float64) @ w.T + bias, 0)
    np.testing.assert_allclose(run(x, w, bias).numpy(), expected, atol=1e-3)


def test_when_blocks_of_the_result_are_kept_apart() -> None:
    def apart(*extents: Any, batch: int = 1) -> int:
        return tiling_of(Product("float", batch, *extents, transpose_a=1), host(), apart=True).apart

    large = Product("float", 1, 3136, 1024, 50, 1)
    whole, kept = tiling_of(large, host()), tiling_of(large, host(), apart=True)
    assert whole.apart == 0
    assert 0 < kept.apart <= 256 << 10
    assert kept.space == whole.space + kept.apart
    assert kept.needs == whole.needs
    assert not apart(100, 100, 50)  # small: it stays in the caches
    assert not apart(3136, 1024, 5000)  # the sum has several blocks of k
    assert not apart(3136, 1024, 50, batch=2)
    assert not apart(SymbolicDim.symbol("M"), 1024, 50)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300), st.booleans(), st.booleans())
def test_symbolic_plans_equal_known_ones(m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    """Tiles, blocks of k and the workspace follow one rule; only choices by size may differ."""
    symbols = {"M": m, "K": k}
    open_dims: Any = [SymbolicDim.symbol("M"), SymbolicDim.symbol("K")]
    known = tiling_of(Product("float", 1, m, n, k, int(ta), int(tb)), host())
    opened = tiling_of(Product("float", 1, open_dims[0], n, open_dims[1], int(ta), int(tb)), host())
    value = lambda d: d if isinstance(d, int) else d.evaluate(symbols)
    if opened.vectors == known.vectors:
        assert known.tiles - value(opened.tiles) in (0, 1)  # an even number for two threads
        assert opened.panels == known.panels
    assert value(opened.parts) == known.parts
    if known.pack_a == opened.pack_a:
        assert value(opened.depth) == known.depth
        if opened.vectors == known.vectors:
            copying = {t for t in known.needs if t.along.startswith("fill")}
            assert set(known.needs) - (copying if opened.pack != FILL else set()) <= {*opened.needs}
            assert bool(copying) == (known.pack == FILL)
    assert value(opened.depth) * -(-k // value(opened.depth)) >= k


def test_rows_do_not_depend_on_their_neighbours() -> None:
    """A row of the product has the same bits whatever tile computes it."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 300)).astype(np.float32)
    b = rng.standard_normal((300, 200)).astype(np.float32)
    run = treadle.function(lambda x, y: treadle.matmul(x, y), autograph=False)
    whole = run(a, b).numpy()
    for rows in (1, 13, 14, 15, 29, 59):
        assert run(a[:rows], b).numpy().tobytes() == whole[:rows].tobytes()


def test_copies_of_a_are_made_where_its_lines_collide() -> None:
    features = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
    caches = Cache(48 << 10, 12), Cache(1 << 20, 16), Cache(32 << 20, 16)
    target = Target("x86_64-unknown-linux-gnu", "znver5", features, caches=caches)

    def packs(m: int, n: int, k: int, ta: int = 0, tiles: int | None = None) -> bool:
        return tiling_of(Product("float", 1, m, n, k, ta), target, tiles).pack_a == 1

    assert packs(50, 1024, 1024)
    assert not packs(50, 1024, 1000)
    assert not packs(50, 1024, 1024, tiles=4)  # threads without workspace
    assert not packs(1024, 1024, 1024)  # low tiles
    assert packs(1024, 1024, 1024, ta=1)
    assert not packs(1000, 1024, 1024, ta=1)
    assert tiling_of(Product("float", 1, 512, 10, 1024), target).tall == 8
    assert tiling_of(Product("float", 1, 512, 10, 1000), target).tall > 8


def test_copies_of_b_are_made_where_they_pay() -> None:
    first, second = PROCESSORS.values()

    def packs(m: int, n: int, tiles: int | None = None, k: int = 600, on: Target = first) -> bool:
        return tiling_of(Product("float", 1, m, n, k), on, tiles).pack != 0

    assert packs(300, 1000)
    assert not packs(100, 1000)
    assert packs(100, 1024)  # rows that collide
    assert not packs(100, 1024, tiles=10)  # threads without workspace
    assert not packs(50, 1024)
    assert not packs(100, 1024, k=300)  # a small B
    assert not packs(300, 100)
    # The other one fetches rows that are far apart more slowly.
    assert packs(100, 1000, on=second)
    assert packs(50, 1024, on=second)
    assert not packs(64, 512, on=second)
    assert packs(400, 64, on=second) and not packs(399, 64, on=second)  # they are nearer
    assert not packs(5000, 60, on=second)


def test_low_tiles_copy_sooner() -> None:
    """Tiles of six rows use a panel of B more often, and less of each line of a transposed A, whose
    lines lie in more pages than a core has at hand. Their first one copies the panel."""

    def tiling(m: int, n: int, k: int, ta: int = 0, on: Target = ZEN3) -> tuple[bool, bool]:
        found = tiling_of(Product("float", 1, m, n, k, ta), on)
        return found.pack_a == 1, found.pack != 0

    assert tiling(24, 512, 128) == (False, True)
    assert tiling(23, 512, 128) == (False, False)
    assert tiling(48, 128, 512) == (False, True) and tiling(47, 128, 512) == (False, False)
    assert tiling_of(Product("float", 1, 512, 512, 512), ZEN3).pack == FILL
    assert tiling(16, 1024, 600) == (False, True)  # rows that collide
    assert tiling(128, 512, 2048, ta=1) == (True, True)
    assert tiling(128, 512, 256, ta=1) == (True, True)  # all lines stay, but not the pages
    assert tiling(128, 512, 100, ta=1) == (False, True)
    assert tiling(128, 128, 256, ta=1) == (False, True)  # panels that hardly pay for a copy
    assert tiling(128, 64, 2048, ta=1) == (False, True)  # few panels
    assert tiling(128, 512, 2048, ta=1, on=ZEN5) == (False, False)


def test_rows_that_come_from_far_away_are_copied() -> None:
    def copies(m: int, n: int, k: int, on: Target = ZEN3) -> bool:
        return tiling_of(Product("float", 1, m, n, k), on).pack_a == 1

    assert copies(25088, 128, 128) and not copies(2000, 128, 128)  # 25 and 2 MB of A and C
    assert copies(1024, 1024, 1024) and not copies(500, 512, 512)  # A stays beside the core
    assert not copies(25088, 64, 128)  # few panels
    assert not copies(25088, 128, 128, on=ZEN5)


def test_threads_do_not_share_the_lines_of_short_rows() -> None:
    def by_rows(m: int, n: int, k: int) -> bool:
        return tiling_of(Product("float", 1, m, n, k), ZEN5).by_rows == 1

    for m in (32, 48, 64, 80, 128):
        assert by_rows(m, 64, 64) and by_rows(m, 100, 100) and by_rows(m, 128, 128)
    assert not by_rows(4, 64, 64)  # a single tile
    assert not by_rows(128, 512, 512)  # a row takes long enough
    assert tiling_of(Product("float", 1, 1024, 1024, 4096, 1), ZEN5).by_rows == 1
    # Threads copy tiles of A each, and not all of them: the number of tiles is made even.


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_products_of_short_rows_on_any_number_of_threads(threads: int) -> None:
    random = np.random.default_rng(3)
    before = pool().threads
    pool().set_threads(threads)
    try:
        for m, n, k in ((32, 64, 64), (48, 100, 100), (80, 64, 64), (129, 72, 200)):
            x = random.integers(-9, 9, (m, k)).astype(np.float32)
            y = random.integers(-9, 9, (k, n)).astype(np.float32)
            assert (treadle.function(treadle.matmul)(x, y).numpy() == x @ y).all()
    finally:
        pool().set_threads(before)


def test_few_rows_have_wide_tiles() -> None:
    narrow = [Product("float", 1, m, 1024, 64) for m in (1, 2, 3, 4, 5)]
    assert [tiling_of(product, baseline(3)).vectors for product in narrow] == [8, 4, 3, 3, 2]
    features = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
    target = Target("x86_64-unknown-linux-gnu", "skylake-avx512", features)
    products = [Product("float", 1, m, 1024, 64) for m in (1, 2, 3)]
    assert [tiling_of(product, target).vectors for product in products] == [8, 8, 4]


@pytest.mark.parametrize("transpose_b", [0, 1])
def test_threads_share_what_takes_long_to_read(transpose_b: int) -> None:
    def parts(m: Any, n: Any, k: Any, **others: Any) -> Any:
        return tiling_of(Product("double", 1, m, n, k, 0, transpose_b, **others), ZEN5).parts

    assert parts(1, 100, 100) == 1
    assert parts(1, 300, 300) > 1  # little arithmetic, but a matrix that is hardly in the caches
    assert parts(100, 30, 30) == 1
    size = SymbolicDim.symbol("N")
    opened = parts(1, size, size)
    for n in (10, 100, 300, 2000):
        assert opened.evaluate({"N": n}) == parts(1, n, n)


def test_a_matrix_of_the_whole_batch_is_read_once() -> None:
    def parts(stride: int) -> Any:
        return tiling_of(Product("double", 20, 1, 100, 100, 0, 1, 100, stride), ZEN5).parts

    assert parts(0) == 2  # by its arithmetic
    assert parts(100 * 100) > parts(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_by_a_vector_of_any_size(dtype: Any) -> None:
    spec = treadle.TensorSpec([None, None], dtype), treadle.TensorSpec([None], dtype)
    run = treadle.function(
        lambda a, x: treadle.linalg.matvec(a, x), input_signature=spec, autograph=False
    )
    rng = np.random.default_rng(1)
    for m, n in [(0, 4), (4, 0), (1, 1), (3, 5), (5, 64), (300, 301), (7, 3000), (3000, 7)]:
        a, x = rng.standard_normal((m, n)).astype(dtype), rng.standard_normal(n).astype(dtype)
        found = run(a, x).numpy()
        tolerance = (2e-6 if dtype == np.float32 else 1e-14) * (n + 1) ** 0.5 * 4
        np.testing.assert_allclose(found, a.astype(np.float64) @ x, rtol=0, atol=tolerance)
