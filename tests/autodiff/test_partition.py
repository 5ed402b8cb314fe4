"""What the forward part of a function saves for the backward part."""

from __future__ import annotations

from treadle.autodiff.partition import _unknown_symbols
from treadle.graph.parser import parse_graph

BACKWARD = """
graph backward(%x: f32[max(n, 0)], %y: f32[m]) {
  %1: f32[max(n, 0)] = negative(%x)
  %2: f32[max(n, 0), 1] = reshape(%1) {shape=(<max(n, 0)>, 1)}
  %3: f32[m] = negative(%y)
  %4: f32[m, 1] = reshape(%3) {shape=(<m>, 1)}
  return %2, %4
}
"""


def test_a_size_that_is_an_expression_does_not_tell_its_symbols():
    """Nodes make values of such sizes before others mention the symbols: these are saved."""
    nodes = parse_graph(BACKWARD).nodes
    assert _unknown_symbols(nodes, set()) == {"n"}
