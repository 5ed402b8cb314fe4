"""Element shapes of lists."""

import treadle as td
from tests.graph.passes.helpers import check, check_unchanged, text_of
from treadle.graph.passes.element_shapes import infer_element_shapes
from treadle.graph.rewrite import clone_graph
from treadle.graph.verifier import verify
from treadle.ops.collections.tensor_array import TensorArray

LOOP = """(%n: i32[], %x: f32[2, B]) {
  %0: i32[] = const() {value=i32[](0)}
  %1: list f32[*] = list_new(%n) {dims=(<*>,), dtype=f32, capacity=None}
  %2: i32[], %3: list f32[*] = while(%0, %1, %n, %x)
    condition(%i: i32[], %a: list f32[*], %n: i32[], %x: f32[2, B]) {
      %p: bool[] = less(%i, %n)
      return %p
    }
    body(%i: i32[], %a: list f32[*], %n: i32[], %x: f32[2, B]) {
      %one: i32[] = const() {value=i32[](1)}
      %4: i32[] = add(%i, %one)
      %5: list f32[2, B] = list_set(%a, %i, %x) {grow=False}
      return %4, %5
    }
  %6: f32[n0, 2, B] = list_stack(%3) {dims=(2, <B>)}
  return %6
}"""


def test_a_list_written_in_a_loop_gets_the_shape_everywhere() -> None:
    after = LOOP.replace("list f32[*]", "list f32[2, B]").replace("(<*>,)", "(2, <B>)")
    check(infer_element_shapes, LOOP, after)
    check_unchanged(infer_element_shapes, after)


def test_dims_that_differ_or_belong_to_the_loop_stay_open() -> None:
    text = """(%x: f32[2], %y: f32[3]) {
      %0: list f32[*] = list_new() {dims=(<*>,), dtype=f32, capacity=None}
      %1: list f32[2] = list_push(%0, %x)
      %2: list f32[*] = list_new() {dims=(<*>,), dtype=f32, capacity=None}
      %3: f32[q] = strided_slice(%y) {begin=(0,), size=(<q>,), strides=(1,)}
      %4: list f32[q] = list_push(%2, %3)
      return %1, %4
    }"""
    after = text.replace("list f32[*]", "list f32[2]", 1).replace("(<*>,)", "(2,)", 1)
    after = after.replace("list f32[*]", "list f32[?]").replace("(<*>,)", "(<?>,)")
    check(infer_element_shapes, text, after.replace("list f32[q]", "list f32[?]"))


def test_lists_that_come_from_outside_or_hold_nothing_stay() -> None:
    check_unchanged(
        infer_element_shapes,
        """(%a: list f32[*], %x: f32[2]) {
          %0: list f32[2] = list_push(%a, %x)
          %1: list f32[*] = list_new() {dims=(<*>,), dtype=f32, capacity=None}
          %2: i32[] = list_length(%1)
          return %0, %2
        }""",
    )


def test_arrays_written_in_branches_of_traced_functions() -> None:
    @td.function(autograph=False)
    def positive(x: td.Tensor) -> td.Tensor:
        def body(i: td.Tensor, array: TensorArray) -> tuple:
            write = lambda: array.write(array.size(), x[i] * 2.0)
            return i + 1, td.cond(x[i] > 0.0, write, lambda: array)

        start = (td.constant(0), TensorArray(td.float32, size=0, dynamic_size=True))
        return td.while_loop(lambda i, _: i < 3, body, start)[1].stack()

    x = td.constant([1.0, -2.0, 3.0])
    graph = clone_graph(positive.get_concrete_function(x).graph)
    assert infer_element_shapes(graph)
    verify(graph)
    assert "[*]" not in text_of(graph)
    assert positive(x).numpy().tolist() == [2, 6]
