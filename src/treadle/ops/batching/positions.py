"""Batching rules of ops that read, change or add up the elements at positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import Dim, SymbolicDim
from treadle.core.tensor import Tensor
from treadle.ops.batching.call import (
    BatchedCall,
    NoRule,
    moved_to_front,
    numbers_of,
    swapped,
    with_numbers,
)
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.logic import logical_and
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.basic import DYNAMIC_SLICE, DYNAMIC_SLICE_GRAD
from treadle.ops.indexing.elements import ELEMENT, ELEMENT_UPDATE
from treadle.ops.indexing.extremes import SCATTER_MAX, SCATTER_MIN
from treadle.ops.indexing.gather import GATHER, UNSORTED_SEGMENT_SUM
from treadle.ops.indexing.index import INDEX, INDEX_GRAD
from treadle.ops.indexing.masks import COMPRESS, EXPAND
from treadle.ops.indexing.scatter import GATHER_ND, SCATTER_ADD, SCATTER_ND, SCATTER_UPDATE
from treadle.ops.indexing.scatter_products import SCATTER_DIV, SCATTER_MUL
from treadle.ops.indexing.segments import (
    COMPLEX_SEGMENT_MUL,
    SEGMENT_MAX,
    SEGMENT_MIN,
    SEGMENT_MUL,
)
from treadle.ops.indexing.updates import DYNAMIC_SLICE_UPDATE, INDEX_UPDATE, SLICE_UPDATE
from treadle.ops.registry import run, set_batching
from treadle.ops.shaping.creation import ONE_HOT
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.shaping.slicing import slice_known
from treadle.ops.statistics.histograms import COUNT_POSITIONS


def _gather(call: BatchedCall) -> Any:
    params, indices = call.inputs
    axis, batch = call.attrs["axis"], call.attrs["batch_dims"]
    if batch == 0 and not call.batched[1]:
        return call.run(params, indices, axis=axis + 1)
    if batch == 0 and not call.batched[0]:
        return moved_to_front(call.run(params, indices), axis)
    return call.run(call.whole(0), call.whole(1), axis=axis + 1, batch_dims=batch + 1)


def _wrapped(position: Tensor, size: Dim) -> Tensor:
    """A position that may count from the end, counted from the beginning."""
    return where(position < 0, position + dims_tensor(size, position.dtype), position)


def _index(call: BatchedCall) -> Any:
    x, i = call.inputs
    axis = call.attrs["axis"]
    if not call.batched[1]:
        return call.run(x, i, axis=axis + 1)
    position = i if i.dtype.is_unsigned else _wrapped(i, call.dims(0)[axis])
    if call.batched[0]:
        return run(GATHER, x, position, axis=axis + 1, batch_dims=1)
    return moved_to_front(run(GATHER, x, position, axis=axis, batch_dims=0), axis)


def _hit(call: BatchedCall, k: int, axis: int, dims: Sequence[Dim]) -> Tensor:
    """Whether an element of an array of `dims` is at the position in input `k` along an axis;
    broadcasts with arrays for all examples."""
    i: Tensor = call.inputs[k]
    size = dims[axis]
    position = i if i.dtype.is_unsigned else _wrapped(i, size)
    yes, no = convert_to_tensor(True), convert_to_tensor(False)
    hit = run(ONE_HOT, position, yes, no, depth=size, axis=position.ndim)
    inner = [size if a == axis else 1 for a in range(len(dims))]
    first = (call.count,) if call.batched[k] else (1,)
    return reshape_to(hit, (*first, *inner))


def _index_grad(call: BatchedCall) -> Any:
    dy, i = call.inputs
    axis, size = call.attrs["axis"], call.attrs["size"]
    if not call.batched[1]:
        return call.run(dy, i, axis=axis + 1)
    rest = call.dims(0)
    dims = (*rest[:axis], size, *rest[axis:])
    part = call.whole(0)
    part = reshape_to(part, (call.count, *rest[:axis], 1, *rest[axis:]))
    return where(_hit(call, 1, axis, dims), part, convert_to_tensor(0, dy.dtype))


def _index_update(call: BatchedCall) -> Any:
    axis = call.attrs["axis"]
    if not call.batched[1]:
        return call.run(call.whole(0), call.inputs[1], call.whole(2), axis=axis + 1)
    rest, part = call.dims(2), call.whole(2)
    part = reshape_to(part, (call.count, *rest[:axis], 1, *rest[axis:]))
    return where(_hit(call, 1, axis, call.dims(0)), part, call.whole(0))


def _element(call: BatchedCall) -> Any:
    """Axis after axis."""
    x, batched = call.inputs[0], call.batched[0]
    for k in range(1, len(call.inputs)):
        flags = [batched, call.batched[k]]
        if any(flags):
            step = BatchedCall(INDEX, [x, call.inputs[k]], flags, {"axis": 0}, call.count)
            x, batched = _index(step), True
        else:
            x = run(INDEX, x, call.inputs[k], axis=0)
    return x


def _element_update(call: BatchedCall) -> Any:
    dims, last = call.dims(0), len(call.inputs) - 1
    hit = _hit(call, 1, 0, dims)
    for k in range(2, last):
        hit = logical_and(hit, _hit(call, k, k - 1, dims))
    return where(hit, call.aligned(last, len(dims)), call.whole(0))


def _gather_nd(call: BatchedCall) -> Any:
    params, indices = call.inputs
    if not call.batched[0]:
        return call.run(params, indices)
    return call.run(params, with_numbers(call.whole(1)))


def _scatter_nd(call: BatchedCall) -> Any:
    shape = (call.count, *call.attrs["shape"])
    return call.run(with_numbers(call.whole(0)), call.whole(1), shape=shape)


def _scatter_into(call: BatchedCall) -> Any:
    return call.run(call.whole(0), with_numbers(call.whole(1)), call.whole(2))


def _numbered_segments(ids: Tensor, segments: Dim) -> Tensor:
    """The ids of all examples, each of which has segments of its own; negative ones stay so."""
    wide = cast(ids, dtypes.int64)
    first = numbers_of(ids.dims[0], dtypes.int64) * dims_tensor(segments, dtypes.int64)
    first = reshape_to(first, (ids.dims[0], *(1,) * (ids.ndim - 1)))
    return where(wide < 0, wide, wide + first)


def _segment_sum(call: BatchedCall) -> Any:
    data, ids = call.inputs
    segments, rank = call.attrs["num_segments"], call.rank(1)
    if not call.batched[1]:  # the examples are columns
        order = [*range(1, rank + 1), 0, *range(rank + 1, data.ndim)]
        return swapped(call.run(permute(data, order), ids))
    found = call.run(
        call.whole(0), _numbered_segments(ids, segments), num_segments=call.count * segments
    )
    return reshape_to(found, (call.count, segments, *found.dims[1:]))


def _segment_combined(call: BatchedCall) -> Any:
    x, data, ids = (call.whole(k) for k in range(3))
    segments = x.dims[1]
    flat = reshape_to(x, (call.count * segments, *x.dims[2:]))
    return reshape_to(call.run(flat, data, _numbered_segments(ids, segments)), x.dims)


def _count_positions(call: BatchedCall) -> Any:
    return call.run(call.inputs[0], batch_dims=call.attrs.get("batch_dims", 0) + 1)


def _masked(call: BatchedCall) -> Any:
    """The rows where one mask is true, of the columns of all examples."""
    if call.batched[1]:
        raise NoRule("the masks of examples differ, and so do the numbers of rows")
    return swapped(call.run(swapped(call.inputs[0]), call.inputs[1]))


def _slice_update(call: BatchedCall) -> Any:
    begin, strides = (0, *call.attrs["begin"]), (1, *call.attrs["strides"])
    return call.run(call.whole(0), call.whole(1), begin=begin, strides=strides)


def _dynamic_slice(call: BatchedCall) -> Any:
    """Bounds of each example would give parts of different sizes."""
    bounds = range(1, 1 + sum(call.attrs["given"]))
    if any(call.batched[k] for k in bounds):
        raise NoRule("the bounds of a part differ between examples")
    inputs = [x if k in bounds else call.whole(k) for k, x in enumerate(call.inputs)]
    return call.run(*inputs, axis=call.attrs["axis"] + 1)


def slices_of_examples(call: BatchedCall, begins: Sequence[Dim | Tensor]) -> Tensor:
    """A `STRIDED_SLICE` of one size that starts elsewhere in each example.

    Args:
        call: the slice; input 0 may be the same for each example.
        begins: where it starts along each axis; a tensor has a number for each example.
    """
    x: Tensor = call.inputs[0]
    batched = call.batched[0]
    parts = zip(begins, call.attrs["size"], call.attrs["strides"], call.dims(0), strict=True)
    known = [(b, n, s) if isinstance(b, int | SymbolicDim) else (0, d, 1) for b, n, s, d in parts]
    begin, size, strides = map(list, zip(*known, strict=True))
    if batched:
        begin, size, strides = [0, *begin], [x.dims[0], *size], [1, *strides]
    x = slice_known(x, begin, size, strides)
    for axis, start in enumerate(begins):
        if not isinstance(start, Tensor):
            continue
        count, step = call.attrs["size"][axis], call.attrs["strides"][axis]
        steps = run(RANGE, start=0, delta=step, size=count, dtype=start.dtype)
        places = reshape_to(start, (call.count, 1)) + reshape_to(steps, (1, count))
        if batched:
            x = run(GATHER, x, places, axis=axis + 1, batch_dims=1)
        else:
            x, batched = moved_to_front(run(GATHER, x, places, axis=axis, batch_dims=0), axis), True
    return x


set_batching(_gather, GATHER)
set_batching(_index, INDEX)
set_batching(_index_grad, INDEX_GRAD)
set_batching(_index_update, INDEX_UPDATE)
set_batching(_element, ELEMENT)
set_batching(_element_update, ELEMENT_UPDATE)
set_batching(_gather_nd, GATHER_ND)
set_batching(_scatter_nd, SCATTER_ND)
set_batching(_scatter_into, SCATTER_ADD, SCATTER_UPDATE, SCATTER_MAX, SCATTER_MIN)
set_batching(_scatter_into, SCATTER_MUL, SCATTER_DIV)
set_batching(_masked, COMPRESS, EXPAND)
set_batching(_count_positions, COUNT_POSITIONS)
set_batching(_segment_sum, UNSORTED_SEGMENT_SUM)
set_batching(_segment_combined, COMPLEX_SEGMENT_MUL, SEGMENT_MAX, SEGMENT_MIN, SEGMENT_MUL)
set_batching(_slice_update, SLICE_UPDATE)
set_batching(_dynamic_slice, DYNAMIC_SLICE, DYNAMIC_SLICE_GRAD, DYNAMIC_SLICE_UPDATE)
