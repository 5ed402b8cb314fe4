"""Generated convolutions of random geometry against the ops' NumPy implementations."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.runtime.cpu.test_library import check, convolution_nodes
from treadle.core.shapes import SymbolicDim
from treadle.runtime.cpu.convolution import edges, tiling
from treadle.runtime.cpu.target import baseline, host, named, using
from treadle.runtime.tuning import Cache

extents = st.integers(1, 20)
small = st.integers(1, 3)


@st.composite
def geometries(draw: Any) -> tuple:
    """Images, filters, strides, padding and dilations for which there is an output."""
    window = [draw(st.integers(1, 5)) for _ in range(2)]
    strides = tuple(draw(small) for _ in range(2))
    dilations = tuple(draw(small) for _ in range(2))
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    padding = draw(st.sampled_from(["SAME", "VALID", "explicit"]))
    sides: Any = padding
    least = reach if padding == "VALID" else [1, 1]
    image = [draw(st.integers(low, low + 14)) for low in least]
    if padding == "explicit":
        sides = tuple(
            (draw(st.integers(0, 6)), draw(st.integers(0, 6)) + max(0, r - e))
            for r, e in zip(reach, image, strict=True)
        )
    c, o = draw(st.integers(1, 20)), draw(st.sampled_from([1, 3, 8, 16, 17, 33]))
    n, groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 5]))
    return ((n, *image, c * groups), (*window, o * groups), strides, sides, dilations, groups)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("exact", [False, True])
def test_random_geometry(small: bool, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """small: caches in which frames have 1 KiB, so that an image has many strips.

    exact: taps beyond the sides are left out wherever that is possible.
    """
    l1, l2, l3 = host().caches
    target = replace(host(), caches=(l1, Cache(8 << 10, 8) if small else l2, l3))
    if small:
        assert tiling.frame_bytes(target) == 1 << 10
        monkeypatch.setattr(tiling, "STRIP", 1 << 9)
    if exact:
        monkeypatch.setattr(edges, "CALL_CYCLES", -1)
        monkeypatch.setattr(tiling, "LEAST_ROWS", 1)
        monkeypatch.setattr(tiling, "WORTH", 1 << 20)

    @settings(max_examples=40, deadline=None)
    @given(geometries(), st.sampled_from(["float32", "float32", "float64"]))
    def run(case: tuple, dtype: str) -> None:
        for node, shapes in convolution_nodes(case, dtype):
            check(node, shapes)

    with using(target):
        run()


def geometry(size: int, window: int, c: int, o: int, **attrs: Any) -> tiling.Geometry:
    known = {"strides": (1, 1), "padding": "SAME", "dilations": (1, 1)} | attrs
    count = -(-size // known["strides"][1])
    shapes = (8, size, size, c), (window, window, c, o), (8, count, count, o)
    found = tiling.Geometry.of("float", *shapes, known)
    assert found is not None
    return found


def is_exact(found: tiling.Tiling) -> bool:
    return dict(zip(tiling.NUMBERS, found.numbers, strict=True))["exact"] == 1


def tiled(op: str, g: tiling.Geometry) -> tiling.Tiling:
    return tiling.tiling_of(op, g, host(), tiling.rule(op, g, host()))


def test_taps_beyond_the_sides_are_left_out_where_that_pays() -> None:
    for op in (tiling.FORWARD, tiling.TO_INPUT, tiling.TO_FILTER):
        assert is_exact(tiled(op, geometry(14, 5, 32, 64)))
        assert not is_exact(tiled(op, geometry(14, 1, 32, 64)))  # none is beyond them
        assert not is_exact(tiled(op, geometry(224, 3, 4, 4)))  # few are
    # Strides and dilations: where the taps of a row do not follow one another, frames stay.
    assert is_exact(tiled(tiling.FORWARD, geometry(14, 5, 32, 64, strides=(2, 2))))
    assert not is_exact(tiled(tiling.TO_INPUT, geometry(14, 5, 32, 64, strides=(2, 2))))
    assert not is_exact(tiled(tiling.FORWARD, geometry(14, 3, 32, 64, dilations=(2, 2))))


def test_input_gradients_of_few_channels_are_dot_products() -> None:
    """They read the filters where they are; others are as they were."""

    def dots(op: str, *extents: int, level: int = 4) -> bool:
        target, g = baseline(level), geometry(*extents)
        found = tiling.tiling_of(op, g, target, tiling.rule(op, g, target))
        assert found.needs
        uses = {tile.along == "dots" for tile in found.needs}
        assert uses == {dict(zip(tiling.NUMBERS, found.numbers, strict=True))["dots"] == 1}
        assert uses == {not found.packers} or op != tiling.TO_INPUT
        return uses == {True}

    assert dots(tiling.TO_INPUT, 28, 5, 1, 32) and dots(tiling.TO_INPUT, 28, 3, 3, 64)
    assert not dots(tiling.TO_INPUT, 28, 5, 8, 32) and not dots(tiling.TO_INPUT, 28, 3, 3, 4)
    assert not dots(tiling.FORWARD, 28, 5, 1, 32) and not dots(tiling.TO_FILTER, 28, 5, 1, 32)
    assert dots(tiling.TO_INPUT, 28, 5, 1, 32, level=3)
    assert not dots(tiling.TO_INPUT, 28, 5, 1, 32, level=1)


def test_which_taps_the_windows_of_a_tile_lack() -> None:
    row = edges.Row(6, 5, 1, -2, 6)
    assert row.skipped(6) == [(4, 2), (5, 1), (5, 1), (4, 2)]
    assert row.skipped(3) == [(1, 2), (2, 1), (2, 1), (1, 2)]
    assert edges.Row(5, 3, 1, 0, 7).skipped(5) == []
    assert edges.Row(5, 3, 1, 1, 9).skipped(5) is None  # no tap is sure to be inside
    assert row.gains(6, 1000) == [4, 5]
    assert row.gains(6, 1) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_nothing_is_left_to_python(groups: int, dtype: str) -> None:
    """16-bit images are summed in float32 and rounded once, forwards and backwards."""
    rng = np.random.default_rng(0)
    x = td.cast(td.constant(rng.standard_normal((2, 9, 8, 6))), dtype)
    filters = td.cast(td.constant(rng.standard_normal((3, 3, 6 // groups, 12))), dtype)

    def gradients(x: td.Tensor, filters: td.Tensor) -> list[td.Tensor]:
        with td.GradientTape() as tape:
            tape.watch([x, filters])
            y = td.nn.conv2d(x, filters, 2, "SAME")
            loss = td.reduce_sum(td.cast(y, "float32") ** 2)
        return [y, *tape.gradient(loss, [x, filters])]

    compiled = td.function(gradients, autograph=False)
    step = float(ml_dtypes.finfo(x.dtype.np_dtype).eps)
    for found, expected in zip(compiled(x, filters), gradients(x, filters), strict=True):
        assert found.dtype is x.dtype
        a, b = (t.numpy().astype(np.float64) for t in (found, expected))
        np.testing.assert_allclose(a, b, rtol=0, atol=(1.01 * step + 1e-5) * np.abs(b).max())
    counters = compiled.get_concrete_function(x, filters).executable.counters
    assert counters["callbacks"] == 0


def test_filters_are_copied_where_many_pixels_use_them() -> None:
    """The rule's choice: rows of filters that are far apart share sets of the caches, and pages."""

    def pack(x: tuple, filters: tuple, name: str = "avx2", op: str = tiling.FORWARD) -> int:
        with using(named(name), run=False):
            attrs = {"strides": (2, 2), "padding": "SAME", "dilations": (1, 1)}
            y = (x[0], -(-x[1] // 2), -(-x[2] // 2), filters[3])
            g = tiling.Geometry.of("float", x, filters, y, attrs)
            return tiling.rule(op, g, named(name)).pack

    assert pack((32, 28, 28, 64), (3, 3, 64, 128)) == 1
    assert pack((1, 14, 14, 256), (3, 3, 256, 512)) == 1
    assert pack((SymbolicDim.symbol("n"), 28, 28, 64), (3, 3, 64, 128)) == 1
    assert pack((1, 7, 7, 512), (3, 3, 512, 512)) == 0  # 16 pixels
    assert pack((32, 28, 28, 64), (3, 3, 64, 16)) == 0  # a single panel
    assert pack((32, 28, 28, 64), (3, 3, 32, 128)) == 0  # two groups
    assert pack((32, 28, 28, 64), (3, 3, 64, 128), op=tiling.TO_INPUT) == 0
