"""The verifier accepts what is built and names what is broken."""

import pytest

from tests.graph.random_graphs import RandomGraph
from treadle.core.origin import Origin
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Region
from treadle.graph.parser import parse_graph
from treadle.graph.verifier import GraphError, verify
from treadle.ops.elementwise import arithmetic, comparison  # noqa: F401
from treadle.ops.reductions import reduction  # noqa: F401
from treadle.ops.shaping import reshaping  # noqa: F401

F32 = TensorSpec((), "float32")


@pytest.mark.parametrize("seed", range(20))
def test_accepts_built_graphs(seed: int) -> None:
    verify(RandomGraph(seed).graph)


def two_nodes() -> tuple[Graph, Node, Node]:
    graph = Graph("f")
    x = graph.add_param(F32, "x")
    origin = Origin("user.py", 7, "f")
    first = graph.append(Node(arithmetic.ADD, [x, x], {}, [F32], (), origin))
    second = graph.append(Node(arithmetic.ADD, [first.outputs[0], x], {}, [F32], (), origin))
    graph.results = list(second.outputs)
    return graph, first, second


def refused(graph: Graph, message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        verify(graph, "a_pass")
    assert "graph f after a_pass" in str(caught.value)


def test_names_node_and_line() -> None:
    graph, first, _ = two_nodes()
    first.outputs[0].spec = TensorSpec((3,))
    refused(graph, r"(?s)shape rule gives \(f32\[\]\).*add\(%x, %x\).*user.py:7")


def test_use_before_definition() -> None:
    graph, *_ = two_nodes()
    graph.nodes.reverse()
    refused(graph, "input 0 .* is not defined before it")


def test_result_that_is_not_defined() -> None:
    graph, *_ = two_nodes()
    graph.nodes.pop()
    refused(graph, "result 0 .* is not defined")


def test_value_of_another_region() -> None:
    graph, first, second = two_nodes()
    inner = Region()
    inner.results = [first.outputs[0]]
    node = Node(parse_cond().nodes[1].op, [second.outputs[0]], {}, [F32], [inner, inner])
    graph.append(node)
    refused(graph, "is not defined before it|belongs to two nodes|not defined")


def test_wrong_owner_and_place() -> None:
    graph, first, _ = two_nodes()
    first.region = Region()
    refused(graph, "not the one that holds it")
    graph, first, _ = two_nodes()
    graph.nodes.append(first)
    refused(graph, "two places")
    graph, first, _ = two_nodes()
    first.outputs[0].index = 1
    refused(graph, "does not point back")
    graph, *_ = two_nodes()
    graph.captures = [1, 2]
    refused(graph, "2 captures but 1 parameters")


COND = """\
graph f(%x: f32[], %y: f32[3]) {
  %p: bool[] = less(%x, %x)
  %0: f32[] = cond(%p, %x)
    then(%a: f32[]) { return %a }
    else(%b: f32[]) { return %b }
  return %0
}
"""
WHILE = """\
graph f(%x: f32[], %y: f32[3]) {
  %0: f32[] = while(%x, %y)
    condition(%a: f32[], %c: f32[3]) {
      %p: bool[] = less(%a, %a)
      return %p
    }
    body(%a: f32[], %c: f32[3]) {
      %s: f32[] = reduce_sum(%c) {axis=(0,), keepdims=False}
      return %s
    }
  return %0
}
"""


def parse_cond() -> Graph:
    return parse_graph(COND)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (COND, "cond(%p", "cond(%x", "predicate must be a bool"),
        (COND, "{ return %b }", "{ return }", "0 results for 1 outputs"),
        (COND, "else(%b: f32[])", "else(%b: f32[], %c: f32[])", "takes 2 values"),
        (COND, "then(%a: f32[]) { return %a }", "then(%a: f32[2]) { return %a }", "is given f32"),
        (COND, "%0: f32[] = cond", "%0: f64[] = cond", "shape rule gives"),
        (COND, "(%p, %x)", "(%p, %y)", "is given f32"),
        (WHILE, "return %p", "return %a", "condition must give"),
        (WHILE, "return %s", "return %c", "is carried as"),
        (WHILE, "return %s", "return %s, %c, %s", "3 carried values"),
        (WHILE, "%0: f32[] = while", "%0: f32[3] = while", "shape rule gives"),
        (WHILE, "(%x, %y)", "(%x)", "takes 2 values"),
        (WHILE, "reduce_sum(%c) {axis=(0,), keepdims=False}", "add(%c)", "shape rule refuses"),
    ],
)
def test_control_flow_rules(text: str, old: str, new: str, message: str) -> None:
    verify(parse_graph(text))
    assert old in text
    refused(parse_graph(text.replace(old, new, 1)), message)


def test_fresh_symbols_may_have_any_name_but_must_be_consistent() -> None:
    text = """\
graph f(%p: bool[], %x: f32[2], %y: f32[n]) {
  %0: f32[q] = cond(%p, %x, %y)
    then(%a: f32[2], %b: f32[n]) { return %a }
    else(%a: f32[2], %b: f32[n]) { return %b }
  return %0
}
"""
    verify(parse_graph(text))
    refused(parse_graph(text.replace("[q]", "[q, 1]")), "shape rule gives")
    known = "graph f(%x: f32[B], %y: f32[C]) { %0: f32[C] = add(%x, %x)\n return %0 }"
    refused(parse_graph(known), "shape rule gives")
