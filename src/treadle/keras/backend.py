"""``td.keras.backend``: the functions that Keras 2 programs call as ``K.mean`` and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import activations, config, losses, naming
from treadle.keras.backend_elements import (
    all,
    any,
    clip,
    elu,
    gather,
    max,
    min,
    ones_like,
    permute_dimensions,
    pow,
    relu,
    reshape,
    shape,
    softplus,
    softsign,
    squeeze,
    stack,
    stop_gradient,
    tile,
    transpose,
    zeros_like,
)
from treadle.keras.backend_networks import (
    batch_dot,
    batch_normalization,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_focal_crossentropy,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    depthwise_conv2d,
    foldl,
    foldr,
    gradients,
    is_sparse,
    map_fn,
    moving_average_update,
    pool2d,
    pool3d,
    resize_images,
    resize_volumes,
    rnn,
    separable_conv2d,
    spatial_2d_padding,
    spatial_3d_padding,
    temporal_padding,
    to_dense,
)
from treadle.keras.config import (
    backend,
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from treadle.keras.layers.arguments import training_of_the_call
from treadle.keras.layers.symbolic import is_keras_tensor
from treadle.keras.learning_phase import set_learning_phase
from treadle.keras.promotion import (
    is_float_dtype,
    is_int_dtype,
    result_type,
    standardize_dtype,
)
from treadle.keras.utils import clear_session
from treadle.keras.variables import name_scope
from treadle.names import missing_in


def _floats(x: Any) -> td.Tensor:
    """Bools as numbers, which Keras's means of them need."""
    tensor = td.convert_to_tensor(x)
    return td.cast(tensor, floatx()) if tensor.dtype == td.bool else tensor


def _reduction(function: Callable[..., td.Tensor]) -> Callable[..., td.Tensor]:
    def reduced(x: Any, axis: Any = None, keepdims: bool = False) -> td.Tensor:
        return function(_floats(x), axis, keepdims)

    reduced.__doc__ = f"``td.{function.__name__}`` along the axes; of bools as numbers."
    return reduced


sum, mean, prod = (_reduction(f) for f in (td.reduce_sum, td.reduce_mean, td.reduce_prod))
std, var = (_reduction(f) for f in (td.math.reduce_std, td.math.reduce_variance))
logsumexp = td.reduce_logsumexp
abs, exp, log, sqrt, square = td.abs, td.exp, td.math.log, td.sqrt, td.square
sin, cos, tanh, sign, round = td.sin, td.cos, td.tanh, td.sign, td.round
sigmoid, maximum, minimum = td.sigmoid, td.maximum, td.minimum
equal, not_equal, greater, greater_equal = td.equal, td.not_equal, td.greater, td.greater_equal
less, less_equal, cast = td.less, td.less_equal, td.cast


def softmax(x: Any, axis: int = -1) -> td.Tensor:
    """Softmax along the axis."""
    return activations.softmax(x, axis=axis)


def argmax(x: Any, axis: int = -1) -> td.Tensor:
    """The position of the largest element."""
    return td.argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> td.Tensor:
    """The position of the smallest element."""
    return td.argmin(x, axis)


def expand_dims(x: Any, axis: int = -1) -> td.Tensor:
    """A new axis of size 1."""
    return td.expand_dims(x, axis)


def concatenate(tensors: Any, axis: int = -1) -> Any:
    """The tensors one after the other along the axis: sparse, where all of them are."""
    if not [x for x in tensors if not is_sparse(x)]:  # `all` is this module's own
        return td.sparse.concat(axis, tensors)
    return td.concat([to_dense(x) for x in tensors], axis)


def flatten(x: Any) -> td.Tensor:
    """All elements along one axis."""
    return td.reshape(x, [-1])


def batch_flatten(x: Any) -> td.Tensor:
    """All axes but the first become one."""
    return td.reshape(x, [td.shape(x)[0], -1])


def dot(x: Any, y: Any) -> td.Tensor:
    """The product; of more than two axes over the last of x and the last but one of y.

    A sparse matrix x gives a dense product.
    """
    if is_sparse(x):
        return td.sparse.sparse_dense_matmul(x, y)
    x, y = td.convert_to_tensor(x), td.convert_to_tensor(y)
    if len(x.shape) == 2 == len(y.shape):
        return td.matmul(x, y)
    second = len(y.shape) - 2 if len(y.shape) > 1 else 0
    return td.tensordot(x, y, [[len(x.shape) - 1], [second]])


def l2_normalize(x: Any, axis: Any = None) -> td.Tensor:
    """x over its norm."""
    return td.nn.l2_normalize(x, axis=axis)


