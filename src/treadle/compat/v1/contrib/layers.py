"""``td.compat.v1.contrib.layers``: layers as functions, initializers and regularizers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1 import functions, initializers, layers, scopes, train
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.contrib.framework import add_arg_scope
from treadle.compat.v1.feature_column import (
    embedding_column as embedding_column,
)
from treadle.compat.v1.feature_column import numeric_column as real_valued_column
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.core.origin import at, user_origin
from treadle.names import missing_in

_relu = graph_function(td.nn.relu)
__all__ = ["embedding_column", "real_valued_column"]


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = td.float32
) -> Any:
    """Glorot's random numbers."""
    kind = "uniform" if uniform else "truncated_normal"
    return initializers.variance_scaling_initializer(1.0, "fan_avg", kind, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False,
                                 seed: int | None = None, dtype: Any = td.float32) -> Any:
    """Random numbers whose variance follows from the number of inputs and outputs."""
    kind = "uniform" if uniform else "truncated_normal"
    return initializers.variance_scaling_initializer(factor, mode.lower(), kind, seed, dtype)


def _sum_of_squares(x: Any, scale: float) -> Any:
    return scale * td.nn.l2_loss(td.convert_to_tensor(x))


def _sum_of_sizes(x: Any, scale: float) -> Any:
    return scale * td.reduce_sum(td.abs(td.convert_to_tensor(x)))


_l2 = recorded(_sum_of_squares, "l2_regularizer", "Mul")
_l1 = recorded(_sum_of_sizes, "l1_regularizer", "Mul")


