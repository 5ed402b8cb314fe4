"""Blocks of pixels moved into the batch or into channels and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.ops.conversion import constant, convert_to_tensor, is_symbolic
from treadle.ops.dims import sizes_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape, reshape_to
from treadle.ops.shaping.slicing import part_of


def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Every position within a block becomes a batch entry of its own.

    Args:
        input: [batch, spatial axes ..., rest ...].
        block_shape: a size for each spatial axis, or one int for two axes.
        paddings: [spatial axes, 2], zeros put before and after.

    Returns:
        [batch * product(block_shape), spatial sizes / block sizes ..., rest ...]

    Raises:
        InvalidArgumentError: a padded size is no multiple of its block's.
    """
    x = convert_to_tensor(input)
    block, pairs = _block("space_to_batch", x, block_shape, paddings)
    widths = [[0, 0], *pairs, *([[0, 0]] * (x.ndim - 1 - len(block)))]
    x = pad(x, widths)
    dims: list[Dim] = [x.dims[0]]
    for axis, size in enumerate(block, 1):
        dims += [_divide("space_to_batch", x, axis, size), size]
    rest = x.dims[1 + len(block) :]
    count = len(block)
    inner, outer = [2 * k + 2 for k in range(count)], [2 * k + 1 for k in range(count)]
    tail = [2 * count + 1 + k for k in range(len(rest))]
    parts = permute(reshape_to(x, (*dims, *rest)), [*inner, 0, *outer, *tail])
    batch = product((*block, x.dims[0]))
    return reshape_to(parts, (batch, *(dims[o] for o in outer), *rest))


def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """What `space_to_batch` did, undone.

    Args:
        crops: [spatial axes, 2], how much is cut off before and after.

    Raises:
        InvalidArgumentError: the batch is no multiple of the block, or too much is cut off.
    """
    x = convert_to_tensor(input)
    block, pairs = _block("batch_to_space", x, block_shape, crops)
    batch = _divide("batch_to_space", x, 0, product(block))
    spatial, rest = x.dims[1 : 1 + len(block)], x.dims[1 + len(block) :]
    count = len(block)
    parts = reshape_to(x, (*block, batch, *spatial, *rest))
    order = [count]
    for k in range(count):
        order += [count + 1 + k, k]
    order += [2 * count + 1 + k for k in range(len(rest))]
    sizes = [size * own for size, own in zip(spatial, block, strict=True)]
    result = reshape_to(permute(parts, order), (batch, *sizes, *rest))
    for axis, (before, after) in enumerate(pairs, 1):
        size = result.dims[axis] - before - after
        if isinstance(size, int) and size < 0:
            text = f"batch_to_space: crops {before} and {after} of {result.dims[axis]} elements"
            raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
        result = part_of(result, axis, before, size)
    return result


def _block(
    name: str, x: Tensor, block_shape: Any, pairs: Any
) -> tuple[list[Dim], list[tuple[Dim, Dim]]]:
    """The sizes of a block and two numbers for each of its axes."""
    given = _integers(block_shape)
    block = _numbers(name, given)
    if given.ndim == 0:
        block = block * 2
    numbers = _integers(pairs)
    too_small = any(isinstance(size, int) and size < 1 for size in block)
    if tuple(numbers.shape) != (len(block), 2) or x.ndim < len(block) + 1 or too_small:
        text = (
            f"{name}: block_shape {block} and pairs of shape {numbers.shape} do not fit an input "
            f"of shape {x.shape}{at(user_origin())}"
        )
        raise errors.InvalidArgumentError(None, None, text)
    flat = _numbers(name, numbers)
    if any(isinstance(n, int) and n < 0 for n in flat):
        text = f"{name}: negative numbers in {flat}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    return block, list(zip(flat[::2], flat[1::2], strict=True))


