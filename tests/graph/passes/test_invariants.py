"""Loop-invariant code motion."""

import pytest

from tests.graph.passes.helpers import check, check_unchanged
from treadle.graph.passes.invariants import hoist_invariants


def loop(lines: str) -> str:
    """A loop over %i and %s whose body computes %t from `lines`."""
    params = "%i: i32[], %s: f32[B, 3], %x: f32[B, 3], %w: f32[3, 3], %v: ref f32[3, 3]"
    return f"""(%n: i32[], %x: f32[B, 3], %w: f32[3, 3]) captures (%v: ref f32[3, 3]) {{
      %0: i32[], %1: f32[B, 3] = while(%n, %x, %x, %w, %v)
        condition({params}) {{
          %k: i32[] = const() {{value=i32[](0)}}
          %2: bool[] = greater(%i, %k)
          return %2
        }}
        body({params}) {{
          %k: i32[] = const() {{value=i32[](1)}}
          %j: i32[] = subtract(%i, %k)
          {lines}
          return %j, %t
        }}
      return %1
    }}"""


MATMUL = "matmul({}, {}) {{transpose_a=False, transpose_b=False}}"


def test_a_product_of_invariants_moves_out_with_its_reads_and_constants() -> None:
    check(
        hoist_invariants,
        loop(f"""
          %c: f32[] = const() {{value=f32[](2.0)}}
          %3: f32[3, 3] = read_variable(%v)
          %4: f32[3, 3] = multiply(%3, %c)
          %5: f32[B, 3] = {MATMUL.format("%x", "%4")}
          %t: f32[B, 3] = add(%s, %5)"""),
        f"""(%n: i32[], %x: f32[B, 3], %w: f32[3, 3]) captures (%v: ref f32[3, 3]) {{
          %c: f32[] = const() {{value=f32[](2.0)}}
          %3: f32[3, 3] = read_variable(%v)
          %4: f32[3, 3] = multiply(%3, %c)
          %5: f32[B, 3] = {MATMUL.format("%x", "%4")}
          %0: i32[], %1: f32[B, 3] = while(%n, %x, %5)
            condition(%i: i32[], %s: f32[B, 3], %p: f32[B, 3]) {{
              %k: i32[] = const() {{value=i32[](0)}}
              %2: bool[] = greater(%i, %k)
              return %2
            }}
            body(%i: i32[], %s: f32[B, 3], %p: f32[B, 3]) {{
              %k: i32[] = const() {{value=i32[](1)}}
              %j: i32[] = subtract(%i, %k)
              %t: f32[B, 3] = add(%s, %p)
              return %j, %t
            }}
          return %1
        }}""".replace("%c:", "%9:").replace("%c)", "%9)").replace("%p", "%8"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        f"%t: f32[B, 3] = {MATMUL.format('%s', '%w')}",  # depends on the loop
        "%4: f32[3, 3] = transpose(%w) {perm=(1, 0)}\n"  # a view costs nothing
        f"%t: f32[B, 3] = {MATMUL.format('%s', '%4')}",
        "%4: f32[3, 3] = read_variable(%v)\n"  # a read alone costs nothing
        f"%t: f32[B, 3] = {MATMUL.format('%s', '%4')}",
        "%4: f32[3, 3] = read_variable(%v)\n%5: f32[3, 3] = tanh(%4)\n"
        f"assign_variable(%v, %5)\n%t: f32[B, 3] = {MATMUL.format('%s', '%5')}",
        "%4: f32[3, 3] = identity(%w)\nprint(%4) {message=''}\n%t: f32[B, 3] = tanh(%s)"
        .replace("%4: f32[3, 3] = identity(%w)\n", "").replace("%4", "%w"),
    ],
)  # fmt: skip
def test_what_changes_costs_nothing_or_has_effects_stays(lines: str) -> None:
    check_unchanged(hoist_invariants, loop(lines))


def test_what_may_fail_stays() -> None:
    check_unchanged(
        hoist_invariants,
        """(%n: i32[], %z: i32[], %x: f32[B], %y: f32[C]) {
          %0: i32[], %1: f32[B] = while(%n, %x, %z, %y, %x)
            condition(%i: i32[], %s: f32[B], %z: i32[], %y: f32[C], %x: f32[B]) {
              %k: i32[] = const() {value=i32[](0)}
              %2: bool[] = greater(%i, %k)
              return %2
            }
            body(%i: i32[], %s: f32[B], %z: i32[], %y: f32[C], %x: f32[B]) {
              %k: i32[] = const() {value=i32[](1)}
              %3: i32[] = floordiv(%k, %z)
              %4: i32[] = subtract(%i, %3)
              %5: f32[B] = add(%x, %y)
              %6: f32[B] = multiply(%s, %5)
              return %4, %6
            }
          return %1
        }""",
    )


def test_dims_that_change_in_the_loop_do_not_leave_it() -> None:
    check_unchanged(
        hoist_invariants,
        """(%n: i32[], %x: f32[B]) {
          %0: i32[], %1: f32[d] = while(%n, %x, %n)
            condition(%i: i32[], %s: f32[d], %n: i32[]) {
              %k: i32[] = const() {value=i32[](9)}
              %2: bool[] = less(%i, %k)
              return %2
            }
            body(%i: i32[], %s: f32[d], %n: i32[]) {
              %3: i32[] = dim() {dim=<d>, out_type=i32}
              %4: i32[] = multiply(%3, %n)
              %5: f32[d*2] = concat(%s, %s) {axis=0}
              return %4, %5
            }
          return %1
        }""",
    )


def test_the_condition_is_hoisted_too_and_results_may_be_invariant() -> None:
    check(
        hoist_invariants,
        """(%n: i32[], %x: f32[3]) {
          %0: i32[], %1: f32[3] = while(%n, %x, %n, %x)
            condition(%i: i32[], %s: f32[3], %n: i32[], %x: f32[3]) {
              %2: i32[] = multiply(%n, %n)
              %3: bool[] = less(%i, %2)
              return %3
            }
            body(%i: i32[], %s: f32[3], %n: i32[], %x: f32[3]) {
              %4: i32[] = add(%i, %n)
              %5: f32[3] = tanh(%x)
              return %4, %5
            }
          return %1
        }""",
        """(%n: i32[], %x: f32[3]) {
          %6: i32[] = multiply(%n, %n)
          %7: f32[3] = tanh(%x)
          %0: i32[], %1: f32[3] = while(%n, %x, %n, %6, %7)
            condition(%i: i32[], %s: f32[3], %n: i32[], %a: i32[], %b: f32[3]) {
              %3: bool[] = less(%i, %a)
              return %3
            }
            body(%i: i32[], %s: f32[3], %n: i32[], %a: i32[], %b: f32[3]) {
              %4: i32[] = add(%i, %n)
              return %4, %b
            }
          return %1
        }""".replace("%a", "%8").replace("%b", "%9"),
    )
