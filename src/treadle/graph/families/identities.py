"""What does not matter for some sizes: nodes that change nothing, attributes of empty results.

Broadcasting from 1 row to B rows is a node of the traces with B > 1 only: shape functions return
their argument where it has the wanted shape already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from treadle.core.shapes import Dim, product
from treadle.graph.ir import Node
from treadle.ops.slicing import STRIDED_SLICE

Dims: TypeAlias = tuple[Dim, ...]


def is_meaningless(node: Node, name: str) -> bool:
    """Whether an attribute of a node is nothing to the program: where an empty slice begins, and
    the gradient (a closure of its trace) of what is not differentiated any more."""
    if node.op.name == "custom_gradient":
        return name == "gradient"
    return node.op is STRIDED_SLICE and name == "begin" and 0 in node.outputs[0].spec.dims


# (dims of the first input, attributes) -> the dims of the result if its elements are those of the
# input in the same order, else None.
Rule: TypeAlias = "Callable[[Dims, Mapping[str, Any]], Dims | None]"


def _broadcast(dims: Dims, attrs: Mapping[str, Any]) -> Dims | None:
    return dims if tuple(attrs["shape"]) == dims else None


def _reshape(dims: Dims, attrs: Mapping[str, Any]) -> Dims | None:
    shape = tuple(attrs["shape"])
    return shape if product(shape) == product(dims) else None


def _slice(dims: Dims, attrs: Mapping[str, Any]) -> Dims | None:
    whole = all(b == 0 for b in attrs["begin"]) and all(s == 1 for s in attrs["strides"])
    return dims if whole and tuple(attrs["size"]) == dims else None


def _reduce(dims: Dims, attrs: Mapping[str, Any]) -> Dims | None:
    """A sum (mean, maximum, ...) over axes of size 1."""
    axes = set(attrs["axis"])
    if any(dims[a] != 1 for a in axes):
        return None
    return dims if attrs["keepdims"] else tuple(d for i, d in enumerate(dims) if i not in axes)


RULES: dict[str, Rule] = {
    "broadcast_to": _broadcast,
    "reshape": _reshape,
    "strided_slice": _slice,
    "reduce_sum": _reduce,
    "reduce_mean": _reduce,
    "reduce_max": _reduce,
    "reduce_min": _reduce,
    "reduce_prod": _reduce,
}


def guess_attr(name: str, seen: Sequence[Any], wanted: Dims, given: Dims) -> Any:
    """An attribute that a left-out node would have had.

    Args:
        name: the attribute's.
        seen: what it is in the graphs that have the node.
        wanted: the dims of the value that stands for the node's result.
        given: the dims of its input.
    """
    if name in ("shape", "size"):
        fitting = (d for d in (given, wanted) if len(d) == len(seen[0]))
        return next(fitting, seen[0])
    return seen[0]
