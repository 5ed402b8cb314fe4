"""Convolutions and pools of one, two or three spatial axes, by the rank of what they get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import partial_dims
from treadle.ops.image.axis_windows import take_windows
from treadle.ops.image.blocks import batch_to_space, space_to_batch
from treadle.ops.image.convolution import conv2d, conv2d_transpose
from treadle.ops.image.one_axis import avg_pool1d, conv1d, conv1d_transpose, max_pool1d
from treadle.ops.image.pooling import AVG, MAX, avg_pool2d, max_pool2d
from treadle.ops.image.volumes import avg_pool3d, conv3d, conv3d_transpose, max_pool3d
from treadle.ops.image.windows import axis_numbers, one_batch, several_batches
from treadle.ops.indexing.transposing import transpose
from treadle.ops.registry import Op, run
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to

_LAST, _FIRST = ("NWC", "NHWC", "NDHWC"), ("NCW", "NCHW", "NCDHW")
_CONVOLUTIONS = (conv1d, conv2d, conv3d)
_TRANSPOSED = (conv1d_transpose, conv2d_transpose, conv3d_transpose)
_MAX_POOLS = (max_pool1d, max_pool2d, max_pool3d)
_AVG_POOLS = (avg_pool1d, avg_pool2d, avg_pool3d)
_POOL_OPS = {"MAX": MAX, "AVG": AVG}


def _axes(name: str, axes: int, data_format: str | None) -> str:
    """The data format for so many spatial axes."""
    if not 1 <= axes <= 3:
        raise ValueError(f"{name}: {axes} spatial axes; there may be 1, 2 or 3{at(user_origin())}")
    found = data_format or _LAST[axes - 1]
    if found not in (_LAST[axes - 1], _FIRST[axes - 1]):
        raise ValueError(
            f"{name}: data_format must be {_LAST[axes - 1]!r} or {_FIRST[axes - 1]!r}, "
            f"got {data_format!r}{at(user_origin())}"
        )
    return found


def convolution(
    input: Any, filters: Any, strides: Any = None, padding: Any = "VALID",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`conv1d`, `conv2d` or `conv3d`, as the filters have one, two or three spatial axes.

    Args:
        input: [batch ..., spatial axes ..., channels], or with channels first by `data_format`.
        filters: [spatial axes ..., in, out].
        strides, dilations: an int, or one for each spatial axis; 1 by default.
        padding: "SAME", "VALID" or (before, after) pairs for all axes.

    Raises:
        ValueError: another number of axes, or a data format for another one.
        InvalidArgumentError: channels or sizes do not fit together.
    """
    w = convert_to_tensor(filters)
    axes = w.ndim - 2
    kind = _axes("convolution", axes, data_format)
    x, batch = one_batch(convert_to_tensor(input), axes + 2, "convolution")
    steps = 1 if strides is None else strides
    y = _CONVOLUTIONS[axes - 1](x, w, steps, padding, kind, dilations)
    return several_batches(y, batch)


def conv_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`conv1d_transpose`, `conv2d_transpose` or `conv3d_transpose`, by the output's rank.

    Args:
        filters: [spatial axes ..., out, in].
        output_shape: 3, 4 or 5 dims.

    Raises:
        ValueError: another number of dims, or a data format for another one.
        InvalidArgumentError: channels or sizes do not fit together.
    """
    axes = len(partial_dims(output_shape, "conv_transpose: output_shape")) - 2
    kind = _axes("conv_transpose", axes, data_format)
    transposed = _TRANSPOSED[axes - 1]
    return transposed(input, filters, output_shape, strides, padding, kind, dilations)


def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`max_pool1d`, `max_pool2d` or `max_pool3d`, by the input's rank.

    Args:
        input: [batch, spatial axes ..., channels], or with channels first by `data_format`.
        ksize, strides: an int, or one for each spatial axis, or for all axes.
        padding: "SAME", "VALID" or (before, after) pairs for all axes; padding never wins.

    Raises:
        ValueError: another number of axes, or a data format for another one.
        InvalidArgumentError: windows do not fit.
    """
    return _by_rank("max_pool", _MAX_POOLS, input, ksize, strides, padding, data_format)


def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`avg_pool1d`, `avg_pool2d` or `avg_pool3d`, by the input's rank; see `max_pool`."""
    return _by_rank("avg_pool", _AVG_POOLS, input, ksize, strides, padding, data_format)


def _by_rank(
    name: str, pools: Sequence[Callable[..., Tensor]], input: Any, ksize: Any, strides: Any,
    padding: Any, data_format: str | None,
) -> Tensor:  # fmt: skip
    x = convert_to_tensor(input)
    kind = _axes(name, x.ndim - 2, data_format)
    return pools[x.ndim - 3](x, ksize, strides, padding, kind)


