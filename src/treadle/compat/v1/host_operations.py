"""Operations of a graph that Python does for a session."""

from __future__ import annotations

from typing import Any

from treadle.compat.v1.shapes import plain
from treadle.compat.v1.values import Operation, Tensor


def host_operation(
    graph: Any, name: str, type_: str, function: Any, inputs: list[Any], specs: list[Any]
) -> Operation:
    """An operation that Python does for a session, between compiled programs.

    Args:
        function: ``function(session, *values)`` gets the values of `inputs` as arrays and gives a
            list of results.
        specs: the types of the results.
    """
    graph.check_open()
    op = Operation(graph, graph.unique_name(name), type_, function, (function, list(inputs)))
    op.inputs = list(inputs)
    op.attributes["python"], op.attributes["of_session"] = function, True
    for index, spec in enumerate(specs):
        if spec.shape.rank is None:
            readings = graph.unranked(op, spec.dtype)
        else:
            readings = {frozenset(): graph.parameter(spec.dtype, plain(spec.shape))}
        op.outputs.append(Tensor(op, index, readings))
    op.result = list(op.outputs)
    graph._add(op)
    return op
