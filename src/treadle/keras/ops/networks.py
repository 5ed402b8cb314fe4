"""`keras.ops`: pools, convolutions, normalization, attention and losses."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras.config import epsilon as _epsilon
from treadle.keras.layers.pooling import divided
from treadle.keras.layers.spatial import format_name
from treadle.keras.logits import as_logits
from treadle.keras.ops.conversion import axes_of, tensor, tensors
from treadle.keras.ops.linear_algebra import norm
from treadle.keras.ops.operations import operation
from treadle.keras.promotion import result_type

_operation = functools.partial(operation, "nn")


# -- pools and convolutions ------------------------------------------------------------------------


def _code(data_format: str, rank: int) -> str:
    """The data format as ops have it, such as NHWC.

    Raises:
        ValueError: there are not one to three spatial axes.
    """
    if rank not in (3, 4, 5):
        raise ValueError(f"Inputs of one to three spatial axes are needed, got rank {rank}")
    space = "DHW"[5 - rank :]
    return f"N{space}C" if data_format == "channels_last" else f"NC{space}"


def _with_last(x: td.Tensor, data_format: str, function: Callable[[Any], Any]) -> Any:
    """A function of a tensor with its channels last, and its result with them where they were."""
    if data_format == "channels_last":
        return function(x)
    rank = len(x.shape)
    found = function(td.transpose(x, [0, *range(2, rank), 1]))
    return td.transpose(found, [0, rank - 1, *range(1, rank - 1)])


def _for_each(value: Any, rank: int) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def _pool(
    function: Callable[..., Any], inputs: Any, pool_size: Any, strides: Any, padding: str,
    data_format: str | None,
) -> Any:  # fmt: skip
    x = tensor(inputs)
    code = _code("channels_last", len(x.shape))
    rank = len(x.shape) - 2
    window = _for_each(pool_size, rank)
    steps = window if strides is None else _for_each(strides, rank)
    return _with_last(
        x, format_name(data_format), lambda y: function(y, window, steps, padding.upper(), code)
    )  # fmt: skip


@_operation("inputs")
def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid",
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """The greatest element of each window.

    Args:
        pool_size: the size of windows; an int, or one for each spatial axis.
        strides: the steps between windows, the size of windows when omitted.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
    """
    return _pool(td.nn.max_pool, inputs, pool_size, strides, padding, data_format)


@_operation("inputs")
def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid",
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """The mean of each window; the arguments are those of `max_pool`."""
    return _pool(td.nn.avg_pool, inputs, pool_size, strides, padding, data_format)


def _adaptive(inputs: Any, output_size: Any, data_format: str | None, mean: bool) -> Any:
    """Pools along each spatial axis in turn, whose windows divide it into so many parts."""
    x = tensor(inputs)
    rank = len(x.shape) - 2
    if rank not in (1, 2, 3):
        raise ValueError(f"Adaptive pools take one to three spatial axes, got shape {x.shape}")
    first = 1 if format_name(data_format) == "channels_last" else 2
    return divided(x, _for_each(output_size, rank), first, mean)


@_operation("inputs")
def adaptive_average_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    """The means of so many windows along each spatial axis."""
    return _adaptive(inputs, output_size, data_format, True)


@_operation("inputs")
def adaptive_max_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    """The greatest elements of so many windows along each spatial axis."""
    return _adaptive(inputs, output_size, data_format, False)


def _channels(x: td.Tensor, data_format: str) -> Any:
    return x.shape[-1 if data_format == "channels_last" else 1]


@_operation("inputs", "kernel")
def conv(
    inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid",
    data_format: str | None = None, dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    """The convolution with filters [*window, channels, filters].

    Args:
        strides, dilation_rate: an int, or one for each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".

    Raises:
        ValueError: the window does not fit into the inputs.
    """
    x, kernel = tensor(inputs), tensor(kernel)
    name, rank = format_name(data_format), len(x.shape) - 2
    code = _code("channels_last", len(x.shape))
    found = _with_last(
        x, name, lambda y: td.nn.convolution(
            y, kernel, _for_each(strides, rank), padding.upper(), code,
            _for_each(dilation_rate, rank),
        ),
    )  # fmt: skip
    if found.shape.num_elements() == 0 and x.shape.num_elements() != 0:
        raise ValueError(
            "The convolution operation resulted in an empty output. Output shape: "
            f"{found.shape}: the window {kernel.shape[:-2]} does not fit into inputs {x.shape}"
        )
    return found


def _checked(x: td.Tensor, kernel: td.Tensor, name: str) -> None:
    rank = len(x.shape)
    if rank not in (3, 4):
        raise ValueError(f"`inputs` rank must be 3 (1D conv) or 4 (2D conv). Received: {rank}.")
    channels = _channels(x, name)
    if channels is not None and channels != kernel.shape[-2]:
        raise ValueError(
            f"The kernel has {kernel.shape[-2]} input channels, the inputs have {channels}"
        )


def _depthwise(
    x: td.Tensor, kernel: td.Tensor, strides: Any, padding: str, dilation_rate: Any
) -> td.Tensor:
    """The convolution of each channel by itself, of a tensor with its channels last."""
    rank = len(x.shape) - 2
    steps, apart = _for_each(strides, rank), _for_each(dilation_rate, rank)
    if rank == 1:
        x, kernel, steps, apart = x[:, None], kernel[None], steps * 2, [1, *apart]
    thin = max(steps) > 1 and max(apart) > 1
    if thin and padding.lower() == "same":  # each window, then those at the steps
        x = _padded_same(x, kernel, steps, apart)
        padding = "valid"
    found = td.nn.depthwise_conv2d(
        x, kernel, [1, 1, 1, 1] if thin else [1, *steps, 1], padding.upper(), "NHWC", apart
    )
    found = found[:, :: steps[0], :: steps[1]] if thin else found
    return td.squeeze(found, 1) if rank == 1 else found


def _padded_same(
    x: td.Tensor, kernel: td.Tensor, steps: list[int], apart: list[int]
) -> td.Tensor:
    around: list[Any] = [[0, 0]]
    for axis, (step, gap) in enumerate(zip(steps, apart, strict=True), 1):
        reach = (kernel.shape[axis - 1] - 1) * gap + 1
        size = td.shape(x)[axis] if x.shape[axis] is None else x.shape[axis]
        margin = ((size + step - 1) // step - 1) * step + reach - size
        margin = max(margin, 0) if isinstance(margin, int) else td.maximum(margin, 0)
        around.append([margin // 2, margin - margin // 2])
    return td.pad(x, [*around, [0, 0]])


@_operation("inputs", "kernel")
def depthwise_conv(
    inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid",
    data_format: str | None = None, dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    """The convolution of each channel with filters of its own, [*window, channels, multiplier]; the
    arguments are those of `conv`."""
    x, kernel = tensor(inputs), tensor(kernel)
    name = format_name(data_format)
    _checked(x, kernel, name)
    return _with_last(x, name, lambda y: _depthwise(y, kernel, strides, padding, dilation_rate))


@_operation("inputs", "depthwise_kernel", "pointwise_kernel")
def separable_conv(
    inputs: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Any = 1,
    padding: str = "valid", data_format: str | None = None, dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    """`depthwise_conv`, and a convolution of single elements that mixes its channels."""
    x, own = tensor(inputs), tensor(depthwise_kernel)
    mixing, name = tensor(pointwise_kernel), format_name(data_format)
    _checked(x, own, name)

    def mixed(y: td.Tensor) -> td.Tensor:
        found = _depthwise(y, own, strides, padding, dilation_rate)
        matrix = td.reshape(mixing, [mixing.shape[-2], mixing.shape[-1]])
        return td.tensordot(found, matrix, [[-1], [0]])

    return _with_last(x, name, mixed)


def _transposed_length(
    size: Any, kernel: int, stride: int, padding: str, output_padding: int | None, dilation: int
) -> Any:
    """How many elements a transposed convolution gives along an axis."""
    reach = (kernel - 1) * dilation + 1
    if output_padding is None:
        return size * stride + (max(reach - stride, 0) if padding == "valid" else 0)
    edge = reach // 2 if padding == "same" else 0
    return (size - 1) * stride + reach - 2 * edge + output_padding


@_operation("inputs", "kernel")
def conv_transpose(
    inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid", output_padding: Any = None,
    data_format: str | None = None, dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    """The gradient of a convolution, as an upsampling, with filters [*window, filters, channels].

    Args:
        output_padding: how many elements more the result has along each spatial axis.
    """
    x, kernel = tensor(inputs), tensor(kernel)
    rank, name = len(x.shape) - 2, format_name(data_format)
    if _channels(x, name) not in (None, kernel.shape[-1]):
        raise ValueError(
            f"The kernel has {kernel.shape[-1]} input channels, the inputs have "
            f"{_channels(x, name)}"
        )
    steps, apart = _for_each(strides, rank), _for_each(dilation_rate, rank)
    more = [None] * rank if output_padding is None else _for_each(output_padding, rank)
    code = _code("channels_last", len(x.shape))

    def grown(y: td.Tensor) -> td.Tensor:
        shape = [td.shape(y)[i] if d is None else d for i, d in enumerate(y.shape)]
        sizes = [
            _transposed_length(shape[i + 1], kernel.shape[i], steps[i], padding, more[i], apart[i])
            for i in range(rank)
        ]
        return td.nn.conv_transpose(
            y, kernel, [shape[0], *sizes, kernel.shape[-2]], steps, padding.upper(), code, apart
        )

    return _with_last(x, name, grown)


@_operation("x")
def unfold(
    x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """The windows of images [batch, channels, height, width], as [batch, elements, windows]."""
    x = tensor(x)
    (high, wide), (down, across) = _for_each(kernel_size, 2), _for_each(stride, 2)
    gaps, edges = _for_each(dilation, 2), _for_each(padding, 2)
    x = td.pad(x, [[0, 0], [0, 0], [edges[0]] * 2, [edges[1]] * 2])
    patches = td.image.extract_patches(
        td.transpose(x, [0, 2, 3, 1]), [1, high, wide, 1], [1, down, across, 1], [1, *gaps, 1],
        "VALID",
    )  # fmt: skip
    rows, columns, channels = patches.shape[1], patches.shape[2], x.shape[1]
    parts = td.reshape(patches, [-1, rows * columns, high * wide, channels])
    shape = [-1, channels * high * wide, rows * columns]
    return td.reshape(td.transpose(parts, [0, 3, 2, 1]), shape)


@_operation("x")
def fold(
    x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Images [batch, channels, height, width] that are sums of windows, as `unfold` has them."""
    x = tensor(x)
    (high, wide), steps = _for_each(kernel_size, 2), _for_each(stride, 2)
    gaps, edges, size = _for_each(dilation, 2), _for_each(padding, 2), _for_each(output_size, 2)
    whole = [s + 2 * e for s, e in zip(size, edges, strict=True)]
    counts = [
        (w - g * (k - 1) - 1) // s + 1
        for w, g, k, s in zip(whole, gaps, (high, wide), steps, strict=True)
    ]
    channels = x.shape[1] // (high * wide)
    windows = td.reshape(x, [-1, channels, high, wide, *counts])
    rows = _spread(windows, 4, 2, counts[0], gaps[0], steps[0], whole[0])
    found = _spread(rows, 3, 2, counts[1], gaps[1], steps[1], whole[1])
    return found[:, :, edges[0] : edges[0] + size[0], edges[1] : edges[1] + size[1]]


