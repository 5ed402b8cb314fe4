"""Batching rules of lists: the lists of all examples have one length, and are one list whose
elements hold those of all examples."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.context import context
from treadle.core.shapes import ANY, Dim
from treadle.core.spec import ListSpec
from treadle.core.tensor import Tensor
from treadle.ops.batching.call import (
    BatchedCall,
    NoRule,
    Same,
    element_dims,
    swapped,
)
from treadle.ops.collections.lists import (
    LIST_ADD,
    LIST_CONCAT,
    LIST_EXTEND,
    LIST_GET,
    LIST_JOIN,
    LIST_LENGTH,
    LIST_PUSH,
    LIST_SCATTER,
    LIST_SET,
    LIST_SPLIT,
    LIST_STACK,
    LIST_TRUNCATE,
    LIST_UNSTACK,
    list_get,
    list_length,
    list_new,
    list_push,
    list_stack,
)
from treadle.ops.control.control_flow import staged_loop
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import size_of
from treadle.ops.indexing.gather import GATHER
from treadle.ops.registry import run, set_batching


def _same_position(call: BatchedCall) -> None:
    if call.batched[1]:
        raise NoRule("a position or length of a list differs between examples")


def _read(call: BatchedCall) -> Any:
    """`dims` in the attributes are those of one element."""
    dims = call.attrs["dims"]
    return call.run(*call.inputs, dims=None if dims is None else element_dims(dims, call.count))


def _stack(call: BatchedCall) -> Any:
    return swapped(_read(call))


def _get(call: BatchedCall) -> Any:
    """Where the position differs between examples, an element of all of them stacked."""
    if not call.batched[1]:
        return _read(call)
    dims = call.attrs["dims"]
    if call.batched[0]:
        inner = None if dims is None else element_dims(dims, call.count)
        stacked = swapped(list_stack(call.inputs[0], inner))
        return run(GATHER, stacked, call.inputs[1], axis=1, batch_dims=1)
    stacked = list_stack(call.inputs[0], dims)
    return run(GATHER, stacked, call.inputs[1], axis=0, batch_dims=0)


def _unstack(call: BatchedCall) -> Any:
    return call.run(swapped(call.inputs[0]))


def _push(call: BatchedCall) -> Any:
    return call.run(call.whole(0), call.whole(1))


def _set(call: BatchedCall) -> Any:
    _same_position(call)
    return call.run(call.whole(0), call.inputs[1], call.whole(2))


def _scatter(call: BatchedCall) -> Any:
    _same_position(call)
    return call.run(call.whole(0), call.inputs[1], swapped(call.whole(2)))


def _resize(call: BatchedCall) -> Any:
    _same_position(call)
    return call.run(*call.inputs)


def _length(call: BatchedCall) -> Any:
    return Same(call.run(*call.inputs))


def _elements_swapped(
    items: Tensor, dims: Sequence[Dim], lengths: Tensor | None = None
) -> Tensor:
    """The list whose elements have their first two axes exchanged.

    Args:
        dims: those of the elements of `items`; ANY where they differ between elements.
        lengths: the second dim of each element, which elements that were never written need.
    """
    first, second, *rest = dims

    def added(k: Any, found: Tensor) -> Tensor:
        middle = second if lengths is None else size_of(lengths[k], "the length of a piece")
        return list_push(found, swapped(list_get(items, k, (first, middle, *rest))))

    empty = list_new(ListSpec((second, first, *rest), items.dtype))
    count = list_length(items)
    if context.recorder is None:
        return functools.reduce(lambda found, k: added(k, found), range(int(count)), empty)
    found: Tensor = staged_loop(
        lambda k, found: k < count,
        lambda k, found: (k + 1, added(k, found)),
        (convert_to_tensor(0, dtypes.int32), empty),
        widen=True,
    )[1]
    return found


def _concat(call: BatchedCall) -> Any:
    """The elements of each example are joined along their second axis."""
    dims = call.attrs["dims"]
    if dims is None:
        raise NoRule("the rank of the elements of its list is not known")
    rows = _elements_swapped(call.inputs[0], (call.count, *dims))
    joined, lengths = call.run(rows, dims=(dims[0], call.count, *dims[1:]))
    return swapped(joined), Same(lengths)


def _same_lengths(call: BatchedCall) -> None:
    if call.batched[1]:
        raise NoRule("the lengths of the pieces differ between examples")


def _split(call: BatchedCall) -> Any:
    _same_lengths(call)
    values = swapped(call.inputs[0])
    pieces = call.run(values, call.inputs[1])
    return _elements_swapped(pieces, (ANY, *values.dims[1:]))


def _join(call: BatchedCall) -> Any:
    _same_lengths(call)
    (items, lengths), (first, *rest) = call.inputs, call.attrs["dims"]
    rows = _elements_swapped(items, (call.count, ANY, *rest), lengths)
    return swapped(call.run(rows, lengths, dims=(first, call.count, *rest)))


set_batching(_concat, LIST_CONCAT)
set_batching(_split, LIST_SPLIT)
set_batching(_join, LIST_JOIN)
set_batching(_get, LIST_GET)
set_batching(_stack, LIST_STACK)
set_batching(_unstack, LIST_UNSTACK)
set_batching(_push, LIST_PUSH, LIST_ADD)
set_batching(_set, LIST_SET)
set_batching(_scatter, LIST_SCATTER)
set_batching(_resize, LIST_TRUNCATE, LIST_EXTEND)
set_batching(_length, LIST_LENGTH)
