"""Elements of lists that tell sizes are read before those whose sizes are computed of them."""

from tests.graph.passes.helpers import check, check_unchanged
from treadle.runtime.cpu.facts import CpuFacts
from treadle.runtime.passes.told_sizes import tell_sizes_first


def order(graph):
    return tell_sizes_first(graph, CpuFacts())


HEAD = "(%a: list f32[?], %b: list f32[?], %i: i32[])"


def test_the_element_that_tells_comes_first():
    check(
        order,
        HEAD + """ {
  %1: f32[min(1, d0)] = list_get(%a, %i) {dims=None}
  %2: f32[min(1, d0)] = negative(%1)
  %3: f32[d0] = list_get(%b, %i) {dims=None}
  return %2, %3
}""",
        HEAD + """ {
  %3: f32[d0] = list_get(%b, %i) {dims=None}
  %1: f32[min(1, d0)] = list_get(%a, %i) {dims=(<min(1, d0)>,)}
  %2: f32[min(1, d0)] = negative(%1)
  return %2, %3
}""",
    )


def test_it_stays_where_its_position_is_computed_later():
    check(
        order,
        HEAD + """ {
  %1: f32[min(1, d0)] = list_get(%a, %i) {dims=None}
  %2: i32[] = negative(%i)
  %3: f32[d0] = list_get(%b, %2) {dims=None}
  return %1, %3
}""",
        HEAD + """ {
  %1: f32[min(1, d0)] = list_get(%a, %i) {dims=(<min(1, d0)>,)}
  %2: i32[] = negative(%i)
  %3: f32[d0] = list_get(%b, %2) {dims=None}
  return %1, %3
}""",
    )


def test_sizes_that_nothing_tells_are_left_alone():
    check_unchanged(
        order,
        HEAD + """ {
  %1: f32[min(1, d0)] = list_get(%a, %i) {dims=None}
  %2: f32[d1] = list_get(%b, %i) {dims=None}
  return %1, %2
}""",
    )
