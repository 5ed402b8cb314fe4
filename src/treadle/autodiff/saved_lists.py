"""Saved values as tensors: how a list of a loop passes from the forward to the backward part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from treadle.autodiff.partition import Joint
from treadle.core import dtypes
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import ListSpec, Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.graph.ir import Value
from treadle.ops.collections.lists import LIST_PUSH, list_length, list_new, list_stack, list_unstack
from treadle.ops.collections.ragged_lists import list_pack, list_unpack
from treadle.ops.control.control_flow import WHILE


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
    return [*list_pack(result)] if is_ragged(joint, value) else [list_stack(result)]


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
    """Whether a list of a loop may have elements of several shapes: they have dims that only the
    loop's body knows."""
    loop = value.node
    if loop is None or loop.op is not WHILE:
        return False
    push = loop.regions[1].results[value.index].node
    if push is None or push.op is not LIST_PUSH:
        return False
    before = takewhile(lambda n: n is not loop, joint.region.nodes)
    outside = [*joint.region.params, *(v for n in before for v in n.outputs)]
    return not push.inputs[1].spec.symbols() <= {s for v in outside for s in v.spec.symbols()}