def _spread(
    x: td.Tensor, places: int, inner: int, count: int, gap: int, step: int, size: int
) -> td.Tensor:
    """The sums, along a new last axis of a size, of the elements of windows: those of the axis
    `inner` lie `gap` apart, and windows, along the axis `places`, `step` apart."""
    reach = x.shape[inner]
    matrix = [
        [[1.0 if w * step + k * gap == at else 0.0 for at in range(size)] for w in range(count)]
        for k in range(reach)
    ]
    return td.tensordot(x, td.constant(matrix, x.dtype), [[inner, places], [0, 1]])


@_operation("x")
def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> Any:
    """Channels laid out as blocks of pixels."""
    return _with_last(tensor(x), data_format, lambda y: td.nn.depth_to_space(y, block_size))


@_operation("x")
def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> Any:
    """Blocks of pixels as channels."""
    return _with_last(tensor(x), data_format, lambda y: td.nn.space_to_depth(y, block_size))


# -- classes ---------------------------------------------------------------------------------------


def _one_hot(x: Any, num_classes: int, axis: int, dtype: Any) -> td.Tensor:
    kind = result_type(dtype) if dtype is not None else "float32"
    found = td.one_hot(tensor(x, td.int64), num_classes, axis=axis, dtype=td.float32)
    return td.cast(found, kind)


