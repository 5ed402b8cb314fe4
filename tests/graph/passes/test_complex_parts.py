"""Complex tensors become pairs of real ones, except where somebody else sees them."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged
from treadle.graph.passes.complex_parts import split_complex_numbers
from treadle.graph.passes.magnitudes import compare_squares
from treadle.graph.rewrite import clone_graph
from treadle.ops.registry import OPS, run


def test_arithmetic_is_on_parts():
    check(
        split_complex_numbers,
        """(%x: c64[3], %y: c64[3]) {
          %z: c64[3] = multiply(%x, %y)
          return %z
        }""",
        """(%x: c64[3], %y: c64[3]) {
          %v0: f32[3] = real(%x)
          %v1: f32[3] = imag(%x)
          %v2: f32[3] = real(%y)
          %v3: f32[3] = imag(%y)
          %v4: f32[3], %v5: f32[3] = complex_multiply(%v0, %v1, %v2, %v3)
          %v6: c64[3] = complex(%v4, %v5)
          return %v6
        }""",
    )


def test_arguments_results_and_callbacks_keep_their_form():
    check_unchanged(
        split_complex_numbers,
        """(%x: c64[3]) {
          %y: c64[3] = cumprod(%x) {axis=0, exclusive=False, reverse=False}
          %a: f32[3] = real(%y)
          %b: f32[3] = imag(%x)
          %z: c64[3] = complex(%a, %b)
          return %x, %z
        }""",
    )


def test_what_was_joined_is_not_split():
    check(
        split_complex_numbers,
        """(%a: f32[3], %b: f32[3]) {
          %z: c64[3] = complex(%a, %b)
          %r: f32[3] = real(%z)
          return %r
        }""",
        """(%a: f32[3], %b: f32[3]) {
          return %a
        }""",
    )


@pytest.mark.parametrize("fn", [lambda x: x * x, lambda x: td.exp(x) + td.reduce_prod(x)])
def test_the_second_time_nothing_changes(fn):
    graph = td.function(fn).get_concrete_function(td.TensorSpec([4], td.complex64)).graph
    copy = clone_graph(graph)
    assert split_complex_numbers(copy)
    assert not split_complex_numbers(copy)


BOUNDS = (2.0, 0.1, 3.3, 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
def test_squares_decide_as_roots_do(name, dtype):
    """Numbers around the bound, and infinities and NaN, against the root of the rounded square."""
    np_dtype = np.dtype(dtype).type
    for bound in BOUNDS:
        angle = np.linspace(0, 6, 4001)
        near = 1 + np.linspace(-8, 8, 4001) * np.finfo(dtype).eps
        x, y = ((f(angle) * near * bound).astype(np_dtype) for f in (np.cos, np.sin))
        specials = np.array([0, np.inf, -np.inf, np.nan, 1e30, bound], np_dtype)
        x = np.concatenate([x, np.repeat(specials, 6)])
        y = np.concatenate([y, np.tile(specials, 6)])
        with np.errstate(over="ignore"):
            size = np.sqrt(x * x + y * y)
        size[np.isinf(x) | np.isinf(y)] = np.inf
        wanted = {"less": np.less, "less_equal": np.less_equal, "greater": np.greater,
                  "greater_equal": np.greater_equal}[name](size, np_dtype(bound))  # fmt: skip
        f = compares(OPS[name], np_dtype(bound))
        np.testing.assert_array_equal(f(td.constant(x), td.constant(y)), wanted)
        assert "sqrt" not in f.concrete_functions[0].executable.stages["kernels"]


def compares(op, bound):
    return td.function(lambda x, y: run(op, td.abs(td.complex(x, y)), td.constant(bound)))


def test_only_magnitudes_of_constants_are_squared():
    check_unchanged(
        compare_squares,
        """(%x: f32[3], %y: f32[3], %b: f32[]) {
          %m: f32[3] = complex_abs(%x, %y)
          %c: bool[3] = less(%m, %b)
          return %c
        }""",
    )
