"""Common subexpressions."""

import numpy as np
import pytest

from tests.graph.passes.helpers import check, check_unchanged
from treadle.graph.passes.common import attrs_key, merge_common_subexpressions


def test_equal_nodes_of_one_region_are_merged() -> None:
    check(
        merge_common_subexpressions,
        """(%x: f32[2, 2]) {
          %0: f32[2, 2] = tanh(%x)
          %1: f32[2, 2] = tanh(%x)
          %2: f32[2] = const() {value=f32[2](1.0, 2.0)}
          %3: f32[2] = const() {value=f32[2](1.0, 2.0)}
          %4: f32[2, 2] = add(%0, %2)
          %5: f32[2, 2] = add(%1, %3)
          %6: f32[2, 2] = matmul(%4, %5) {transpose_a=False, transpose_b=True}
          %7: f32[2, 2] = matmul(%4, %5) {transpose_a=False, transpose_b=False}
          return %6, %7
        }""",
        """(%x: f32[2, 2]) {
          %0: f32[2, 2] = tanh(%x)
          %2: f32[2] = const() {value=f32[2](1.0, 2.0)}
          %4: f32[2, 2] = add(%0, %2)
          %6: f32[2, 2] = matmul(%4, %4) {transpose_a=False, transpose_b=True}
          %7: f32[2, 2] = matmul(%4, %4) {transpose_a=False, transpose_b=False}
          return %6, %7
        }""",
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("const() {value=f32[](0.0)}", "const() {value=f32[](-0.0)}"),
        ("add(%x, %y)", "add(%y, %x)"),
        ("read_variable(%v)", "read_variable(%v)"),
        ("reduce_sum(%x) {axis=(), keepdims=False}", "reduce_sum(%x) {axis=(), keepdims=True}"),
    ],
)
def test_what_differs_or_has_effects_stays(first: str, second: str) -> None:
    check_unchanged(
        merge_common_subexpressions,
        f"""(%x: f32[], %y: f32[]) captures (%v: ref f32[]) {{
          %0: f32[] = {first}
          %1: f32[] = {second}
          return %0, %1
        }}""",
    )


def test_regions_and_lists_are_kept_apart() -> None:
    check_unchanged(
        merge_common_subexpressions,
        """(%p: bool[], %x: f32[]) {
          %0: f32[] = tanh(%x)
          %1: f32[] = cond(%p, %x)
            then(%x: f32[]) {
              %2: f32[] = tanh(%x)
              return %2
            }
            else(%x: f32[]) { return %x }
          %3: list f32[] = list_new() {dims=(), dtype=f32, capacity=None}
          %4: list f32[] = list_new() {dims=(), dtype=f32, capacity=None}
          %5: list f32[] = list_push(%3, %x)
          %6: list f32[] = list_push(%4, %0)
          return %0, %1, %5, %6
        }""",
    )


def test_keys_tell_values_of_different_types_apart() -> None:
    values = [1, 1.0, True, -0.0, 0.0, 0, "1", (1,), [1], None, np.float32(1), np.ones(1)]
    keys = [attrs_key({"a": v}) for v in values]
    assert len(set(keys)) == len(values)
    assert attrs_key({"a": np.ones(3)}) == attrs_key({"a": np.ones(3)})
    assert attrs_key({"a": float("nan")}) == attrs_key({"a": float("nan")})
