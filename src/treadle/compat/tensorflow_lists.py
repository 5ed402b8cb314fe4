"""Operations of TensorFlow's on lists of tensors, which are values: none changes its operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.tensorflow_ops import Attrs, constant, rule
from treadle.core.shapes import ANY
from treadle.ops.collections import lists


def _element(shape: Any, dtype: Any) -> Any:
    """The spec of a list's elements, from a shape of which -1 is not known."""
    dims = constant(shape, "the shape of a list's elements")
    unknown = dims == -1
    return td.TensorSpec(None if unknown else [None if d < 0 else d for d in dims], dtype)


def _element_dims(shape: Any) -> Any:
    """The dims of a list's elements, where an operation is told them as a constant: as an input, or
    as an attribute. None where it is not."""
    dims = td.get_static_value(shape) if td.is_tensor(shape) else shape
    if dims is None or np.ndim(dims) == 0:
        return None
    return tuple(ANY if d is None or d < 0 else int(d) for d in dims)


def _input(inputs: Sequence[Any], number: int) -> Any:
    """An input that only some versions of an operation have."""
    return inputs[number] if len(inputs) > number else None


@rule("TensorListReserve")
def _list_new(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return lists.list_new(_element(inputs[0], attrs["element_dtype"]), inputs[1])


@rule("EmptyTensorList")
def _list_empty(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """How many elements there may be is no more than a hint."""
    return lists.list_new(_element(inputs[0], attrs["element_dtype"]))


@rule("TensorListFromTensor")
def _list_unstack(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return lists.list_unstack(inputs[0])


@rule("TensorListStack")
def _list_stack(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return lists.list_stack(inputs[0], _element_dims(_input(inputs, 1)))


@rule("TensorListGetItem")
def _list_get(inputs: Sequence[Any], attrs: Attrs) -> Any:
    items, index = inputs[:2]
    return lists.list_get(items, index, _element_dims(_input(inputs, 2)))


@rule("TensorListSetItem")
def _list_set(inputs: Sequence[Any], attrs: Attrs) -> Any:
    items, index, value = inputs
    grows = bool(attrs.get("resize_if_index_out_of_bounds"))
    return lists.list_set(items, index, value, grow=grows)


@rule("TensorListPushBack")
def _list_push(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return lists.list_push(*inputs)


@rule("TensorListLength")
def _list_length(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return lists.list_length(inputs[0])


@rule("TensorListPopBack", results="output_handle tensor")
def _list_pop(inputs: Sequence[Any], attrs: Attrs) -> Any:
    items = inputs[0]
    last = lists.list_length(items) - 1
    element = lists.list_get(items, last, _element_dims(_input(inputs, 1)))
    return lists.list_truncate(items, last), element


@rule("TensorListConcat", "TensorListConcatV2", results="tensor lengths")
def _list_concat(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The shape of the elements is an input of the later version, of which only the first axis may
    differ from element to element."""
    shape = attrs.get("element_shape") if len(inputs) == 1 else inputs[1]
    joined, lengths = lists.list_concat(inputs[0], _element_dims(shape))
    return joined, td.cast(lengths, td.int64)


@rule("TensorListGather")
def _list_gather(inputs: Sequence[Any], attrs: Attrs) -> Any:
    items, indices = inputs[:2]
    return td.gather(lists.list_stack(items, _element_dims(_input(inputs, 2))), indices)


@rule("TensorListScatter", "TensorListScatterV2")
def _list_scatter(inputs: Sequence[Any], attrs: Attrs) -> Any:
    values, indices, shape = inputs[:3]
    empty = lists.list_new(_element(shape, values.dtype), inputs[3] if inputs[3:] else 0)
    return lists.list_scatter(empty, indices, values, grow=True)


@rule("TensorListSplit")
def _list_split(inputs: Sequence[Any], attrs: Attrs) -> Any:
    values, _, lengths = inputs
    return lists.list_split(values, lengths)


@rule("TensorListResize")
def _list_resize(inputs: Sequence[Any], attrs: Attrs) -> Any:
    items, size = inputs
    return lists.list_extend(lists.list_truncate(items, size), size)


@rule("TensorListElementShape")
def _list_element_shape(inputs: Sequence[Any], attrs: Attrs) -> Any:
    spec = inputs[0].spec.element
    dims = [d if isinstance(d, int) else -1 for d in spec.dims] if spec.has_rank else -1
    return td.constant(dims, attrs["shape_type"])