def _penalty(call: Callable[..., Any], scale: Any) -> Callable[[Any], Any]:
    if isinstance(scale, int) and not isinstance(scale, bool):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if scale < 0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}")
    return (lambda _: None) if scale == 0.0 else lambda x: call(x, scale)


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """A penalty of the squares: half their sum, times `scale`."""
    return _penalty(_l2, scale)


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """A penalty of the absolute values, times `scale`."""
    return _penalty(_l1, scale)


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: Any = None) -> Any:
    """Both penalties."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)])


def sum_regularizer(regularizer_list: Any, scope: str | None = None) -> Callable[[Any], Any]:
    """The sum of penalties."""
    chosen = [r for r in regularizer_list if r is not None]

    def total(x: Any) -> Any:
        found = [v for r in chosen if (v := r(x)) is not None]
        return graph_function(td.add_n)(found) if found else None

    return total


def apply_regularization(regularizer: Any, weights_list: Any = None) -> Any:
    """The sum of the penalties of weights, which the graph collects."""
    graph = get_default_graph()
    chosen = weights_list or graph.get_collection(GraphKeys.WEIGHTS)
    found = [v for w in chosen if (v := regularizer(w)) is not None]
    total = graph_function(td.add_n)(found) if found else graph_function(td.constant)(0.0)
    graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def _finished(outputs: Any, normalizer_fn: Any, normalizer_params: Any, activation_fn: Any) -> Any:
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    return outputs if activation_fn is None else activation_fn(outputs)


def _named(layer: Any, collections: Any = None) -> None:
    """Put the variables of a layer into collections.

    Args:
        collections: names of them, or a dict of these by the variables' own names.
    """
    graph = get_default_graph()
    for variable in layer.variables:
        own = variable.op.name.rpartition("/")[2]
        chosen = collections.get(own) if isinstance(collections, Mapping) else collections
        graph.add_to_collection(GraphKeys.MODEL_VARIABLES, variable)
        graph.add_to_collections(chosen or (), variable)


def _collected(outputs: Any, collections: Any) -> Any:
    """The outputs, which are in collections."""
    get_default_graph().add_to_collections(collections or (), outputs)
    return outputs


def _is_first(data_format: str | None) -> bool:
    """Whether the channels come before the positions.

    Raises:
        ValueError: it is no format.
    """
    if data_format not in (None, "NHWC", "NCHW"):
        raise ValueError(f"data_format has to be either NCHW or NHWC.{at(user_origin())}")
    return data_format == "NCHW"


def _order(data_format: str | None) -> str:
    """The format by the name that layers have for it."""
    return "channels_first" if _is_first(data_format) else "channels_last"


def _renaming(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    path, _, last = name.rpartition("/")
    new = {"kernel": "weights", "bias": "biases"}.get(last, last)
    return getter(f"{path}/{new}" if path else new, *args, **kwargs)


@add_arg_scope
def fully_connected(
    inputs: Any, num_outputs: int, activation_fn: Any = _relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, weights_initializer: Any = None, weights_regularizer: Any = None,
    biases_initializer: Any = initializers.zeros_initializer(), biases_regularizer: Any = None,  # noqa: B008
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """A dense layer."""
    with scopes.variable_scope(
        scope, "fully_connected", reuse=reuse, custom_getter=_renaming
    ) as opened:
        layer = layers.Dense(
            num_outputs, None, biases_initializer is not None and normalizer_fn is None,
            weights_initializer or xavier_initializer(), biases_initializer, weights_regularizer,
            biases_regularizer, trainable=trainable, _scope=opened,
        )  # fmt: skip
        outputs = layer(inputs)
        _named(layer, variables_collections)
        outputs = _finished(outputs, normalizer_fn, normalizer_params, activation_fn)
        return _collected(outputs, outputs_collections)


linear = functools.partial(fully_connected, activation_fn=None)
relu = fully_connected


@add_arg_scope
def conv2d(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: Any = None, rate: Any = 1, activation_fn: Any = _relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, weights_initializer: Any = None, weights_regularizer: Any = None,
    biases_initializer: Any = initializers.zeros_initializer(), biases_regularizer: Any = None,  # noqa: B008
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """A convolution of images."""
    with scopes.variable_scope(scope, "Conv", reuse=reuse, custom_getter=_renaming) as opened:
        layer = layers.Conv2D(
            num_outputs, kernel_size, stride, padding.lower(),
            _order(data_format), rate, None,
            biases_initializer is not None and normalizer_fn is None,
            weights_initializer or xavier_initializer(), biases_initializer, weights_regularizer,
            biases_regularizer, trainable=trainable, _scope=opened,
        )  # fmt: skip
        outputs = layer(inputs)
        _named(layer, variables_collections)
        outputs = _finished(outputs, normalizer_fn, normalizer_params, activation_fn)
        return _collected(outputs, outputs_collections)


convolution2d = convolution = conv2d


@add_arg_scope
def conv2d_transpose(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: Any = None, activation_fn: Any = _relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, weights_initializer: Any = None, weights_regularizer: Any = None,
    biases_initializer: Any = initializers.zeros_initializer(), biases_regularizer: Any = None,  # noqa: B008
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """A convolution of images in the other direction."""
    with scopes.variable_scope(
        scope, "Conv2d_transpose", reuse=reuse, custom_getter=_renaming
    ) as opened:
        layer = layers.Conv2DTranspose(
            num_outputs, kernel_size, stride, padding.lower(),
            _order(data_format),
            use_bias=biases_initializer is not None and normalizer_fn is None,
            kernel_initializer=weights_initializer or xavier_initializer(),
            bias_initializer=biases_initializer, kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer, trainable=trainable, _scope=opened,
        )  # fmt: skip
        outputs = layer(inputs)
        _named(layer, variables_collections)
        outputs = _finished(outputs, normalizer_fn, normalizer_params, activation_fn)
        return _collected(outputs, outputs_collections)


convolution2d_transpose = conv2d_transpose


def stack(
    inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], scope: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """A layer for each element of `stack_args`, its arguments, one after the other."""
    with scopes.variable_scope(scope, "Stack", [inputs]):
        name = scope or getattr(layer, "__name__", "stack")
        for number, given in enumerate(stack_args):
            args = given if isinstance(given, list | tuple) else [given]
            inputs = layer(inputs, *args, scope=f"{name}_{number + 1}", **kwargs)
        return inputs


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any,
           scope: Any = None, **kwargs: Any) -> Any:  # fmt: skip
    """A layer several times, one after the other."""
    with scopes.variable_scope(scope, "Repeat", [inputs]):
        name = scope or getattr(layer, "__name__", "repeat")
        for number in range(repetitions):
            inputs = layer(inputs, *args, scope=f"{name}_{number + 1}", **kwargs)
        return inputs


@add_arg_scope
def layer_norm(
    inputs: Any, center: bool = True, scale: bool = True, activation_fn: Any = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, begin_norm_axis: int = 1, begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:  # fmt: skip
    """Normalizes each example: over the axes from `begin_norm_axis` on."""
    with scopes.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse):
        inputs = functions.convert_to_tensor(inputs)
        shape = inputs.shape[begin_params_axis:]
        made = [
            scopes.get_variable(name, shape, initializer=first, trainable=trainable)
            if wanted else None
            for name, wanted, first in (
                ("beta", center, initializers.zeros_initializer()),
                ("gamma", scale, initializers.ones_initializer()),
            )
        ]  # fmt: skip
        for variable in made:
            if variable is not None:
                get_default_graph().add_to_collection(GraphKeys.MODEL_VARIABLES, variable)
                get_default_graph().add_to_collections(variables_collections or (), variable)
        axes = list(range(begin_norm_axis, inputs.shape.rank))
        mean, variance = graph_function(td.nn.moments)(inputs, axes, keepdims=True)
        outputs = graph_function(td.nn.batch_normalization)(
            inputs, mean, variance, made[0], made[1], 1e-12
        )
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return _collected(outputs, outputs_collections)


@add_arg_scope
def max_pool2d(inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
               data_format: Any = None, outputs_collections: Any = None, scope: Any = None) -> Any:
    """The greatest elements of windows."""
    with functions.name_scope(scope, "MaxPool2D", [inputs]):
        order = _order(data_format)
        outputs = layers.max_pooling2d(inputs, kernel_size, stride, padding.lower(), order)
        return _collected(outputs, outputs_collections)


@add_arg_scope
def avg_pool2d(inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
               data_format: Any = None, outputs_collections: Any = None, scope: Any = None) -> Any:
    """The means of windows."""
    with functions.name_scope(scope, "AvgPool2D", [inputs]):
        order = _order(data_format)
        outputs = layers.average_pooling2d(inputs, kernel_size, stride, padding.lower(), order)
        return _collected(outputs, outputs_collections)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """All axes but the first as one."""
    with functions.name_scope(scope, "Flatten", [inputs]):
        return _collected(layers.flatten(inputs), outputs_collections)


@add_arg_scope
def dropout(inputs: Any, keep_prob: Any = 0.5, noise_shape: Any = None, is_training: Any = True,
            outputs_collections: Any = None, scope: Any = None, seed: Any = None) -> Any:
    """Sets elements to zero at random where `is_training`."""
    with functions.name_scope(scope, "Dropout", [inputs]):
        outputs = layers.dropout(
            inputs, 1.0 - keep_prob, noise_shape, seed, training=is_training
        )
        return _collected(outputs, outputs_collections)


class _BatchNorm(layers.BatchNormalization):
    """Puts the operations that change the means into collections of the caller's, or into none."""

    _fused_axes = {2: (1,)} | layers.BatchNormalization._fused_axes

    def __init__(self, collections: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._collections = collections

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        for update in updates if isinstance(updates, list | tuple) else [updates]:
            self._updates.append(update)
            get_default_graph().add_to_collections(self._collections or (), update)


@add_arg_scope
def batch_norm(inputs: Any, decay: float = 0.999, center: bool = True, scale: bool = False,
               epsilon: float = 0.001, activation_fn: Any = None, param_initializers: Any = None,
               param_regularizers: Any = None,
               updates_collections: Any = GraphKeys.UPDATE_OPS, is_training: Any = True,
               reuse: Any = None, variables_collections: Any = None,
               outputs_collections: Any = None, trainable: bool = True, batch_weights: Any = None,
               fused: Any = None, data_format: str = "NHWC", zero_debias_moving_mean: bool = False,
               scope: Any = None, renorm: bool = False, renorm_clipping: Any = None,
               renorm_decay: float = 0.99, adjustment: Any = None) -> Any:  # fmt: skip
    """Normalizes by batches, or by the means kept.

    Args:
        param_initializers, param_regularizers: dicts for ``beta``, ``gamma``, ``moving_mean`` and
            ``moving_variance``.
        updates_collections: of the operations that change the means. None: they run before the
            outputs are there.
        variables_collections: that the variables are put into, or a dict of them by their names.

    Raises:
        NotImplementedError: `batch_weights`, `zero_debias_moving_mean`, `renorm` or `adjustment`.
    """
    if batch_weights is not None or zero_debias_moving_mean or renorm or adjustment:
        raise NotImplementedError(
            "batch_norm: batch_weights, zero_debias_moving_mean, renorm and adjustment are not "
            f"provided{at(user_origin())}"
        )
    first, penalties = param_initializers or {}, param_regularizers or {}
    kinds = ("beta", "gamma", "moving_mean", "moving_variance")
    with scopes.variable_scope(scope, "BatchNorm", reuse=reuse) as opened:
        layer = _BatchNorm(
            updates_collections, axis=1 if _is_first(data_format) else -1, momentum=decay,
            epsilon=epsilon, center=center, scale=scale, trainable=trainable, fused=fused,
            beta_regularizer=penalties.get("beta"), gamma_regularizer=penalties.get("gamma"),
            _scope=opened, **{f"{kind}_initializer": first.get(kind) for kind in kinds},
        )  # fmt: skip
        outputs = layer(inputs, training=is_training)
        if updates_collections is None and layer.updates:
            outputs = functions.with_dependencies(layer.updates, outputs)
        _named(layer, variables_collections)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return _collected(outputs, outputs_collections)


def embed_sequence(ids: Any, vocab_size: int, embed_dim: int, unique: bool = False,
                   initializer: Any = None, regularizer: Any = None, trainable: bool = True,
                   scope: Any = None, reuse: Any = None) -> Any:  # fmt: skip
    """The vectors of sequences of ids."""
    with scopes.variable_scope(scope, "EmbedSequence", reuse=reuse):
        table = scopes.get_variable(
            "embeddings", [vocab_size, embed_dim], None, initializer, regularizer, trainable
        )
        return graph_function(td.nn.embedding_lookup)(table, ids)


@add_arg_scope
def one_hot_encoding(labels: Any, num_classes: int, on_value: float = 1.0, off_value: float = 0.0,
                     outputs_collections: Any = None, scope: Any = None) -> Any:  # fmt: skip
    """Ones at the labels."""
    with functions.name_scope(scope, "OneHotEncoding", [labels]):
        labels = functions.cast(labels, td.int64)  # as of a file, where they are int32
        outputs = graph_function(td.one_hot)(labels, num_classes, on_value, off_value)
        return _collected(outputs, outputs_collections)


def optimize_loss(loss: Any, global_step: Any, learning_rate: Any, optimizer: Any,
                  gradient_noise_scale: float | None = None, gradient_multipliers: Any = None,
                  clip_gradients: Any = None, learning_rate_decay_fn: Any = None,
                  update_ops: Any = None, variables: Any = None, name: Any = None,
                  summaries: Any = None, colocate_gradients_with_ops: bool = False,
                  increment_global_step: bool = True) -> Any:  # fmt: skip
    """An operation that makes a loss smaller and gives it.

    Args:
        optimizer: an optimizer, its class, a function of the rate, or its name.
        gradient_multipliers: numbers by the variables, or their names, whose gradients are
            multiplied by them.
        clip_gradients: the greatest norm of all gradients together, or a function of the pairs of
            gradients and variables.
        learning_rate_decay_fn: a function of the rate and the step that gives the rate.
        update_ops: operations that run before the loss is there; by default those that layers put
            into the collection UPDATE_OPS.
        summaries: what is written, which is nothing here: say it with `tf.summary`.

    Raises:
        NotImplementedError: `gradient_noise_scale`.
    """
    if gradient_noise_scale is not None:
        raise NotImplementedError(
            f"optimize_loss: gradient_noise_scale is not provided{at(user_origin())}"
        )
    kinds: dict[str, Any] = {
        "Adagrad": train.AdagradOptimizer, "Adam": train.AdamOptimizer, "Ftrl": train.FtrlOptimizer,
        "RMSProp": train.RMSPropOptimizer, "SGD": train.GradientDescentOptimizer,
        "Momentum": lambda rate: train.MomentumOptimizer(rate, 0.9),
    }  # fmt: skip
    graph = get_default_graph()
    step = train.get_global_step() if global_step is None else global_step
    first = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    if first:
        loss = functions.with_dependencies(first, loss)
    if learning_rate is not None and learning_rate_decay_fn is not None:
        if step is None:
            raise ValueError(
                f"global_step is required for learning_rate_decay_fn.{at(user_origin())}"
            )
        learning_rate = learning_rate_decay_fn(learning_rate, step)
    made = kinds[optimizer] if isinstance(optimizer, str) else optimizer
    if not isinstance(made, train.Optimizer):
        made = made() if learning_rate is None else made(learning_rate)
    pairs = made.compute_gradients(loss, variables)
    if gradient_multipliers is not None:
        pairs = [(_multiplied(g, v, gradient_multipliers), v) for g, v in pairs]
    if callable(clip_gradients):
        pairs = clip_gradients(pairs)
    elif clip_gradients is not None:
        chosen = [(g, v) for g, v in pairs if g is not None]
        clipped, _ = graph_function(td.clip_by_global_norm)([g for g, _ in chosen], clip_gradients)
        pairs = list(zip(clipped, [v for _, v in chosen], strict=True))
    done = made.apply_gradients(pairs, step if increment_global_step else None)
    return functions.with_dependencies([done], loss)


def _multiplied(gradient: Any, variable: Any, numbers: Mapping[Any, Any]) -> Any:
    for key in (variable, variable.op.name):
        if gradient is not None and key in numbers:
            return gradient * numbers[key]
    return gradient


def count_params(variables: Any) -> int:
    """How many numbers variables have."""
    return sum(int(np.prod(v.shape.as_list(), dtype=int)) for v in variables)

in_graphs(
    _sum_of_sizes,
    _sum_of_squares,
)

__getattr__ = missing_in(__name__)
