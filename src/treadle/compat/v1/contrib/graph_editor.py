"""``td.compat.v1.contrib.graph_editor``: graphs that are changed."""

from __future__ import annotations

from typing import Any

from treadle.compat.v1.graph import Graph
from treadle.compat.v1.values import Operation, Tensor, element, map_leaves
from treadle.core.origin import at, user_origin
from treadle.names import missing_in


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"Expected a graph, got: {type(graph)}")
    return [t for op in graph.get_operations() for t in op.outputs]


def make_list_of_op(ops: Any) -> list[Operation]:
    """The operations of a graph, or those of a list."""
    return ops.get_operations() if isinstance(ops, Graph) else list(ops)


def make_list_of_t(ts: Any) -> list[Tensor]:
    """The tensors of a graph, or those of a list."""
    return get_tensors(ts) if isinstance(ts, Graph) else list(ts)


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """The operations in a name scope."""
    prefix = scope.rstrip("/")
    return [
        op for op in make_list_of_op(ops) if op.name == prefix or op.name.startswith(prefix + "/")
    ]


get_ops_ios = make_list_of_op


def _readers(tensor: Tensor, can_modify: Any, cannot_modify: Any) -> list[Operation]:
    found = tensor.consumers()
    if can_modify is not None:
        chosen = set(make_list_of_op(can_modify))
        found = [op for op in found if op in chosen]
    refused = set(make_list_of_op(cannot_modify or []))
    return [op for op in found if op not in refused]


def _reroute(op: Operation, old: Tensor, new: Tensor) -> None:
    """Let an operation take another tensor.

    Raises:
        ValueError: it is used in a branch or body, or the new tensor depends on the operation.
    """
    if op.bodies or op.region is not op.graph._root:
        raise ValueError(
            f"{op.name}: tensors of branches and loops are not rerouted{at(user_origin())}"
        )
    if not old.shape.is_compatible_with(new.shape) or old.dtype is not new.dtype:
        raise ValueError(f"{new} cannot take the place of {old}{at(user_origin())}")
    order = op.graph.get_operations()
    if order.index(new.op) > order.index(op):
        op.graph.move_behind(op, new.op)

    def other(v: Any) -> Any:
        return new if element(v) is old else v

    op.args, op.kwargs = map_leaves(op.args, other), map_leaves(op.kwargs, other)
    op.inputs = list(dict.fromkeys(new if t is old else t for t in op.inputs))


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Let the operations that take tensors of `ts1` take those of `ts0` in their place.

    Returns:
        How many inputs were changed.
    """
    count = 0
    new, old = ([x] if not isinstance(x, list | tuple) else list(x) for x in (ts0, ts1))
    for to, of in zip(new, old, strict=True):
        for op in _readers(_tensor(of), can_modify, cannot_modify):
            _reroute(op, _tensor(of), _tensor(to))
            count += 1
    return count


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Let the operations that take tensors of `ts0` take those of `ts1`, and vice versa."""
    first = [([_tensor(t)], _readers(_tensor(t), can_modify, cannot_modify)) for t in ts0]
    count = reroute_ts(ts0, ts1, can_modify, cannot_modify)
    for (tensor,), readers in first:
        other = _tensor(ts1[[_tensor(t) for t in ts0].index(tensor)])
        for op in readers:
            _reroute(op, tensor, other)
            count += 1
    return count


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Let operations run before another one."""
    for other in cops if isinstance(cops, list | tuple) else [cops]:
        if other in op.control_inputs:
            raise ValueError(f"{other.name} is already a control_input of {op.name}")
        op._add_control_input(other)


def _tensor(value: Any) -> Tensor:
    found = element(value)
    if found is None:
        raise TypeError(f"{value!r} is no tensor of a graph")
    return found

__getattr__ = missing_in(__name__)