def pool(
    input: Any, window_shape: Any, pooling_type: str, strides: Any = None, padding: Any = "VALID",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """A pool of one, two or three spatial axes, whose windows may take every n-th element.

    Args:
        input: [batch, spatial axes ..., channels], or with channels first by `data_format`.
        window_shape: the window's size along each spatial axis.
        pooling_type: "MAX" or "AVG".
        strides, dilations: for each spatial axis; 1 by default.
        padding: "VALID", or without dilations what `max_pool` takes.

    Raises:
        ValueError: arguments that do not fit together.
    """
    x = convert_to_tensor(input)
    op = _POOL_OPS.get(pooling_type)
    axes = len(window_shape)
    kind = _axes("pool", axes, data_format)
    if op is None or x.ndim != axes + 2:
        raise ValueError(
            f"pool: pooling_type {pooling_type!r} with a window of {axes} axes and an input of "
            f"shape {x.shape}; 'MAX' or 'AVG' and {axes + 2} axes are expected{at(user_origin())}"
        )
    steps = axis_numbers(1 if strides is None else strides, "strides", kind)
    spread = axis_numbers(1 if dilations is None else dilations, "dilations", kind)
    if max(spread) == 1:
        pools = _MAX_POOLS if op is MAX else _AVG_POOLS
        return pools[axes - 1](x, list(window_shape), list(steps), padding, kind)
    if padding != "VALID" or max(steps) > 1:
        raise ValueError(
            f"pool: dilations {dilations} need strides of 1 and padding 'VALID', not {strides} and "
            f"{padding!r}{at(user_origin())}"
        )
    first = kind in _FIRST
    y = transpose(x, [0, *range(2, axes + 2), 1]) if first else x
    for axis in range(axes, 0, -1):  # the first maximum is the first one in the first plane
        y = _spread_pool(op, y, axis, int(window_shape[axis - 1]), spread[axis - 1])
    return permute(y, [0, axes + 1, *range(1, axes + 1)]) if first else y


def _spread_pool(op: Op, x: Tensor, axis: int, window: int, dilation: int) -> Tensor:
    windows = take_windows(x, axis, window, 1, dilation, "VALID")
    *outer, _, channels = windows.dims
    columns = reshape_to(windows, (product(outer), window, 1, channels))
    pooled = run(op, columns, window=(window, 1), strides=(1, 1), padding="VALID")
    return reshape_to(pooled, (*outer, channels))


def with_space_to_batch(
    input: Any, dilation_rate: Any, padding: str, op: Callable[..., Tensor],
    filter_shape: Any = None, spatial_dims: Any = None, data_format: str | None = None,
) -> Tensor:  # fmt: skip
    """What `op` gives for every n-th element along the spatial axes, for all of their starts.

    Args:
        dilation_rate: n for each spatial axis.
        padding: "SAME" or "VALID".
        op: ``op(input, num_spatial_dims, padding)``; with some n above 1 its padding is "VALID".
        filter_shape: the sizes of the filter along the spatial axes first; "SAME" needs it.
        spatial_dims: the spatial axes, in order; by default those after the batch axis.

    Raises:
        ValueError: arguments that do not fit together, or spatial sizes that are not known.
    """
    function: Any = op
    if not callable(function):
        text = f"with_space_to_batch: op must be a function, not {type(op).__name__}"
        raise TypeError(f"{text}{at(user_origin())}")
    x = convert_to_tensor(input)
    rates = [int(n) for n in np.atleast_1d(dilation_rate)]
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    axes = list(range(first, first + len(rates)) if spatial_dims is None else spatial_dims)
    if len(axes) != len(rates) or axes != sorted(set(axes)) or min(rates) < 1 or padding not in (
        "SAME", "VALID",
    ):  # fmt: skip
        raise ValueError(
            f"with_space_to_batch: dilation_rate {dilation_rate}, padding {padding!r} and "
            f"spatial_dims {spatial_dims} do not fit together{at(user_origin())}"
        )
    if all(rate == 1 for rate in rates):
        return op(x, len(rates), padding)
    if padding == "SAME" and filter_shape is None:
        raise ValueError(f"with_space_to_batch: 'SAME' needs filter_shape{at(user_origin())}")
    last = max(axes)
    block, pads, crops = [], [], []
    for axis in range(1, last + 1):
        rate = rates[axes.index(axis)] if axis in axes else 1
        before = after = extra = 0
        if rate > 1:
            size = x.dims[axis]
            if not isinstance(size, int):
                text = f"with_space_to_batch: axis {axis} must be known, the shape is {x.shape}"
                raise ValueError(f"{text}{at(user_origin())}")
            if padding == "SAME":
                whole = (int(filter_shape[axes.index(axis)]) - 1) * rate
                before, after = whole // 2, whole - whole // 2
            extra = -(size + before + after) % rate
        elif padding == "SAME" and axis in axes:
            whole = int(filter_shape[axes.index(axis)]) - 1
            before, after = whole // 2, whole - whole // 2
        block.append(rate)
        pads.append([before, after + extra])
        crops.append([0, extra])
    y = op(space_to_batch(x, block, pads), len(rates), "VALID")
    return batch_to_space(y, block, crops)