def one_hot(indices: Any, num_classes: int) -> td.Tensor:
    """Class numbers as one-hot rows."""
    return td.one_hot(indices, num_classes)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two values, each a tensor or a function that gives it."""
    then, other = (
        given if callable(given) else (lambda given=given: given)
        for given in (then_expression, else_expression)
    )
    if len(td.convert_to_tensor(condition).shape):
        return td.where(condition, then(), other())
    return td.cond(condition, then, other)


# -- making ----------------------------------------------------------------------------------------


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable."""
    return td.Variable(value, dtype=dtype or floatx(), name=name, constraint=constraint)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """A constant."""
    return td.constant(value, dtype or floatx(), shape=shape)


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> td.Variable:
    """A variable of zeros."""
    return td.Variable(td.zeros(shape, dtype or floatx()), name=name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> td.Variable:
    """A variable of ones."""
    return td.Variable(td.ones(shape, dtype or floatx()), name=name)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "int32") -> td.Tensor:
    """Numbers from start to stop."""
    return td.range(0 if stop is None else start, start if stop is None else stop, step, dtype)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """Normally distributed numbers."""
    return td.random.normal(shape, mean, stddev, dtype=dtype or floatx(), seed=seed)


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """Uniformly distributed numbers."""
    return td.random.uniform(shape, minval, maxval, dtype=dtype or floatx(), seed=seed)