def _numbers(name: str, value: Any) -> list[Dim]:
    """The numbers of an array, or those that a run knows of a tensor."""
    if isinstance(value, np.ndarray):
        found: list[Dim] = value.reshape(-1).tolist()
        return found
    return list(sizes_of(reshape(value, [-1]), name))


def _divide(name: str, x: Tensor, axis: int, size: Dim) -> Dim:
    dim = x.dims[axis]
    if isinstance(dim, int) and isinstance(size, int) and dim % size:
        text = f"{name}: {dim} elements of axis {axis} in blocks of {size}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    return dim // size


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The paddings and crops with which `space_to_batch` and `batch_to_space` fit a shape.

    Args:
        input_shape, block_shape: [n] ints.
        base_paddings: [n, 2], the least paddings.
    """
    sizes, block = _integers(input_shape), _integers(block_shape)
    if not is_symbolic(block) and not np.all(block):
        text = f"block_shape {block.tolist()} must not have 0{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    none = sizes * 0
    base = None if base_paddings is None else _integers(base_paddings)
    before, after = (none, none) if base is None else (base[:, 0], base[:, 1])
    extra = -(sizes + before + after) % block
    return _columns(before, after + extra), _columns(none, extra)


def _integers(value: Any) -> Any:
    """An int32 array, or tensor where only a run knows the numbers."""
    found: Any = convert_to_tensor(value) if is_symbolic(value) else np.asarray(value)
    if found.dtype.kind not in "iu" and product(found.shape) != 0:
        text = f"sizes and paddings must be integers, not {found.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    return cast(found, dtypes.int32) if is_symbolic(value) else found.astype(np.int32)


def _columns(*vectors: Any) -> Tensor:
    """Vectors side by side; a constant where they are known."""
    if any(is_symbolic(v) for v in vectors):
        return stack(vectors, 1)
    return constant(np.stack(vectors, 1))


def space_to_depth(
    input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Blocks of pixels become channels.

    Args:
        input: [batch, height, width, channels], or with channels first.
        block_size: at least 2.
        data_format: "NHWC" or "NCHW".

    Returns:
        [batch, height / block, width / block, channels * block ** 2]

    Raises:
        InvalidArgumentError: the height or width is no multiple of the block.
    """
    x = _images("space_to_depth", input, block_size, data_format)
    b = block_size
    height, width = (_divide("space_to_depth", x, axis, b) for axis in (1, 2))
    parts = reshape_to(x, (x.dims[0], height, b, width, b, x.dims[3]))
    moved = permute(parts, [0, 1, 3, 2, 4, 5])
    return _formatted(reshape_to(moved, (x.dims[0], height, width, x.dims[3] * b * b)), data_format)


def depth_to_space(
    input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """What `space_to_depth` did, undone.

    Raises:
        InvalidArgumentError: the number of channels is no multiple of the block's pixels.
    """
    x = _images("depth_to_space", input, block_size, data_format)
    b = block_size
    depth = _divide("depth_to_space", x, 3, b * b)
    parts = reshape_to(x, (*x.dims[:3], b, b, depth))
    moved = permute(parts, [0, 1, 3, 2, 4, 5])
    sizes = (x.dims[0], x.dims[1] * b, x.dims[2] * b, depth)
    return _formatted(reshape_to(moved, sizes), data_format)


_FORMATS: dict[str, Sequence[int]] = {"NHWC": (0, 1, 2, 3), "NCHW": (0, 2, 3, 1)}


def _images(name: str, input: Any, block_size: int, data_format: str) -> Tensor:
    """The images with channels last."""
    x = convert_to_tensor(input)
    if data_format not in _FORMATS or x.ndim != 4 or block_size < 2:
        text = (
            f"{name}: an input of shape {x.shape} with block_size {block_size} and data_format "
            f"{data_format!r}; four axes, at least 2, and NHWC or NCHW are expected"
        )
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    return permute(x, _FORMATS[data_format])


def _formatted(x: Tensor, data_format: str) -> Tensor:
    return permute(x, (0, 3, 1, 2)) if data_format == "NCHW" else x
