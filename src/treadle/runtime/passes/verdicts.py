"""Checks of the verdicts that routines of the library give on their input.

A routine that may refuse its input (`Rows.fails`: a singular matrix, a position outside) gives one
more output, a number for each row that is not 0 where it does. Where any is set, the op's NumPy
implementation is called, which raises the error that eager execution raises.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.ops.control.checks import ANY, CHECK, GOOD, SET
from treadle.ops.lowering import Rows
from treadle.runtime.schedule.facts import Facts


def add_verdicts(graph: Graph, facts: Facts) -> bool:
    """Let the routines give their verdicts and check these, also in inner regions."""
    return _add_verdicts(graph, facts)


def _add_verdicts(region: Region, facts: Facts) -> bool:
    nodes, region.nodes, changed = region.nodes, [], False
    for node in nodes:
        for inner in node.regions:
            changed |= _add_verdicts(inner, facts)
        refused = _with_verdicts(node, facts)
        region.append(node)
        if refused is not None:
            _check(region, refused, node.outputs[-1])
            changed = True
    return changed


def _with_verdicts(node: Node, facts: Facts) -> Node | None:
    """Give a node the output of the verdicts; the node as it was, where there are any."""
    lower, specs = node.op.lower, [v.spec for v in node.outputs]
    count = facts.verdicts(node)
    if count is None:
        return None
    assert isinstance(lower, Rows)
    refused = Node(node.op, node.inputs, node.attrs, specs, (), node.origin)
    verdicts = TensorSpec((count,), dtypes.int32)
    node.op = replace(
        node.op, infer=lambda *_, **__: (*specs, verdicts), eager=None, gradient=None,
        lower=replace(lower, fails=False),
    )  # fmt: skip
    node.outputs.append(Value(verdicts, node, len(specs)))
    return refused


def _check(region: Region, refused: Node, verdicts: Value) -> None:
    found = verdicts
    for op in (SET, ANY, GOOD):
        spec = op.infer(found.spec)
        assert isinstance(spec, TensorSpec)
        found = region.append(Node(op, [found], {}, [spec], (), refused.origin)).outputs[0]
    attrs = {"of": refused}
    region.append(Node(CHECK, [found, *refused.inputs], attrs, (), (), refused.origin))