@_operation("x")
def one_hot(
    x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False
) -> Any:
    """Rows that are 1 at the number of a class and else 0; a `td.SparseTensor` with `sparse`."""
    found = _one_hot(x, num_classes, axis, dtype)
    return td.sparse.from_dense(found) if sparse else found


@_operation("inputs")
def multi_hot(
    inputs: Any, num_classes: int | None = None, axis: int = -1, dtype: Any = None,
    sparse: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Rows that are 1 at the numbers of several classes and else 0; a `td.SparseTensor` with
    `sparse`."""
    num_classes = kwargs.get("num_tokens", num_classes)
    if num_classes is None:
        raise ValueError("Argument `num_classes` must be specified.")
    x = tensor(inputs)
    found = _one_hot(x, num_classes, axis, "float32")
    rows = td.cast(td.reduce_max(found, 1 if len(x.shape) > 1 else 0), dtype or "float32")
    return td.sparse.from_dense(rows) if sparse else rows


# -- losses ----------------------------------------------------------------------------------------


def _same_shape(target: td.Tensor, output: td.Tensor) -> None:
    if not target.shape.is_compatible_with(output.shape):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )


def _inside(x: td.Tensor) -> td.Tensor:
    return td.clip_by_value(x, _epsilon(), 1.0 - _epsilon())


@_operation("target", "output")
def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """Cross-entropy against distributions along the axis.

    Raises:
        ValueError: the shapes differ.
    """
    output = tensor(output)
    target = tensor(target, output.dtype)
    if not len(target.shape):
        raise ValueError("Arguments `target` and `output` must be at least rank 1.")
    _same_shape(target, output)
    output, from_logits = as_logits(output, from_logits, "Softmax", "categorical_crossentropy")
    if from_logits:
        return td.nn.softmax_cross_entropy_with_logits(labels=target, logits=output, axis=axis)
    shares = output / td.reduce_sum(output, axis, keepdims=True)
    return -td.reduce_sum(target * td.math.log(_inside(shares)), axis)


@_operation("target", "output")
def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """Cross-entropy against class numbers.

    Raises:
        ValueError: the shapes do not fit, or the axis is not the last one.
    """
    target, output = tensor(target, td.int64), tensor(output)
    if axis not in (-1, len(output.shape) - 1):
        raise ValueError(f"Only axis=-1 is currently supported. Received: axis={axis}")
    if len(target.shape) == len(output.shape) and target.shape[-1] == 1:
        target = td.squeeze(target, -1)
    if not output.shape or not target.shape.is_compatible_with(output.shape[:-1]):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )
    output, from_logits = as_logits(
        output, from_logits, "Softmax", "sparse_categorical_crossentropy"
    )
    logits = output if from_logits else td.math.log(_inside(output))
    return td.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)


@_operation("target", "output")
def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """Cross-entropy of binary labels, for each element.

    Raises:
        ValueError: the shapes differ.
    """
    output = tensor(output)
    target = tensor(target, output.dtype)
    _same_shape(target, output)
    output, from_logits = as_logits(output, from_logits, "Sigmoid", "binary_crossentropy")
    if from_logits:
        return td.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    share = _inside(output)
    return -(target * td.math.log(share) + (1 - target) * td.math.log(1 - share))


@_operation("x1", "x2", name="PSNR")
def psnr(x1: Any, x2: Any, max_val: Any) -> Any:
    """The ratio of the greatest value to the mean difference, in decibels.

    Raises:
        ValueError: the shapes differ.
    """
    a, b = tensor(x1), tensor(x2)
    if len(a.shape) != len(b.shape) or not a.shape.is_compatible_with(b.shape):
        raise ValueError(
            f"Input shapes {a.shape} and {b.shape} must match for PSNR calculation."
        )  # fmt: skip
    error = td.reduce_mean(td.square(a - b))
    tens = td.constant(10.0 / math.log(10.0), b.dtype)
    return tens * (2 * td.math.log(tensor(max_val, b.dtype)) - td.math.log(error))


@_operation("output")
def ctc_loss(
    target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0
) -> Any:
    """The loss of connectionist temporal classification, [batch].

    Args:
        target: labels [batch, labels].
        output: logits [batch, time, classes].
        target_length, output_length: how many labels and steps of each row count.
        mask_index: the class of the blank.
    """
    scores = tensor(output)
    scores = scores if scores.dtype.is_floating else td.cast(scores, td.float32)
    return td.nn.ctc_loss(
        td.cast(target, td.int32), scores, target_length, output_length, logits_time_major=False,
        blank_index=mask_index,
    )  # fmt: skip


@_operation("inputs")
def ctc_decode(
    inputs: Any, sequence_lengths: Any, strategy: str = "greedy", beam_width: int = 100,
    top_paths: int = 1, merge_repeated: bool = True, mask_index: int | None = 0,
) -> Any:  # fmt: skip
    """The most probable label sequences, and their scores.

    Args:
        inputs: logits [batch, time, classes].
        sequence_lengths: how many steps of each row count.
        strategy: "greedy", or "beam_search".
        mask_index: the class of the blank; the last one if None.

    Returns:
        int32 labels [paths, batch, time] with -1 behind them, and the scores [batch, paths].

    Raises:
        ValueError: another strategy.
    """
    scores = tensor(inputs)
    scores = td.transpose(scores if scores.dtype.is_floating else td.cast(scores, td.float32),
                          [1, 0, 2])  # fmt: skip
    lengths = td.cast(sequence_lengths, td.int32)
    classes = td.shape(scores)[2]
    if strategy == "greedy":
        decoded, found = td.nn.ctc_greedy_decoder(
            scores, lengths, merge_repeated, blank_index=mask_index
        )
    elif strategy == "beam_search":
        if mask_index is not None:  # the decoder's blank is the last class
            end = classes if mask_index == -1 else mask_index + 1
            parts = (scores[..., :mask_index], scores[..., end:], scores[..., mask_index:end])
            scores = td.concat(parts, -1)
        decoded, found = td.nn.ctc_beam_search_decoder(scores, lengths, beam_width, top_paths)
    else:
        raise ValueError(
            f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'."
        )
    shape = td.cast(td.shape(scores)[1::-1], td.int64)
    rows = [td.SparseTensor(d.indices, d.values, shape) for d in decoded]
    labels = td.cast(td.stack([td.sparse.to_dense(r, -1) for r in rows], 0), td.int32)
    if strategy == "beam_search" and mask_index is not None:
        first = mask_index + classes if mask_index < 0 else mask_index
        labels = td.where(labels >= first, labels + 1, labels)
    return labels, found


# -- normalization ---------------------------------------------------------------------------------


@_operation("x")
def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> Any:
    """Mean and variance along axes; 16-bit floats are computed in float32.

    Args:
        synchronized: accepted: there is one replica.
    """
    x = tensor(x)
    small = x.dtype in (td.float16, td.bfloat16)
    axes = list(axes) if isinstance(axes, tuple) else axes
    found = td.nn.moments(td.cast(x, td.float32) if small else x, axes, keepdims=keepdims)
    return tuple(td.saturate_cast(part, x.dtype) if small else part for part in found)


@_operation("x", "mean", "variance", "offset", "scale", name="BatchNorm")
def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None,
    epsilon: float = 1e-3,
) -> Any:  # fmt: skip
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset`` for the channels of an axis."""
    x = tensor(x)
    shape = [1] * len(x.shape)
    shape[axis] = -1
    middle, spread, plus, times = (
        None if part is None else td.reshape(tensor(part), shape)
        for part in (mean, variance, offset, scale)
    )  # fmt: skip
    return td.nn.batch_normalization(x, middle, spread, plus, times, epsilon)


@_operation("x", "scale", name="RMSNorm")
def rms_normalization(
    x: Any, scale: Any = None, axis: Any = -1, epsilon: float | None = None
) -> Any:
    """x over the root of its mean square along axes, times the scale."""
    x = tensor(x)
    y = td.cast(x, result_type(x.dtype, "float32"))
    y = y if len(y.shape) else y[None]
    axis = list(axis) if isinstance(axis, tuple) else axis
    power = td.reduce_mean(td.square(y), axis, keepdims=True)
    found = y * td.math.rsqrt(power + (_epsilon() if epsilon is None else epsilon))
    return td.cast(found if scale is None else found * tensor(scale, y.dtype), x.dtype)


@_operation("x", "gamma", "beta", name="LayerNorm")
def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float | None = None,
    rms_scaling: bool = False,
) -> Any:  # fmt: skip
    """x with mean 0 and variance 1 along axes, times gamma, plus beta.

    Args:
        rms_scaling: x is divided by its deviation only.
    """
    x = tensor(x)
    y = td.cast(x, result_type(x.dtype, "float32"))
    axes = sorted(axes_of(axis, len(y.shape)))
    shape = [y.shape[a] if a in axes else 1 for a in range(len(y.shape))]
    last = axes == [len(y.shape) - 1]
    times, plus = (
        None if part is None else tensor(part, y.dtype) if last
        else td.reshape(tensor(part, y.dtype), shape)
        for part in (gamma, beta)
    )  # fmt: skip
    mean, variance = td.nn.moments(y, axes, keepdims=True)
    found = (y if rms_scaling else y - mean) * td.math.rsqrt(
        variance + (_epsilon() if epsilon is None else epsilon)
    )
    found = found if times is None else found * times
    return td.cast(found if plus is None or rms_scaling else found + plus, x.dtype)


