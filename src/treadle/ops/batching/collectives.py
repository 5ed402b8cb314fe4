"""Batching rules of operations that all workers take part in: one exchange for all examples."""

from __future__ import annotations

from typing import Any

from treadle.ops.batching.call import BatchedCall, moved_to_front
from treadle.ops.control.collectives import ALL_GATHER, ALL_REDUCE
from treadle.ops.registry import set_batching


def _all_reduce(call: BatchedCall) -> Any:
    return call.run(call.inputs[0])


def _all_gather(call: BatchedCall) -> Any:
    """The workers come first; then the examples, which are moved before them."""
    return moved_to_front(call.run(call.inputs[0]), 1)


set_batching(_all_reduce, ALL_REDUCE)
set_batching(_all_gather, ALL_GATHER)
