"""Writing back what a part holds."""

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged
from treadle.graph.passes.algebra import simplify_algebra

ROWS = "(%x: f32[4, 3], %i: i64[], %j: i64[], %v: f32[3])"
PARTS = "(%x: f32[9], %v: f32[3])"


def test_a_row_written_back():
    check(
        simplify_algebra,
        f"""{ROWS} {{
          %u: f32[4, 3] = index_update(%x, %i, %v) {{axis=0}}
          %r: f32[3] = index(%u, %i) {{axis=0}}
          %w: f32[4, 3] = index_update(%u, %i, %r) {{axis=0}}
          return %w
        }}""",
        f"""{ROWS} {{
          %u: f32[4, 3] = index_update(%x, %i, %v) {{axis=0}}
          return %u
        }}""",
    )


def test_a_part_written_back():
    check(
        simplify_algebra,
        f"""{PARTS} {{
          %u: f32[9] = slice_update(%x, %v) {{begin=(2,), strides=(2,)}}
          %r: f32[3] = strided_slice(%u) {{begin=(2,), size=(3,), strides=(2,)}}
          %w: f32[9] = slice_update(%u, %r) {{begin=(2,), strides=(2,)}}
          return %w
        }}""",
        f"""{PARTS} {{
          %u: f32[9] = slice_update(%x, %v) {{begin=(2,), strides=(2,)}}
          return %u
        }}""",
    )


@pytest.mark.parametrize(
    "text",
    [
        f"""{ROWS} {{
          %u: f32[4, 3] = index_update(%x, %i, %v) {{axis=0}}
          %r: f32[3] = index(%u, %j) {{axis=0}}
          %w: f32[4, 3] = index_update(%u, %i, %r) {{axis=0}}
          return %w
        }}""",
        f"""{PARTS} {{
          %u: f32[9] = slice_update(%x, %v) {{begin=(2,), strides=(2,)}}
          %r: f32[3] = strided_slice(%u) {{begin=(2,), size=(3,), strides=(1,)}}
          %w: f32[9] = slice_update(%u, %r) {{begin=(2,), strides=(2,)}}
          return %w
        }}""",
        f"""{ROWS} {{
          %r: f32[3] = index(%x, %i) {{axis=0}}
          %u: f32[4, 3] = index_update(%x, %i, %r) {{axis=0}}
          return %u
        }}""",
    ],
    ids=["other rows", "other parts", "rows that nothing has checked"],
)
def test_others_stay(text):
    check_unchanged(simplify_algebra, text)


def add_to_rows(a, b, order):
    c = np.zeros((a.shape[0], b.shape[1]), dtype=a.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i] += a[i, k] * b[k]
            c[order[k]] -= b[k]
        c[:, 1] *= 2
        c[-1] = c[order[i]]
    return c


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16])
def test_rows_changed_in_place(dtype):
    numbers = np.random.default_rng(5)
    a, b = (numbers.integers(-4, 5, (6, 6)).astype(dtype) for _ in range(2))
    order = numbers.integers(-6, 6, 6)
    jitted = td.jit(add_to_rows)
    np.testing.assert_array_equal(jitted(a, b, order), add_to_rows(a, b, order), strict=True)
    with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
        jitted(a, b, order + 6)


def test_rows_are_stored_where_they_are():
    def rows(a, b):
        c = np.zeros((5, 4))
        for i in range(5):
            for k in range(6):
                c[i] += a[i, k] * b[k]
        return c

    a, b = np.ones((5, 6)), np.ones((6, 4))
    schedule = td.inspect.stages(td.jit(rows), a, b)["schedule"]
    assert "update in" not in schedule and "workspace: 0 bytes" in schedule


def test_a_check_for_a_known_shape():
    check(
        simplify_algebra,
        """(%x: f32[4, 3], %y: f32[d0, 3]) {
          %a: f32[4, 3] = ensure_shape(%x) {shape=(4, 3)}
          %b: f32[4, 3] = ensure_shape(%y) {shape=(4, 3)}
          return %a, %b
        }""",
        """(%x: f32[4, 3], %y: f32[d0, 3]) {
          %b: f32[4, 3] = ensure_shape(%y) {shape=(4, 3)}
          return %x, %b
        }""",
    )
