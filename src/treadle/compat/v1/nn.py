"""``td.compat.v1.nn``: functions of neural networks with TensorFlow 1's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1 import rnn_cell
from treadle.compat.v1.functions import renamed, space_to_batch
from treadle.compat.v1.mirrored import fallback, graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.rnn import (
    bidirectional_dynamic_rnn,
    dynamic_rnn,
    raw_rnn,
    static_bidirectional_rnn,
    static_rnn,
)
from treadle.compat.v1.values import element
from treadle.core.origin import at, user_origin
from treadle.sparse import label_sequences


def _along(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    call = graph_function(function)

    def compute(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
        axis = renamed(axis, "axis", dim, "dim")
        return call(logits, -1 if axis is None else axis, name=name)

    compute.__name__ = name
    compute.__doc__ = f"`td.nn.{name}`; also by the old name `dim`."
    return compute


softmax, log_softmax = _along("softmax", td.nn.softmax), _along("log_softmax", td.nn.log_softmax)


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None,
                 dim: Any = None) -> Any:  # fmt: skip
    """`td.nn.l2_normalize`; also by the old name `dim`."""
    axis = renamed(axis, "axis", dim, "dim")
    return graph_function(td.nn.l2_normalize)(x, axis, epsilon, name=name)


def _both_given(labels: Any, logits: Any) -> None:
    if labels is None or logits is None:
        raise ValueError(f"Both `labels` and `logits` must be provided.{at(user_origin())}")


def _softmax_loss(labels: Any, logits: Any, axis: int, stops: bool) -> Any:
    labels = td.cast(labels, td.convert_to_tensor(logits).dtype)
    if stops:
        labels = td.stop_gradient(labels)
    return td.nn.softmax_cross_entropy_with_logits(labels, logits, axis)


_soft = recorded(_softmax_loss, "softmax_cross_entropy_with_logits", "Reshape")


def softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, dim: Any = None,
    name: str | None = None, axis: Any = None,
) -> Any:  # fmt: skip
    """`td.nn.softmax_cross_entropy_with_logits`, without gradients by the labels."""
    _both_given(labels, logits)
    axis = renamed(axis, "axis", dim, "dim")
    return _soft(labels, logits, -1 if axis is None else axis, True, name=name)


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Any:
    """`td.nn.softmax_cross_entropy_with_logits`."""
    axis = renamed(axis, "axis", dim, "dim")
    return _soft(labels, logits, -1 if axis is None else axis, False, name=name)


def sparse_softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Any:
    """`td.nn.sparse_softmax_cross_entropy_with_logits`."""
    _both_given(labels, logits)
    call = graph_function(td.nn.sparse_softmax_cross_entropy_with_logits)
    return call(labels, logits, name=name)


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Any:
    """`td.nn.sigmoid_cross_entropy_with_logits`."""
    _both_given(labels, logits)
    return graph_function(td.nn.sigmoid_cross_entropy_with_logits)(labels, logits, name=name)


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None,
    targets: Any = None,
) -> Any:  # fmt: skip
    """`td.nn.weighted_cross_entropy_with_logits`; also by the old name `targets`."""
    labels = renamed(labels, "labels", targets, "targets")
    call = graph_function(td.nn.weighted_cross_entropy_with_logits)
    return call(labels, logits, pos_weight, name=name)


def _dropped(x: Any, rate: Any, noise_shape: Any, seed: Any, keeps: bool) -> Any:
    if keeps:
        rate = 1.0 - rate if isinstance(rate, int | float) else 1.0 - td.cast(rate, td.float32)
    return td.nn.dropout(x, rate, noise_shape, seed)


_drop = recorded(_dropped, "dropout", "SelectV2")


def dropout(x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: int | None = None,
            name: str | None = None, rate: Any = None) -> Any:  # fmt: skip
    """`td.nn.dropout`, by the part that is kept or the rate that is not.

    Raises:
        ValueError: neither is given, or both.
    """
    if (keep_prob is None) == (rate is None):
        raise ValueError("Exactly one of keep_prob and rate must be given to dropout")
    given = rate if keep_prob is None else keep_prob
    if keep_prob is not None and isinstance(keep_prob, int | float) and not 0 < keep_prob <= 1:
        raise ValueError(f"keep_prob must be in (0, 1], not {keep_prob}")
    return _drop(x, given, noise_shape, seed, keep_prob is not None, name=name)


def _moments(x: Any, axes: Any, keepdims: bool) -> Any:
    return list(td.nn.moments(x, axes, None, keepdims))


def moments(x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: Any = None,
            keepdims: Any = None) -> Any:  # fmt: skip
    """`td.nn.moments`; also by the old name `keep_dims`."""
    keepdims = bool(renamed(keepdims, "keepdims", keep_dims, "keep_dims"))
    return tuple(recorded(_moments, "moments", "Mean")(x, axes, keepdims, name=name))


def weighted_moments(x: Any, axes: Any, frequency_weights: Any, name: str | None = None,
                     keep_dims: Any = None, keepdims: Any = None) -> Any:  # fmt: skip
    """`td.nn.weighted_moments`; also by the old name `keep_dims`."""
    keepdims = bool(renamed(keepdims, "keepdims", keep_dims, "keep_dims"))
    call = graph_function(td.nn.weighted_moments)
    return call(x, axes, frequency_weights, keepdims, name=name)


def conv2d(input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
           use_cudnn_on_gpu: bool = True, data_format: str = "NHWC", dilations: Any = None,
           name: str | None = None, filters: Any = None) -> Any:  # fmt: skip
    """`td.nn.conv2d`; also by the old name `filter`."""
    filters = renamed(filters, "filters", filter, "filter")
    call = graph_function(td.nn.conv2d)
    return call(input, filters, strides, padding, data_format or "NHWC", dilations, name=name)


def conv1d(value: Any = None, filters: Any = None, stride: Any = None, padding: Any = None,
           use_cudnn_on_gpu: Any = None, data_format: str | None = None, name: str | None = None,
           input: Any = None, dilations: Any = None) -> Any:  # fmt: skip
    """`td.nn.conv1d`; also by the old name `value`."""
    x = renamed(input, "input", value, "value")
    call = graph_function(td.nn.conv1d)
    return call(x, filters, stride, padding, data_format or "NWC", dilations, name=name)


def conv3d(input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
           data_format: str = "NDHWC", dilations: Any = None, name: str | None = None,
           filters: Any = None) -> Any:  # fmt: skip
    """`td.nn.conv3d`; also by the old name `filter`."""
    filters = renamed(filters, "filters", filter, "filter")
    call = graph_function(td.nn.conv3d)
    return call(input, filters, strides, padding, data_format, dilations, name=name)


def convolution(input: Any, filter: Any = None, padding: Any = None, strides: Any = None,
                dilation_rate: Any = None, name: str | None = None,
                data_format: str | None = None, filters: Any = None,
                dilations: Any = None) -> Any:  # fmt: skip
    """`td.nn.convolution`; also by the old names `filter` and `dilation_rate`."""
    filters = renamed(filters, "filters", filter, "filter")
    dilations = renamed(dilations, "dilations", dilation_rate, "dilation_rate")
    call = graph_function(td.nn.convolution)
    return call(input, filters, strides, padding, data_format, dilations, name=name)


def conv2d_transpose(value: Any = None, filter: Any = None, output_shape: Any = None,
                     strides: Any = None, padding: str = "SAME", data_format: str = "NHWC",
                     name: str | None = None, input: Any = None, filters: Any = None,
                     dilations: Any = None) -> Any:  # fmt: skip
    """`td.nn.conv2d_transpose`; also by the old names `value` and `filter`."""
    x = renamed(input, "input", value, "value")
    filters = renamed(filters, "filters", filter, "filter")
    call = graph_function(td.nn.conv2d_transpose, "conv2d_transpose Conv2DBackpropInput")
    return call(x, filters, output_shape, strides, padding, data_format, dilations, name=name)


def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any, rate: Any = None,
                     name: str | None = None, data_format: str | None = None,
                     dilations: Any = None) -> Any:  # fmt: skip
    """`td.nn.depthwise_conv2d`; also by the old name `rate`."""
    dilations = renamed(dilations, "dilations", rate, "rate")
    call = graph_function(td.nn.depthwise_conv2d, "depthwise DepthwiseConv2dNative")
    return call(input, filter, strides, padding, data_format, dilations, name=name)


def depthwise_conv2d_native(
    input: Any, filter: Any, strides: Any, padding: Any, data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1), name: str | None = None,
) -> Any:  # fmt: skip
    """`depthwise_conv2d`, whose dilations have a number for each axis."""
    channels_first = data_format == "NCHW"
    rate = list(dilations)[2:] if channels_first else list(dilations)[1:3]
    return depthwise_conv2d(input, filter, strides, padding, rate, name, data_format)


depthwise_conv2d_native_backprop_input, depthwise_conv2d_native_backprop_filter = map(
    graph_function,
    (td.nn.depthwise_conv2d_backprop_input, td.nn.depthwise_conv2d_backprop_filter),
)


def _gradient_of_convolution(type_: str, *operands: Any, **attrs: Any) -> Any:
    names = {"Input": ("input_sizes", "filter"), "Filter": ("input", "filter_sizes")}
    which = "Input" if "Input" in type_ else "Filter"
    given = dict(zip((*names[which], "out_backprop"), operands, strict=True))
    return getattr(td.raw_ops, type_)(**given, **attrs)


_convolution_gradient = recorded(_gradient_of_convolution)


def _convolution(type_: str, operands: Any, strides: Any, padding: Any, data_format: str | None,
                 dilations: Any, name: str | None, default: str) -> Any:  # fmt: skip
    explicit = not isinstance(padding, str) and type_.startswith("Conv2D")
    more = {"explicit_paddings": np.ravel(padding).tolist()} if explicit else {}
    return _convolution_gradient(
        type_, *operands, strides=strides, padding="EXPLICIT" if explicit else padding,
        data_format=data_format or default, dilations=dilations, **more, name=name or type_,
    )  # fmt: skip


def conv2d_backprop_filter(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
    use_cudnn_on_gpu: bool = True, data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:  # fmt: skip
    """The gradient of `conv2d` with respect to the filters."""
    operands = (input, filter_sizes, out_backprop)
    return _convolution("Conv2DBackpropFilter", operands, strides, padding, data_format,
                        list(dilations), name, "NHWC")  # fmt: skip


def conv2d_backprop_input(
    input_sizes: Any, filter: Any = None, out_backprop: Any = None, strides: Any = None,
    padding: Any = None, use_cudnn_on_gpu: bool = True, data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1), name: str | None = None, filters: Any = None,
) -> Any:  # fmt: skip
    """The gradient of `conv2d` with respect to the images."""
    operands = (input_sizes, renamed(filters, "filters", filter, "filter"), out_backprop)
    return _convolution("Conv2DBackpropInput", operands, strides, padding, data_format,
                        list(dilations), name, "NHWC")  # fmt: skip


def conv3d_backprop_filter(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
    data_format: str = "NDHWC", dilations: Any = (1, 1, 1, 1, 1), name: str | None = None,
) -> Any:  # fmt: skip
    """The gradient of `conv3d` with respect to the filters."""
    operands = (input, filter_sizes, out_backprop)
    return _convolution("Conv3DBackpropFilterV2", operands, strides, padding, data_format,
                        list(dilations), name, "NDHWC")  # fmt: skip


conv3d_backprop_filter_v2 = conv3d_backprop_filter


def separable_conv2d(input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any,
                     padding: Any, rate: Any = None, name: str | None = None,
                     data_format: str | None = None, dilations: Any = None) -> Any:  # fmt: skip
    """`td.nn.separable_conv2d`; also by the old name `rate`."""
    dilations = renamed(dilations, "dilations", rate, "rate")
    call = graph_function(td.nn.separable_conv2d, "separable_conv2d Conv2D")
    return call(
        input, depthwise_filter, pointwise_filter, strides, padding, data_format, dilations,
        name=name,
    )  # fmt: skip


def _pooling(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    call = graph_function(function)

    def pool(value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None,
             data_format: str = "NHWC", name: str | None = None, input: Any = None) -> Any:
        x = renamed(input, "input", value, "value")
        return call(x, ksize, strides, padding, data_format, name=name)

    pool.__name__ = name
    pool.__doc__ = f"`td.nn.{name}`; also by the old name `value`."
    return pool


max_pool, avg_pool = _pooling("max_pool", td.nn.max_pool), _pooling("avg_pool", td.nn.avg_pool)


def pool(input: Any, window_shape: Any, pooling_type: str, padding: str,
         dilation_rate: Any = None, strides: Any = None, name: str | None = None,
         data_format: str | None = None, dilations: Any = None) -> Any:  # fmt: skip
    """`td.nn.pool`; also by the old name `dilation_rate`."""
    dilations = renamed(dilations, "dilations", dilation_rate, "dilation_rate")
    call = graph_function(td.nn.pool)
    return call(
        input, window_shape, pooling_type, strides, padding, data_format, dilations, name=name
    )


def dilation2d(input: Any, filter: Any = None, strides: Any = None, rates: Any = None,
               padding: Any = None, name: str | None = None, filters: Any = None,
               dilations: Any = None) -> Any:  # fmt: skip
    """`td.nn.dilation2d`; also by the old names `filter` and `rates`."""
    filters = renamed(filters, "filters", filter, "filter")
    dilations = renamed(dilations, "dilations", rates, "rates")
    call = graph_function(td.nn.dilation2d)
    return call(input, filters, strides, padding, "NHWC", dilations, name=name)


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: str,
              name: str | None = None) -> Any:  # fmt: skip
    """`td.nn.erosion2d`, whose dilations are `rates` here."""
    call = graph_function(td.nn.erosion2d)
    return call(value, kernel, strides, padding, "NHWC", rates, name=name)


def _affine(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    return td.nn.bias_add(td.matmul(x, weights), biases)


xw_plus_b = recorded(_affine, "xw_plus_b", "BiasAdd")


def _affine_relu(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    return td.nn.relu(_affine(x, weights, biases))


relu_layer = recorded(_affine_relu, "relu_layer", "Relu")


def _fused(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float,
           channels_first: bool, training: bool, factor: float) -> list[Any]:  # fmt: skip
    x = td.convert_to_tensor(x)
    wide = td.float32 if x.dtype.size < 4 else x.dtype
    images, axis = td.cast(x, wide), 1 if channels_first else x.shape.rank - 1
    given = [td.cast(v, wide) for v in (mean, variance) if v is not None]
    if training:
        axes = [a for a in range(x.shape.rank) if a != axis]
        mean, variance = td.nn.moments(images, axes)
        count = td.cast(td.size(x) // td.shape(x)[axis], wide)
        told = [mean, variance * count / td.maximum(count - 1.0, 1.0)]
        if factor != 1.0:
            pairs = zip(given, told, strict=True)
            told = [old * (1.0 - factor) + new * factor for old, new in pairs]
    else:
        mean, variance = told = given
    around = [td.cast(v, wide) for v in (mean, variance, offset, scale)]
    if channels_first:
        around = [td.reshape(v, [1, -1, *[1] * (x.shape.rank - 2)]) for v in around]
    m, v, b, g = around
    return [td.cast(td.nn.batch_normalization(images, m, v, b, g, epsilon), x.dtype), *told]


def fused_batch_norm(x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None,
                     epsilon: float = 0.001, data_format: str = "NHWC", is_training: bool = True,
                     name: str | None = None, exponential_avg_factor: float = 1.0) -> Any:
    """The normalized images, and the mean and variance of their channels.

    Images of float16 or bfloat16 are computed in float32, of which mean and variance are.

    Args:
        data_format: "NHWC" or "NCHW", of volumes "NDHWC" or "NCDHW".
        exponential_avg_factor: in training the part of the given mean and variance that is replaced
            by those of the images.

    Raises:
        ValueError: a part of a mean or variance is replaced that is not given.
    """
    call = recorded(_fused, "FusedBatchNorm", "FusedBatchNormV3")
    first = data_format in ("NCHW", "NCDHW")
    missing = mean is None or variance is None
    if missing and (not is_training or exponential_avg_factor != 1.0):
        text = "fused_batch_norm: mean and variance must be given where they count"
        raise ValueError(f"{text}{at(user_origin())}")
    given = (x, scale, offset, mean, variance, epsilon, first, is_training, exponential_avg_factor)
    return tuple(call(*given, name=name))


def embedding_lookup(params: Any, ids: Any, partition_strategy: str = "mod",
                     name: str | None = None, validate_indices: bool = True,
                     max_norm: float | None = None) -> Any:  # fmt: skip
    """`td.nn.embedding_lookup`."""
    if isinstance(params, list | tuple):
        if len(params) != 1:
            raise NotImplementedError("Tables are not divided: give one tensor or variable")
        params = params[0]
    return graph_function(td.nn.embedding_lookup)(params, ids, max_norm, name=name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Any:
    """`td.nn.in_top_k`, whose first arguments are in another order."""
    return graph_function(td.nn.in_top_k)(targets, predictions, k, name=name)


def nce_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int,
             num_classes: int, num_true: int = 1, sampled_values: Any = None,
             remove_accidental_hits: bool = False, partition_strategy: str = "mod",
             name: str = "nce_loss") -> Any:  # fmt: skip
    """The noise-contrastive loss of each example: of its true classes, and of `num_sampled` that
    are drawn (small numbers of classes more often)."""
    return recorded(td.nn.nce_loss, "nce_loss", "Sum")(
        _parts(weights, partition_strategy), _parts(biases, partition_strategy), labels, inputs,
        num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits, name=name,
    )  # fmt: skip


def sampled_softmax_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int,
                         num_classes: int, num_true: int = 1, sampled_values: Any = None,
                         remove_accidental_hits: bool = True, partition_strategy: str = "mod",
                         name: str = "sampled_softmax_loss", seed: int | None = None) -> Any:
    """The softmax loss of each example over its true classes and `num_sampled` that are drawn."""
    return recorded(td.nn.sampled_softmax_loss, "sampled_softmax_loss", "Reshape")(
        _parts(weights, partition_strategy), _parts(biases, partition_strategy), labels, inputs,
        num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits, seed,
        name=name,
    )  # fmt: skip


def _parts(given: Any, strategy: str) -> Any:
    """A table, or the tables that are its parts one behind another."""
    if not isinstance(given, list | tuple) or element(given) is not None:
        return given
    if len(given) == 1:
        return given[0]
    if strategy != "div":
        raise NotImplementedError(
            f'Tables are divided by partition_strategy="div", not {strategy!r}{at(user_origin())}'
        )
    return list(given)


def quantized_relu_x(*args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: there are no quantized numbers."""
    raise NotImplementedError("Quantized numbers are not provided: use td.nn.relu6")