@_operation("x")
def normalize(x: Any, axis: Any = -1, order: int = 2, epsilon: float | None = None) -> Any:
    """x over its norm along the axis.

    Raises:
        ValueError: `order` is no positive int.
    """
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"Argument `order` must be an int >= 1. Received: order={order}")
    x = tensor(x)
    x = x if len(x.shape) else x[None]
    least = _epsilon() if epsilon is None else epsilon
    if order == 2:
        squares = td.reduce_sum(td.square(x), axis, keepdims=True)
        return x * td.minimum(td.math.rsqrt(squares), td.constant(1.0 / least, x.dtype))
    length = norm(x, order, axis, True)
    (x,) = tensors(x, beside=(float,))
    return x / td.maximum(length, td.constant(least, x.dtype))


# -- attention -------------------------------------------------------------------------------------


@_operation("query", "key", "value", "bias", "mask", "scale")
def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: Any = None,
    is_causal: bool = False, flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Any:  # fmt: skip
    """The values, weighted by how well their keys fit the queries.

    Args:
        query: [batch, steps, heads, size].
        key, value: [batch, other steps, heads, size]; several heads of queries may share one.
        bias: added to the fits.
        mask: which keys count.
        scale: of the fits; one over the root of the size when omitted.
        is_causal: a step does not see later ones.
        flash_attention: False or None: attention is fused by the compiler.

    Raises:
        ValueError: the arguments are not of rank 4, or flash attention is asked for.
    """
    if flash_attention:
        raise ValueError("flash_attention: attention is fused by the compiler: leave it out")
    if attn_logits_soft_cap is not None:
        raise ValueError("attn_logits_soft_cap is not supported: put ops.tanh around the logits")
    q, k, v = tensors(query, key, value)
    if len(q.shape) != 4:
        raise ValueError(
            f"`dot_product_attention` only supports 4D inputs. Received: query.shape={q.shape}, "
            f"key.shape={k.shape}, value.shape={v.shape}."
        )
    heads, others = q.shape[2], k.shape[2]
    if heads is not None and others is not None and heads > others > 1:
        k, v = (td.repeat(x, heads // others, axis=2) for x in (k, v))
    kind = result_type(q.dtype, "float32")
    size = td.cast(td.shape(k)[-1], td.float32)
    scale = 1.0 / td.sqrt(size) if scale is None else tensor(scale)
    logits = td.cast(td.einsum("btnh,bsnh->bnts", q, k), kind) * td.cast(scale, kind)
    if bias is not None:
        logits = logits + td.cast(tensor(bias), kind)
    seen = None if mask is None else td.cast(tensor(mask), td.bool)
    if is_causal:
        steps, sources = td.shape(logits)[2], td.shape(logits)[3]
        past = td.range(sources)[None, :] <= td.range(steps)[:, None]
        seen = past if seen is None else seen & past
    if seen is not None:
        lowest = -0.7 * (65500.0 if kind == "float16" else 3.38953e38)
        logits = td.where(seen, logits, td.constant(lowest, kind))
    return td.einsum("bnts,bsnh->btnh", td.cast(td.nn.softmax(logits), k.dtype), v)


@_operation("abs_", "angle")
def polar(abs_: Any, angle: Any) -> Any:
    """The complex numbers of a length and an angle."""
    length, turn = tensor(abs_), tensor(angle)
    return td.complex(length * td.cos(turn), length * td.sin(turn))

