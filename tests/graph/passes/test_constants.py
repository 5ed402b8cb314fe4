"""Constant folding and inlining of conditionals with a constant predicate."""

import pytest

from tests.graph.passes.helpers import check, check_unchanged, graph_of, text_of
from treadle.graph.passes.conditionals import inline_conditionals
from treadle.graph.passes.constants import fold_constants


def test_folds_chains_shapes_and_inner_regions() -> None:
    check(
        fold_constants,
        """(%p: bool[], %x: f32[2, 5]) {
          %0: f32[] = const() {value=f32[](1.5)}
          %1: f32[] = add(%0, %0)
          %2: f32[] = negative(%1)
          %3: i32[2] = shape(%x) {out_type=i32}
          %4: f32[] = cond(%p, %x)
            then(%x: f32[2, 5]) {
              %5: f32[] = const() {value=f32[](2.0)}
              %6: f32[] = square(%5)
              return %6
            }
            else(%x: f32[2, 5]) {
              %5: f32[] = const() {value=f32[](2.0)}
              return %5
            }
          return %2, %3, %4
        }""",
        """(%p: bool[], %x: f32[2, 5]) {
          %2: f32[] = const() {value=f32[](-3.0)}
          %3: i32[2] = const() {value=i32[2](2, 5)}
          %4: f32[] = cond(%p)
            then() {
              %6: f32[] = const() {value=f32[](4.0)}
              return %6
            }
            else() {
              %5: f32[] = const() {value=f32[](2.0)}
              return %5
            }
          return %2, %3, %4
        }""",
    )


@pytest.mark.parametrize(
    "line",
    [
        "%1: i32[] = floordiv(%0, %0)",  # fails: it shall fail when the program runs
        "%1: i32[20] = fill(%0) {shape=(20,)}",  # costs nothing in a kernel
        "%1: i32[20] = range() {start=0, delta=1, size=20, dtype=i32}",
        "%1: i32[B] = fill(%0) {shape=(<B>,)}",  # the dim is not known
        "%1: i32[1] = shape(%x) {out_type=i32}",
        "print(%0) {message=''}",
    ],
)
def test_leaves_what_fails_is_large_or_unknown(line: str) -> None:
    result = "%1" if line.startswith("%1") else "%0"
    check_unchanged(
        fold_constants,
        f"""(%x: i32[B]) {{
          %0: i32[] = const() {{value=i32[](0)}}
          {line}
          return {result}
        }}""",
    )


def test_folding_keeps_the_origin() -> None:
    graph = graph_of("""() {
      %0: f32[] = const() {value=f32[](1.5)}  # user.py:1 f
      %1: f32[] = tanh(%0)  # user.py:2 f
      return %1
    }""")
    fold_constants(graph)
    node = graph.results[0].node
    assert node.op.name == "const"
    assert node.origin.line == 2


COND = """(%x: f32[2], %y: f32[n]) {
  %p: bool[] = const() {value=bool[](True)}
  %0: f32[d] = cond(%p, %x, %y)
    then(%a: f32[2], %b: f32[n]) {
      print(%a) {message=''}
      %1: f32[2] = tanh(%a)
      return %1
    }
    else(%a: f32[2], %b: f32[n]) {
      %2: f32[n] = exp(%b)
      return %2
    }
  %3: f32[1, d] = reshape(%0) {shape=(1, <d>)}
  return %3
}"""


def test_a_taken_branch_is_inlined_and_its_dims_become_known() -> None:
    after = """(%x: f32[2], %y: f32[n]) {
      print(%x) {message=''}
      %1: f32[2] = tanh(%x)
      %3: f32[1, 2] = reshape(%1) {shape=(1, 2)}
      return %3
    }"""
    check(inline_conditionals, COND, after)
    after = """(%x: f32[2], %y: f32[n]) {
      %1: f32[n] = exp(%y)
      %3: f32[1, n] = reshape(%1) {shape=(1, <n>)}
      return %3
    }"""
    check(inline_conditionals, COND.replace("](True", "](False"), after)


def test_nested_conditionals_are_inlined_together() -> None:
    graph = graph_of("""(%x: f32[]) {
      %p: bool[] = const() {value=bool[](True)}
      %0: f32[] = cond(%p, %x)
        then(%a: f32[]) {
          %q: bool[] = const() {value=bool[](False)}
          %1: f32[] = cond(%q, %a)
            then(%b: f32[]) { return %b }
            else(%b: f32[]) {
              %2: f32[] = exp(%b)
              return %2
            }
          return %1
        }
        else(%a: f32[]) { return %a }
      return %0
    }""")
    inline_conditionals(graph)
    assert "cond" not in text_of(graph)
    assert [n.op.name for n in graph.nodes] == ["const", "const", "exp"]


def test_a_predicate_that_is_not_constant_stays() -> None:
    check_unchanged(
        inline_conditionals,
        """(%p: bool[], %x: f32[]) {
          %0: f32[] = cond(%p, %x)
            then(%a: f32[]) { return %a }
            else(%a: f32[]) { return %a }
          return %0
        }""",
    )
