"""Batching rules of lists: the lists of all examples have one length, and are one list whose
elements hold those of all examples."""

from __future__ import annotations

from typing import Any

from treadle.ops.batching.call import BatchedCall, NoRule, Same, element_dims, swapped
from treadle.ops.collections.lists import (
    LIST_ADD,
    LIST_EXTEND,
    LIST_GET,
    LIST_LENGTH,
    LIST_PUSH,
    LIST_SCATTER,
    LIST_SET,
    LIST_STACK,
    LIST_TRUNCATE,
    LIST_UNSTACK,
    list_stack,
)
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


set_batching(_get, LIST_GET)
set_batching(_stack, LIST_STACK)
set_batching(_unstack, LIST_UNSTACK)
set_batching(_push, LIST_PUSH, LIST_ADD)
set_batching(_set, LIST_SET)
set_batching(_scatter, LIST_SCATTER)
set_batching(_resize, LIST_TRUNCATE, LIST_EXTEND)
set_batching(_length, LIST_LENGTH)
