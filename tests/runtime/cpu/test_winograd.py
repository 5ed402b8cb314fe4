"""Convolutions by short convolutions: the matrices, values, errors, and where they are used."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import RUNNABLE
from tests.runtime.cpu.test_library import call, check, convolution_nodes, node_of
from treadle.core.spec import TensorSpec
from treadle.core.switches import disabled
from treadle.runtime.cpu import library
from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT, winograd_tiling
from treadle.runtime.cpu.convolution.points import SIZE, of_pixels, of_sums, of_weights, sums_of
from treadle.runtime.cpu.convolution.tiling import Geometry
from treadle.runtime.cpu.convolution.winograd_tiling import takes_winograd
from treadle.runtime.cpu.target import host, using
from treadle.runtime.tuning import Cache

OPS = (FORWARD, TO_INPUT, TO_FILTER)


def times(matrix: Any, vector: Any) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


@pytest.mark.parametrize("window", range(2, SIZE))
def test_short_convolutions_are_exact(window: int) -> None:
    numbers = [Fraction(n) for n in (3, -7, 2, 11, 5, -13)]
    weights = [Fraction(n) for n in (17, -4, 6, 9, 8)][:window]
    products = zip(times(of_weights(window), weights), times(of_pixels(), numbers), strict=True)
    found = times(of_sums(sums_of(window)), [a * b for a, b in products])
    starts = range(sums_of(window))
    wanted = [sum(w * numbers[m + i] for i, w in enumerate(weights)) for m in starts]
    assert found == wanted


def test_pixels_and_sums_are_multiplied_by_few_powers_of_two() -> None:
    for matrix in (of_pixels(), *(of_sums(sums_of(k)) for k in range(2, SIZE))):
        for c in (c for row in matrix for c in row):
            assert c.denominator in (1, 2, 4, 8, 16) and abs(c) <= 16


CASES = [
    # image (n, h, w, c), filter (kh, kw, o), strides, padding, dilations
    ((2, 17, 18, 32), (3, 3, 32), (1, 1), "SAME", (1, 1)),
    ((1, 14, 14, 32), (5, 5, 64), (1, 1), "SAME", (1, 1)),
    ((2, 19, 14, 48), (3, 5, 32), (1, 1), "VALID", (1, 1)),
    ((1, 15, 18, 80), (5, 3, 48), (1, 1), ((0, 3), (5, 1)), (1, 1)),
    ((3, 22, 16, 32), (4, 2, 80), (1, 1), "SAME", (1, 1)),
    ((0, 16, 16, 32), (3, 3, 32), (1, 1), "SAME", (1, 1)),
]


def takes(node: Any) -> bool:
    routine = library.routine_for(node)
    return routine is not None and routine.symbol.startswith(winograd_tiling.WINOGRAD)


@pytest.mark.parametrize("target", [None, *RUNNABLE])
@pytest.mark.parametrize("which", range(3), ids=OPS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case: tuple, which: int, target: str | None) -> None:
    """Workspace and results lie between guards, and threads run one after another; see `check`."""
    if target is not None and case is not CASES[3]:
        pytest.skip("the same code for other sizes")
    with using(RUNNABLE.get(target or "", host())):
        node, shapes = convolution_nodes(case, "float32")[which]
        assert takes(node)
        check(node, shapes)


@pytest.mark.parametrize("which", range(3), ids=OPS)
def test_values_in_float64(which: int) -> None:
    node, shapes = convolution_nodes(CASES[3], "float64")[which]
    assert takes(node)
    check(node, shapes)


@pytest.mark.parametrize("which", range(3), ids=OPS)
def test_strips_of_one_row(which: int) -> None:
    """Caches so small that a strip has one row of tiles; the bits are the same."""
    l1, _, l3 = host().caches
    node, shapes = convolution_nodes(CASES[2], "float32")[which]
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s).astype(np.float32) for s in shapes]
    wanted = call(node, inputs)
    with using(replace(host(), caches=(l1, Cache(32 << 10, 8), l3))):
        assert call(node, inputs, workers=3).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("which", range(3), ids=OPS)
def test_errors(which: int) -> None:
    """The error stays within a few roundings of the largest terms: about three times that of
    summing in order, of which float32 sums of 576 products have 4e-7."""
    case = ((2, 24, 24, 64), (3, 3, 64), (1, 1), "SAME", (1, 1))
    node, shapes = convolution_nodes(case, "float32")[which]
    wide, _ = convolution_nodes(case, "float64")[which]
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s) for s in shapes]
    assert takes(node)
    found = call(node, [x.astype(np.float32) for x in inputs]).astype(np.float64)
    with disabled("winograd"):
        assert not takes(wide)
        exact = call(wide, [x.astype(np.float32).astype(np.float64) for x in inputs])
    error = np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2))
    assert error < 2e-6
    np.testing.assert_allclose(found, exact, rtol=0, atol=5e-6 * np.abs(exact).max())


@pytest.mark.parametrize("which", range(3), ids=OPS)
def test_epilogues_and_open_batches(which: int) -> None:
    """In programs: elementwise work that follows, and a number of images that is open."""

    def run(x: Any, f: Any, dy: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([x, f])
            y = td.nn.conv2d(x, f, 1, "SAME")
        slopes = tape.gradient(y, [x, f], output_gradients=dy)
        return td.nn.relu([y, *slopes][which] + 0.25) * 2.0

    specs = [td.TensorSpec([None, 17, 17, 32]), td.TensorSpec([3, 3, 32, 48])]
    program = td.function(run, [*specs, td.TensorSpec([None, 17, 17, 48])], autograph=False)
    random = np.random.default_rng(0)
    for n in (1, 3):
        shapes = (n, 17, 17, 32), (3, 3, 32, 48), (n, 17, 17, 48)
        values = [td.constant(random.standard_normal(s).astype(np.float32)) for s in shapes]
        wanted = run(*values).numpy()
        np.testing.assert_allclose(
            program(*values).numpy(), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max()
        )


def geometry(image: tuple, filters: tuple, **attrs: Any) -> Geometry:
    known = {"strides": (1, 1), "padding": "SAME", "dilations": (1, 1)} | attrs
    node = node_of("conv2d", [TensorSpec(image), TensorSpec(filters)], known)
    found = Geometry.of("float", image, filters, node.outputs[0].spec.dims, known)
    assert found is not None
    return found


def test_where_they_are_used() -> None:
    images, filters = (8, 28, 28, 64), (3, 3, 64, 64)
    for op in OPS:
        assert takes_winograd(op, geometry(images, filters))
        assert not takes_winograd(op, geometry(images, filters, strides=(2, 2)))
        assert not takes_winograd(op, geometry(images, filters, dilations=(1, 2)))
        assert not takes_winograd(op, geometry(images, (3, 3, 32, 64)))  # groups
        assert not takes_winograd(op, geometry(images, (1, 1, 64, 64)))
        assert not takes_winograd(op, geometry(images, (7, 7, 64, 64)))
        assert not takes_winograd(op, geometry(images, (3, 3, 64, 60)))  # parts of vectors
        assert not takes_winograd(op, geometry((8, 28, 28, 16), (3, 3, 16, 64)))
        assert not takes_winograd(op, geometry((8, 7, 7, 64), filters))  # few tiles
        assert not takes_winograd(op, geometry((8, 28, 28, 512), (3, 3, 512, 512)))
        with disabled("winograd"):
            assert not takes_winograd(op, geometry(images, filters))
