"""What does not matter for some sizes: nodes that change nothing, attributes of empty results.

Broadcasting from 1 row to B rows is a node of the traces with B > 1 only: shape functions return
their argument where it has the wanted shape already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from treadle.core.shapes import Dim
from treadle.graph.ir import Node
from treadle.ops.shaping.slicing import STRIDED_SLICE

Dims: TypeAlias = tuple[Dim, ...]


def is_meaningless(node: Node, name: str) -> bool:
    """Whether an attribute makes no difference to the program: the beginning of an empty slice, and
    the gradient (a closure of its trace) of a node that is not differentiated any more."""
    if "gradient_mark" in node.op.tags:
        return name == "gradient"
    return node.op is STRIDED_SLICE and name == "begin" and 0 in node.outputs[0].spec.dims


def guess_attr(name: str, seen: Sequence[Any], wanted: Dims, given: Dims) -> Any:
    """An attribute that a left-out node would have had.

    Args:
        name: the attribute's.
        seen: its value in the graphs that have the node.
        wanted: the dims of the value that stands for the node's result.
        given: the dims of its input.
    """
    if name in ("shape", "size"):
        fitting = (d for d in (given, wanted) if len(d) == len(seen[0]))
        return next(fitting, seen[0])
    return seen[0]