def _label_loss(labels: Any, logits: Any, frames: Any, by_time: bool, lenient: bool) -> Any:
    loss = td.nn.ctc_loss(labels, logits, None, frames, by_time, blank_index=-1)
    return td.where(td.math.is_inf(loss), td.zeros_like(loss), loss) if lenient else loss


_ctc = recorded(_label_loss, "ctc_loss", "CTCLoss")


def ctc_loss(
    labels: Any, inputs: Any = None, sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False, ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False, time_major: bool = True, logits: Any = None,
) -> Any:  # fmt: skip
    """`td.nn.ctc_loss` of sparse labels; the last class is the blank.

    Args:
        ignore_longer_outputs_than_inputs: whether rows with more labels than frames give 0.

    Raises:
        NotImplementedError: labels that are merged before, or paths that are not.
    """
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        raise NotImplementedError(
            "ctc_loss: labels are taken as they are, and what lasts is one label: use "
            f"tf.nn.collapse_repeated on labels{at(user_origin())}"
        )
    scores = renamed(inputs, "inputs", logits, "logits")
    return _ctc(labels, scores, sequence_length, time_major, ignore_longer_outputs_than_inputs)


ctc_loss_v2 = graph_function(td.nn.ctc_loss)
ctc_greedy_decoder = graph_function(td.nn.ctc_greedy_decoder)
ctc_beam_search_decoder_v2 = graph_function(td.nn.ctc_beam_search_decoder)
_beams = recorded(label_sequences.beam_search, "ctc_beam_search_decoder", "CTCBeamSearchDecoder")


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1,
    merge_repeated: bool = True,
) -> Any:  # fmt: skip
    """`td.nn.ctc_beam_search_decoder`; labels that follow themselves are one where they merge."""
    return _beams(inputs, sequence_length, beam_width, top_paths, merge_repeated)


tanh, sigmoid, log_sigmoid = map(graph_function, (td.tanh, td.sigmoid, td.math.log_sigmoid))
local_response_normalization = lrn = graph_function(td.nn.local_response_normalization)

__all__ = [
    "bidirectional_dynamic_rnn",
    "dynamic_rnn",
    "raw_rnn",
    "rnn_cell",
    "space_to_batch",
    "static_bidirectional_rnn",
    "static_rnn",
]

__getattr__ = fallback(__name__, "treadle.nn", "treadle.math")

in_graphs(
    _affine,
    _affine_relu,
    _dropped,
    _fused,
    _gradient_of_convolution,
    _label_loss,
    _moments,
    _softmax_loss,
    label_sequences.beam_search,
)
