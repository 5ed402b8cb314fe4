"""Saved values as tensors: how a list of a loop passes from the forward to the backward part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from treadle.autodiff.partition import Joint
from treadle.core import dtypes
from treadle.core.shapes import ANY, Dim, dim_symbols, fresh_symbol
from treadle.core.spec import ListSpec, Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.graph.ir import Value
from treadle.ops.collections.lists import (
    LIST_NEW,
    LIST_UNSTACK,
    list_length,
    list_new,
    list_stack,
    list_unstack,
)
from treadle.ops.collections.ragged_lists import list_pack, list_unpack
from treadle.ops.control.control_flow import WHILE
from treadle.ops.lowering import ListForm


def stored_specs(joint: Joint, value: Value) -> list[Spec]:
    """The specs of the tensors that `stored` gives for a saved value."""
    spec = value.spec
    if not isinstance(spec, ListSpec):
        return [spec]
    if joint.repeats:
        return [TensorSpec((), dtypes.int32)]
    if is_ragged(joint, value):
        shapes = TensorSpec((fresh_symbol("n"), spec.rank), dtypes.int64)
        return [TensorSpec((fresh_symbol(),), spec.dtype), shapes]
    stacked = TensorSpec((fresh_symbol("n"), *spec.dims), spec.dtype)
    return [stacked.with_fresh_symbols()]


def stored(joint: Joint, value: Value, result: Any) -> list[Tensor]:
    """The tensors that carry a saved value, which `result` stands for."""
    if not isinstance(value.spec, ListSpec):
        return [result]
    if joint.repeats:
        return [list_length(result)]
    if is_ragged(joint, value):
        return [*list_pack(result)]
    return [list_stack(result, _common_shape(joint, value) if ANY in value.spec.dims else None)]


def restored(joint: Joint, value: Value, tensors: Sequence[Any]) -> Value:
    """The saved value, from the tensors that carried it, with the spec that its readers expect."""
    found: Any = tensors[0]
    if joint.repeats and isinstance(value.spec, ListSpec):
        found = list_new(value.spec, tensors[0])
    elif len(tensors) == 2:
        found = list_unpack(tensors[0], tensors[1], value.spec.dims)
    elif isinstance(value.spec, ListSpec):
        found = list_unstack(tensors[0])
    result: Value = found.value
    return result


def is_ragged(joint: Joint, value: Value) -> bool:
    """Whether a list may have elements of several shapes, or none that tells the shape."""
    return ANY in value.spec.dims and _common_shape(joint, value) is None


def _common_shape(joint: Joint, value: Value) -> tuple[Dim, ...] | None:
    """The shape of all elements of a list that a loop fills, where it is known before the loop."""
    shapes = _element_shapes(value)
    if shapes is None or len(shapes) != 1 or value.node is None or value.node.op is not WHILE:
        return None
    (shape,) = shapes
    before = takewhile(lambda n: n is not value.node, joint.region.nodes)
    outside = [*joint.region.params, *(v for n in before for v in n.outputs)]
    known = {s for v in outside for s in v.spec.symbols()}
    return shape if all(dim_symbols(d) <= known for d in shape) else None


def _element_shapes(value: Value) -> set[tuple[Dim, ...]] | None:
    """The shapes of everything that is put into a list; None where that is not known."""
    shapes: set[tuple[Dim, ...]] = set()
    same: dict[Value, list[Value]] = {}  # the lists that a parameter of a region stands for
    todo, seen = [value], set[Value]()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        node = at.node
        if node is None:
            if at not in same:
                return None
            todo += same[at]
        elif node.regions:
            for region in node.regions:
                for param, given in zip(region.params, node.region_inputs, strict=True):
                    same.setdefault(param, []).append(given)
            for region in node.regions[node.op is WHILE :]:
                todo.append(region.results[at.index])
            if node.op is WHILE:
                body = node.regions[1]
                todo.append(node.inputs[at.index])
                for param, after in zip(body.params, body.results, strict=False):
                    same[param].append(after)
        else:
            form = node.op.lower
            if isinstance(form, ListForm) and form.puts:
                shapes.add(node.inputs[-1].spec.dims)
            elif node.op is LIST_UNSTACK:
                shapes.add(node.inputs[0].spec.dims[1:])
            elif node.op is not LIST_NEW and not any(_is_list(v) for v in node.inputs):
                return None
            todo += filter(_is_list, node.inputs)
    return shapes


def _is_list(value: Value) -> bool:
    return isinstance(value.spec, ListSpec)
