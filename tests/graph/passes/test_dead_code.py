"""Dead code elimination."""

from tests.graph.passes.helpers import check, check_unchanged
from treadle.graph.passes.dead_code import eliminate_dead_code


def test_unused_nodes_go_and_effects_stay() -> None:
    check(
        eliminate_dead_code,
        """(%x: f32[]) captures (%v: ref f32[]) {
          %0: f32[] = tanh(%x)
          %1: f32[] = exp(%0)
          %2: f32[] = read_variable(%v)
          %3: f32[] = log(%x)
          assign_variable(%v, %3)
          print(%0) {message=''}
          return %x
        }""",
        """(%x: f32[]) captures (%v: ref f32[]) {
          %0: f32[] = tanh(%x)
          %3: f32[] = log(%x)
          assign_variable(%v, %3)
          print(%0) {message=''}
          return %x
        }""",
        clean=False,
    )


def test_cond_loses_unused_results_and_operands() -> None:
    check(
        eliminate_dead_code,
        """(%p: bool[], %x: f32[], %y: f32[]) {
          %0: f32[], %1: f32[] = cond(%p, %x, %y)
            then(%a: f32[], %b: f32[]) {
              %2: f32[] = tanh(%b)
              return %a, %2
            }
            else(%a: f32[], %b: f32[]) {
              %2: f32[] = exp(%b)
              return %2, %b
            }
          return %1
        }""",
        """(%p: bool[], %x: f32[], %y: f32[]) {
          %1: f32[] = cond(%p, %y)
            then(%b: f32[]) {
              %2: f32[] = tanh(%b)
              return %2
            }
            else(%b: f32[]) {
              return %b
            }
          return %1
        }""",
        clean=False,
    )


def test_results_that_tell_a_size_stay() -> None:
    """Nobody reads the array, but its size is that of another one."""
    check_unchanged(
        eliminate_dead_code,
        """(%p: bool[], %x: f32[s]) {
          %0: f32[n], %1: f32[s] = cond(%p, %x)
            then(%a: f32[s]) {
              return %a, %a
            }
            else(%a: f32[s]) {
              %2: f32[s*2] = concat(%a, %a) {axis=0}
              %3: f32[s] = tanh(%a)
              return %2, %3
            }
          %4: f32[] = const() {value=f32[](0.0)}
          %5: f32[n*3] = fill(%4) {shape=(<n*3>,)}
          return %1, %5
        }""",
    )


LOOP = """(%n: f32[], %x: f32[], %c: f32[]) {
  %0: f32[], %1: f32[], %2: f32[], %3: f32[] = while(%n, %x, %x, %n, %c, %n)
    condition(%i: f32[], %a: f32[], %b: f32[], %d: f32[], %c: f32[], %u: f32[]) {
      %p: bool[] = less(%i, %c)
      return %p
    }
    body(%i: f32[], %a: f32[], %b: f32[], %d: f32[], %c: f32[], %u: f32[]) {
      %4: f32[] = add(%i, %c)
      %5: f32[] = multiply(%a, %d)
      %6: f32[] = exp(%b)
      %7: f32[] = add(%d, %c)
      return %4, %5, %6, %7
    }
  return %1
}"""


def test_while_loses_variables_that_nothing_needs() -> None:
    check(
        eliminate_dead_code,
        LOOP,
        """(%n: f32[], %x: f32[], %c: f32[]) {
          %0: f32[], %1: f32[], %3: f32[] = while(%n, %x, %n, %c)
            condition(%i: f32[], %a: f32[], %d: f32[], %c: f32[]) {
              %p: bool[] = less(%i, %c)
              return %p
            }
            body(%i: f32[], %a: f32[], %d: f32[], %c: f32[]) {
              %4: f32[] = add(%i, %c)
              %5: f32[] = multiply(%a, %d)
              %7: f32[] = add(%d, %c)
              return %4, %5, %7
            }
          return %1
        }""",
        clean=False,
    )


def test_while_keeps_what_an_effect_in_its_body_needs() -> None:
    text = LOOP.replace("return %4, %5", "print(%6) {message=''}\n      return %4, %5")
    kept = text.replace(", %c, %n)", ", %c)").replace(", %u: f32[]", "")
    check(eliminate_dead_code, text, kept, clean=False)


def test_unused_loops_go_and_loops_with_effects_stay() -> None:
    check(
        eliminate_dead_code,
        LOOP.replace("return %1\n}", "return %n\n}"),
        "(%n: f32[], %x: f32[], %c: f32[]) { return %n }",
        clean=False,
    )
    check_unchanged(
        eliminate_dead_code,
        """(%p: bool[], %x: f32[]) {
          cond(%p, %x)
            then(%a: f32[]) {
              print(%a) {message=''}
              return
            }
            else(%a: f32[]) { return }
          return
        }""",
    )


def test_loop_variables_that_tell_positions_stay() -> None:
    check_unchanged(
        eliminate_dead_code,
        """(%n: i64[], %h: i64[], %x: f32[3]) {
          %0: i64[], %1: i64[], %2: f32[3] = while(%n, %h, %x, %n)
            condition(%i: i64[], %p: i64[], %y: f32[3], %m: i64[]) {
              %3: bool[] = less(%i, %m)
              return %3
            }
            body(%i: i64[], %p: i64[], %y: f32[3], %m: i64[]) {
              %4: i64[] = position(%p) {size=3}
              %5: bool[k0] = as_dim(%4) {dim=<k0>, least=0, most=2}
              %6: f32[1] = strided_slice(%y) {begin=(<k0>,), size=(1,), strides=(1,)}
              %7: f32[1] = tanh(%6)
              %8: f32[3] = slice_update(%y, %7) {begin=(<k0>,), strides=(1,)}
              %9: i64[] = const() {value=i64[](1)}
              %10: i64[] = add(%i, %9)
              %11: i64[] = subtract(%p, %9)
              return %10, %11, %8
            }
          return %2
        }""",
    )
