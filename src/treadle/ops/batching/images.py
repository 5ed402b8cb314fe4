"""Batching rules of convolutions and pooling, whose inputs are batches of images already."""

from __future__ import annotations

from typing import Any

from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.ops.batching.call import BatchedCall, NoRule, moved_to_front
from treadle.ops.image.axis_windows import ADD, TAKE
from treadle.ops.image.convolution import CONV2D, CONV2D_FILTER, CONV2D_INPUT
from treadle.ops.image.drawing import DRAW
from treadle.ops.image.pooling import AVG, AVG_GRAD, GATHER, INDEX, MASKED_INDEX, MAX, SCATTER
from treadle.ops.image.suppression import CHOOSE_CLASSES
from treadle.ops.registry import set_batching
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to


def _one_batch(x: Tensor) -> Tensor:
    """The images of all examples, one after the other."""
    return reshape_to(x, (product(x.dims[:2]), *x.dims[2:]))


def _per_example(call: BatchedCall, found: Tensor, k: int) -> Tensor:
    """A result for all images, apart again; input `k` is a batch of images."""
    return reshape_to(found, (call.count, call.dims(k)[0], *found.dims[1:]))


def pooled(call: BatchedCall) -> Any:
    """Images are pooled one by one."""
    inputs = [_one_batch(call.whole(k)) for k in range(len(call.inputs))]
    return _per_example(call, call.run(*inputs), 0)


def _with_boxes(call: BatchedCall) -> Any:
    """Images, or the boxes of images, are done one by one; further inputs are for all of them."""
    if any(call.batched[2:]):
        raise NoRule("its colors or thresholds differ between examples")
    found = call.run(*(_one_batch(call.whole(k)) for k in range(2)), *call.inputs[2:])
    if isinstance(found, tuple):
        return tuple(_per_example(call, part, 0) for part in found)
    return _per_example(call, found, 0)


def _joined_channels(x: Tensor) -> Tensor:
    """[examples, ..., channels] as [..., examples * channels]."""
    x = permute(x, [*range(1, x.ndim - 1), 0, x.ndim - 1])
    return reshape_to(x, (*x.dims[:-2], product(x.dims[-2:])))


def _apart(call: BatchedCall, found: Tensor) -> Tensor:
    """[..., examples * channels] as [examples, ..., channels]."""
    *dims, channels = found.dims
    found = reshape_to(found, (*dims, call.count, channels // call.count))
    return moved_to_front(found, found.ndim - 2)


def _channels_of_all(call: BatchedCall, k: int) -> Tensor:
    """The channels of all examples side by side: those of each are groups of their own."""
    if not isinstance(call.count, int):
        raise NoRule("the groups of a convolution are the examples, whose number is not known")
    return _joined_channels(call.whole(k))


def _conv2d(call: BatchedCall) -> Any:
    x, filters = call.inputs
    if not call.batched[1]:
        return _per_example(call, call.run(_one_batch(x), filters), 0)
    if not call.batched[0] and x.dims[3] == filters.dims[3]:
        return _apart(call, call.run(x, _joined_channels(filters)))
    return _apart(call, call.run(_channels_of_all(call, 0), _channels_of_all(call, 1)))


def _conv2d_input(call: BatchedCall) -> Any:
    filters, dy = call.inputs
    if not call.batched[0]:
        return _per_example(call, call.run(filters, _one_batch(dy)), 1)
    *size, channels = call.attrs["image"]
    inputs = _channels_of_all(call, 0), _channels_of_all(call, 1)
    return _apart(call, call.run(*inputs, image=(*size, call.count * channels)))


def _conv2d_filter(call: BatchedCall) -> Any:
    x = call.inputs[0]
    *size, inner, outer = call.attrs["filters"]
    images = x if not call.batched[0] and inner == x.dims[3] else _channels_of_all(call, 0)
    found = call.run(
        images, _channels_of_all(call, 1), filters=(*size, inner, call.count * outer)
    )
    return _apart(call, found)


def _windows(call: BatchedCall) -> Any:
    return call.run(call.inputs[0], axis=call.attrs["axis"] + 1)


set_batching(_windows, TAKE, ADD)
set_batching(pooled, AVG, AVG_GRAD, GATHER, INDEX, MASKED_INDEX, MAX, SCATTER)
set_batching(_with_boxes, DRAW, CHOOSE_CLASSES)
set_batching(_conv2d, CONV2D)
set_batching(_conv2d_input, CONV2D_INPUT)
set_batching(_conv2d_filter, CONV2D_FILTER)