def random_bernoulli(
    shape: Any, p: float = 0.0, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """Ones with the probability p, zeros otherwise."""
    drawn = random_uniform(shape, dtype=dtype, seed=seed)
    return td.cast(drawn <= td.cast(p, drawn.dtype), drawn.dtype)


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """Normally distributed numbers, those beyond two deviations drawn again."""
    return td.random.truncated_normal(shape, mean, stddev, dtype=dtype or floatx(), seed=seed)


def random_uniform_variable(
    shape: Any, low: float, high: float, dtype: Any = None, name: str | None = None,
    seed: Any = None,
) -> td.Variable:  # fmt: skip
    """A variable of uniformly distributed numbers."""
    return td.Variable(random_uniform(shape, low, high, dtype, seed), name=name)


def random_normal_variable(
    shape: Any, mean: float, scale: float, dtype: Any = None, name: str | None = None,
    seed: Any = None,
) -> td.Variable:  # fmt: skip
    """A variable of normally distributed numbers."""
    return td.Variable(random_normal(shape, mean, scale, dtype, seed), name=name)


def eye(size: Any, dtype: Any = None, name: str | None = None) -> td.Variable:
    """A variable of ones on the diagonal."""
    return td.Variable(td.eye(size, dtype=dtype or floatx()), name=name)


# -- arrays, as numpy has them ---------------------------------------------------------------------


def cast_to_floatx(x: Any) -> Any:
    """A tensor or an array in the dtype that `floatx` says."""
    if isinstance(x, td.Tensor | td.Variable):
        return td.cast(x, floatx())
    if is_keras_tensor(x):
        return td.keras.ops.cast(x, floatx())
    return np.asarray(x, dtype=floatx())


def cumsum(x: Any, axis: int = 0) -> td.Tensor:
    """Sums of the elements so far."""
    return td.cumsum(x, axis)


def cumprod(x: Any, axis: int = 0) -> td.Tensor:
    """Products of the elements so far."""
    return td.math.cumprod(x, axis)


def repeat_elements(x: Any, rep: int, axis: int) -> td.Tensor:
    """Each element so many times in a row, as `numpy.repeat`."""
    return td.repeat(x, rep, axis)


def repeat(x: Any, n: int) -> td.Tensor:
    """A matrix n times, along a new second axis."""
    return td.tile(td.expand_dims(x, 1), [1, n, 1])


def reverse(x: Any, axes: Any) -> td.Tensor:
    """The elements in reverse order along the axes."""
    return td.reverse(x, [axes] if isinstance(axes, int) else list(axes))


def bias_add(x: Any, bias: Any, data_format: str | None = None) -> td.Tensor:
    """x plus a bias of its channels, or of its places and channels.

    Args:
        data_format: "channels_last", "channels_first", or None for Keras's setting. A bias of
            places and channels has the channels last in either; where they come first in x, its
            elements are taken in their order, without a transposition, as Keras does.

    Raises:
        ValueError: the bias has another number of axes.
    """
    x, bias = td.convert_to_tensor(x), td.convert_to_tensor(bias)
    rank, sizes = len(x.shape), list(bias.shape)
    if len(sizes) not in (1, rank - 1):
        raise ValueError(
            f"Unexpected bias dimensions {len(sizes)}. Expected it to be 1 or {rank - 1} dimensions"
        )
    first = (data_format or config.image_data_format()) == "channels_first"
    if len(sizes) == 1:
        return td.nn.bias_add(x, bias, "NC..." if first else "N...C")
    return td.add(x, td.reshape(bias, [sizes[-1], *sizes[:-1]] if first else sizes))


def hard_sigmoid(x: Any) -> td.Tensor:
    """A straight line instead of the sigmoid, from 0 at -2.5 to 1 at 2.5."""
    return td.clip_by_value(0.2 * td.convert_to_tensor(x) + 0.5, 0.0, 1.0)


def in_top_k(predictions: Any, targets: Any, k: int) -> td.Tensor:
    """Whether the targets are among the k largest predictions."""
    return td.math.in_top_k(targets, predictions, k)


def dropout(x: Any, level: float, noise_shape: Any = None, seed: Any = None) -> td.Tensor:
    """x with a fraction of its elements zero, the others larger."""
    return td.nn.dropout(x, level, noise_shape=noise_shape, seed=seed)


# -- values ----------------------------------------------------------------------------------------


def get_value(x: Any) -> Any:
    """The value as an array."""
    return x.numpy()


eval = get_value


def set_value(x: Any, value: Any) -> None:
    """Assign a variable."""
    x.assign(np.asarray(value, x.dtype.as_numpy_dtype))


def batch_get_value(tensors: Any) -> list[Any]:
    """The values as arrays."""
    return [get_value(x) for x in tensors]


def batch_set_value(tuples: Any) -> None:
    """Assign variables, given as pairs of variable and value."""
    for x, value in tuples:
        set_value(x, value)


def update(x: td.Variable, new_x: Any) -> Any:
    """Assign a variable."""
    return x.assign(new_x)


def update_add(x: td.Variable, increment: Any) -> Any:
    """Add to a variable."""
    return x.assign_add(increment)


def update_sub(x: td.Variable, decrement: Any) -> Any:
    """Subtract from a variable."""
    return x.assign_sub(decrement)


def placeholder(
    shape: Any = None, ndim: int | None = None, dtype: Any = None, sparse: bool = False,
    name: str | None = None, ragged: bool = False,
) -> Any:  # fmt: skip
    """What `td.keras.Input` gives, by its shape with the batch's size or by its number of axes."""
    batch_shape = (None,) * ndim if ndim and not shape else tuple(shape or ())
    return td.keras.Input(
        batch_shape=batch_shape, dtype=dtype, sparse=sparse, ragged=ragged, name=name
    )


def function(
    inputs: Any, outputs: Any, updates: Any = None, name: str | None = None
) -> Callable[[Any], Any]:
    """A function of arrays, from inputs and outputs of layers that are called on each other.

    Args:
        inputs, outputs: as of `td.keras.Model`; a list of one output gives a list of one array.
        updates: nothing.

    Raises:
        ValueError: there are updates: assignments happen where they stand.
    """
    if updates:
        raise ValueError("function: there are no `updates`: assignments happen where they stand")
    model = td.keras.Model(inputs, outputs, **({} if name is None else {"name": name}))
    is_list_of_one = isinstance(outputs, list) and len(outputs) == 1

    def call(values: Any) -> Any:
        found = model(values)
        if is_list_of_one and not isinstance(found, list):
            found = [found]
        return td.nest.map_structure(lambda x: x.numpy() if isinstance(x, td.Tensor) else x, found)

    return call


def count_params(x: Any) -> int:
    """The number of elements."""
    return int(np.prod(tuple(x.shape)))


def int_shape(x: Any) -> tuple[int | None, ...]:
    """The shape as a tuple, None where a size is open."""
    return tuple(x.shape)


def ndim(x: Any) -> int:
    """The number of axes."""
    return len(x.shape)


def dtype(x: Any) -> str:
    """The dtype's name."""
    return str(x.dtype.name)


def get_uid(prefix: str = "") -> int:
    """How often this was called with the prefix, this call included."""
    return naming.next_number(prefix)


def learning_phase() -> Any:
    """Whether the layer that is being called trains, as 1 or 0, or the tensor that it was given.

    Where nobody said so, and outside of layers, it is what `set_learning_phase` set, or else 0.
    """
    found = training_of_the_call()
    return found if td.is_tensor(found) else int(bool(found))


# -- losses ----------------------------------------------------------------------------------------


def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> td.Tensor:
    """Cross-entropy against distributions."""
    return losses.categorical_crossentropy(target, output, from_logits, axis=axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1,
    ignore_class: int | None = None,
) -> td.Tensor:  # fmt: skip
    """Cross-entropy against class numbers; 0 for examples of the class `ignore_class`."""
    return losses.sparse_categorical_crossentropy(target, output, from_logits, ignore_class, axis)


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> td.SparseTensor:
    """The first labels of each row, as a sparse matrix."""
    rows = td.convert_to_tensor(labels)
    kept = td.sequence_mask(label_lengths, td.shape(rows)[1])
    places = td.where(kept)
    return td.SparseTensor(places, td.gather_nd(rows, places), td.shape(rows, td.int64))


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> td.Tensor:
    """The loss of connectionist temporal classification, [batch, 1]; the last class is the blank.

    Args:
        y_true: labels [batch, labels].
        y_pred: probabilities [batch, time, classes].
        input_length, label_length: [batch, 1], how many steps and labels of each row count.
    """
    scores = td.math.log(td.convert_to_tensor(y_pred) + epsilon())
    labels, counts, steps = (
        td.cast(x, td.int32)
        for x in (y_true, td.squeeze(label_length, -1), td.squeeze(input_length, -1))
    )
    loss = td.nn.ctc_loss(labels, scores, counts, steps, logits_time_major=False, blank_index=-1)
    return loss[:, None]


def ctc_decode(
    y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[td.Tensor], td.Tensor]:
    """The most probable label sequences, [batch, time] each with -1 behind them, and their scores.

    Args:
        y_pred: probabilities [batch, time, classes]; the last class is the blank.
        input_length: [batch], how many steps of each row count.
        greedy: whether the most probable class of each step is taken; else a beam is searched.
    """
    shape = td.shape(y_pred, td.int64)[:2]
    scores = td.math.log(td.transpose(y_pred, [1, 0, 2]) + epsilon())
    if greedy:
        decoded, found = td.nn.ctc_greedy_decoder(scores, input_length)
    else:
        decoded, found = td.compat.v1.nn.ctc_beam_search_decoder(
            scores, td.cast(input_length, td.int32), beam_width, top_paths
        )
    rows = [td.SparseTensor(d.indices, d.values, shape) for d in decoded]
    return [td.sparse.to_dense(r, -1) for r in rows], found


__all__ = [
    "abs", "all", "any", "arange", "argmax", "argmin", "backend", "batch_dot", "batch_flatten",
    "batch_get_value", "batch_normalization", "batch_set_value", "bias_add",
    "binary_crossentropy", "binary_focal_crossentropy", "cast", "cast_to_floatx",
    "categorical_crossentropy", "categorical_focal_crossentropy", "clear_session", "clip",
    "concatenate", "constant", "conv1d", "conv2d", "conv2d_transpose", "conv3d", "cos",
    "count_params", "ctc_batch_cost", "ctc_decode", "ctc_label_dense_to_sparse", "cumprod",
    "cumsum", "depthwise_conv2d", "dot", "dropout", "dtype", "elu",
    "epsilon", "equal", "eval", "exp", "expand_dims", "eye", "flatten", "floatx", "foldl",
    "foldr", "function", "gather", "get_uid", "get_value", "gradients", "greater", "greater_equal",
    "hard_sigmoid", "image_data_format", "in_top_k", "int_shape", "is_float_dtype",
    "is_int_dtype", "is_keras_tensor", "is_sparse", "l2_normalize", "learning_phase", "less",
    "less_equal", "log",
    "logsumexp", "map_fn", "max", "maximum", "mean", "min", "minimum", "moving_average_update",
    "name_scope", "ndim", "not_equal", "one_hot", "ones", "ones_like", "permute_dimensions",
    "placeholder", "pool2d", "pool3d", "pow", "prod", "random_bernoulli", "random_normal",
    "random_normal_variable", "random_uniform", "random_uniform_variable", "relu", "repeat",
    "repeat_elements", "reshape", "resize_images", "resize_volumes", "result_type", "reverse",
    "rnn", "round", "separable_conv2d", "set_epsilon", "set_floatx", "set_image_data_format",
    "set_learning_phase", "set_value", "shape", "sigmoid", "sign", "sin", "softmax", "softplus",
    "softsign",
    "sparse_categorical_crossentropy", "spatial_2d_padding", "spatial_3d_padding", "sqrt",
    "square", "squeeze", "stack", "standardize_dtype", "std", "stop_gradient", "sum", "switch",
    "tanh", "temporal_padding", "tile", "to_dense", "transpose", "truncated_normal", "update",
    "update_add", "update_sub", "var", "variable", "zeros", "zeros_like",
]  # fmt: skip

__getattr__ = missing_in(__name__)
