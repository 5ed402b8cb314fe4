"""``td.nn`` functions that are compositions of other ops; fusion makes one kernel of each."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.strategies import replicas_in_sync
from treadle.core.tensor import Tensor
from treadle.ops.axes import normalize_axes
from treadle.ops.composed import composed
from treadle.ops.conversion import common_dtype, constant, convert_to_tensor, has_dtype
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.arithmetic import (
    add_n,
    divide,
    divide_no_nan,
    maximum,
    squared_difference,
)
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.logic import logical_not
from treadle.ops.elementwise.powers import pow
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import abs as magnitude
from treadle.ops.elementwise.unary import (
    exp,
    is_finite,
    log,
    reciprocal,
    rsqrt,
    square,
    stop_gradient,
)
from treadle.ops.indexing.gather import gather
from treadle.ops.nn.activations import relu, softplus
from treadle.ops.random.algorithms import check_algorithm
from treadle.ops.random.distributions import random_dims, stateless_uniform, uniform
from treadle.ops.reductions.reduction import reduce_all, reduce_mean, reduce_sum
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.reshaping import expand_dims, reshape, squeeze, with_dims
from treadle.ops.shaping.slicing import part_of


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """``value + bias`` with a one-dimensional bias along the channel axis.

    Args:
        value: [batch, ..., channels], or [batch, channels, ...] for "NCHW".
        bias: [channels].
        data_format: "N...C", like "NHWC" (default, any rank), or "NC...".
        name: accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: the bias is not a vector of the channels' length.
        ValueError: a `data_format` of neither form.
    """
    x = convert_to_tensor(value)
    b = convert_to_tensor(bias, dtype_hint=x.dtype)
    form = "NHWC" if data_format is None else data_format
    if not (form.startswith("NC") or (form.startswith("N") and form.endswith("C"))):
        text = f"bias_add: data_format must be N...C or NC..., not {data_format!r}"
        raise ValueError(f"{text}{at(user_origin())}")
    axis = 1 if data_format is not None and data_format.startswith("NC") else x.ndim - 1
    if b.ndim != 1 or x.ndim < 2 or not x.shape[axis : axis + 1].is_compatible_with(b.shape):
        raise errors.InvalidArgumentError(
            None, None,
            f"bias_add: a bias of shape {b.shape} does not fit axis {axis} of a value of shape "
            f"{x.shape}{at(user_origin())}",
        )  # fmt: skip
    b = with_dims(b, x.dims[axis : axis + 1])
    if axis != x.ndim - 1:
        b = reshape(b, (b.dims[0],) + (1,) * (x.ndim - axis - 1))
    return x + b


@composed
def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance of `x` over `axes` (16-bit floats are computed in float32)."""
    x = convert_to_tensor(x)
    axes = normalize_axes(axes, x.ndim)
    wide = cast(x, dtypes.float32) if x.dtype.size == 2 else x
    mean = reduce_mean(wide, axes, keepdims=True)
    # The mean's own slope cancels out of the variance's gradient.
    variance = reduce_mean(squared_difference(wide, stop_gradient(mean)), axes, keepdims=True)
    if not keepdims:
        mean, variance = squeeze(mean, axes), squeeze(variance, axes)
    return cast(mean, x.dtype), cast(variance, x.dtype)


@composed
def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance of `x` over `axes`, each element counted as often as its weight says.

    Args:
        frequency_weights: broadcasts with `x`.
    """
    given = convert_to_tensor(x)
    axes = normalize_axes(axes, given.ndim)
    narrow = given.dtype.is_floating and given.dtype.size == 2  # sums of squares need more digits
    value = cast(given, dtypes.float32) if narrow else given
    weights = cast(frequency_weights, value.dtype) * ones_like(value)
    total = reduce_sum(weights, axes, keepdims=True)
    mean = divide(reduce_sum(weights * value, axes, keepdims=True), total)
    squares = reduce_sum(weights * squared_difference(value, mean), axes, keepdims=True)
    variance = divide(squares, total)
    if not keepdims:
        mean, variance = squeeze(mean, axes), squeeze(variance, axes)
    return cast(mean, given.dtype), cast(variance, given.dtype)


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The count, sum and sum of squares of `x` (less `shift`) over `axes`, and the shift: what
    `normalize_moments` needs."""
    value = convert_to_tensor(x)
    places = normalize_axes(axes, value.ndim)
    count = cast(dims_tensor(product([value.dims[a] for a in places]), dtypes.int64), value.dtype)
    moved = value if shift is None else value - shift
    total = reduce_sum(moved, axes, keepdims)
    offset = None if shift is None else convert_to_tensor(shift, value.dtype)
    return count, total, reduce_sum(square(moved), axes, keepdims), offset


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from what `sufficient_statistics` gives."""
    inverse = reciprocal(convert_to_tensor(counts))
    shifted = convert_to_tensor(mean_ss) * inverse
    variance = convert_to_tensor(variance_ss) * inverse - square(shifted)
    return shifted if shift is None else shifted + shift, variance


def crelu(features: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """`relu` of the features and of their negatives, joined along an axis."""
    x = convert_to_tensor(features)
    return relu(concat([x, -x], axis))


@composed
def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """``exp(log_input) - log_input * targets``, for each element.

    Args:
        compute_full_loss: add Stirling's approximation of ``log(targets!)`` where targets > 1.
    """
    x, wanted = common_dtype("log_poisson_loss", log_input, targets)
    loss: Tensor = exp(x) - x * wanted
    if not compute_full_loss:
        return loss
    safe = where(wanted > 1, wanted, 1)
    stirling = safe * log(safe) - safe + 0.5 * log(2 * math.pi * safe)
    return loss + where(wanted > 1, stirling, 0)


@composed
def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """``x / (bias + alpha * s) ** beta``, where s is the sum of squares of the elements at most
    `depth_radius` away along the last axis.

    Args:
        input: [batch, height, width, channels] floats.
    """
    x = convert_to_tensor(input)
    if x.ndim != 4:
        text = f"local_response_normalization: four axes are expected, the shape is {x.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    total = bias + alpha * _sums_nearby(square(x), depth_radius)
    if beta == 0.5:
        return x * rsqrt(total)
    return x * (reciprocal(total) if beta == 1 else pow(total, -beta))


MOST_WEIGHED = 32  # channels of which a sum with weights 0 and 1 takes less than a shift for each


def _sums_nearby(x: Tensor, radius: int) -> Tensor:
    """For each element the sum of those at most `radius` away along the last axis."""
    channels = x.dims[-1]
    if isinstance(channels, int):
        radius = min(radius, max(channels - 1, 0))  # there is nothing farther away
        if channels <= MOST_WEIGHED:
            places = np.arange(channels)
            near = abs(places[:, None] - places) <= radius
            weights = constant(near.astype(x.dtype.np_dtype), x.dtype)
            return reduce_sum(expand_dims(x, -1) * weights, -2)
    padded = pad(x, [[0, 0]] * (x.ndim - 1) + [[radius, radius]])
    return add_n([part_of(padded, x.ndim - 1, n, channels) for n in range(2 * radius + 1)])


@composed
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """``scale * (x - mean) / sqrt(variance + epsilon) + offset``; scale and offset may be None."""
    value: Tensor = convert_to_tensor(x)
    factor = rsqrt(convert_to_tensor(variance) + variance_epsilon)
    if scale is not None:
        factor = factor * scale
    shift = -(convert_to_tensor(mean) * factor)
    if offset is not None:
        shift = shift + offset
    return value * cast(factor, value.dtype) + cast(shift, value.dtype)


def batch_norm_with_global_normalization(
    input: Any, mean: Any, variance: Any, beta: Any, gamma: Any, variance_epsilon: float,
    scale_after_normalization: bool, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`batch_normalization` with the offset beta, and the scale gamma where it is wanted."""
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Zero a fraction `rate` of the elements and scale the rest by ``1 / (1 - rate)``.

    Args:
        x: floats.
        rate: a number in [0, 1), or a scalar tensor of x's dtype, whose value is not looked at, as
            TensorFlow does not: from a rate of 1 on all elements are zero.
        noise_shape: the shape of the mask where it broadcasts to x; None in it takes x's dim.
        seed: as for `random.uniform`.
        name: accepted for TensorFlow programs.

    Raises:
        ValueError: a number outside [0, 1), or `x` not floating.
        TypeError: a tensor of another dtype as the rate.
        InvalidArgumentError: a rate that is no scalar.
    """

    def drawn(shape: Any, dtype: Any) -> Tensor:
        return uniform(shape, seed=seed, dtype=dtype)

    return general_dropout(x, rate, drawn, noise_shape)


def stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = None, noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`dropout` as a pure function of `seed`, two ints; the numbers are TensorFlow's."""

    def drawn(shape: Any, dtype: Any) -> Tensor:
        return stateless_uniform(shape, seed, dtype=dtype)

    check_algorithm(rng_alg)
    return general_dropout(x, rate, drawn, noise_shape)


def general_dropout(
    x: Any, rate: Any, uniform_sampler: Callable[..., Tensor], noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`dropout` where numbers in [0, 1) are below the rate.

    Args:
        uniform_sampler: ``uniform_sampler(shape=shape, dtype=dtype)`` gives the numbers.
    """
    value: Tensor = convert_to_tensor(x)
    if not value.dtype.is_floating:
        raise ValueError(f"dropout: x must be floating, got {value.dtype.name}{at(user_origin())}")
    if isinstance(rate, numbers.Real):
        rate = float(rate)
        if not 0 <= rate < 1:
            raise ValueError(f"dropout: rate must be in [0, 1), got {rate}{at(user_origin())}")
        if rate == 0:
            return value
    else:
        rate = convert_to_tensor(rate, None if has_dtype(rate) else value.dtype)
        if rate.ndim:
            text = f"dropout: rate must be a scalar, not of shape {rate.shape}{at(user_origin())}"
            raise errors.InvalidArgumentError(None, None, text)
    dims = value.dims
    if noise_shape is not None:
        given = list(noise_shape) if isinstance(noise_shape, list | tuple) else noise_shape
        if isinstance(given, list):
            given = [dims[i] if d is None else d for i, d in enumerate(given)]
        dims = random_dims(given)
    keep = uniform_sampler(shape=dims, dtype=value.dtype) >= rate
    return where(keep, value * (1 / (1 - rate)), convert_to_tensor(0, value.dtype))


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The sum of the losses divided by the size of the batch: a replica's share of the mean over
    all replicas (`td.distribute`).

    Args:
        per_example_loss: [batch, ...].
        sample_weight: a weight for each loss; broadcasts with them.
        global_batch_size: an integer, by default the size of the first axis times the number of
            replicas; 0 gives 0.

    Raises:
        ValueError: a scalar loss.
        RuntimeError: called in the scope of a strategy where no replica runs.
        TypeError, InvalidArgumentError: the size is no integer, or negative.
    """
    losses = convert_to_tensor(per_example_loss)
    if not losses.ndim:
        text = "compute_average_loss: the losses of examples are expected, not a scalar"
        raise ValueError(f"{text}{at(user_origin())}")
    kind = losses.dtype
    if sample_weight is not None:
        wide = dtypes.float32 if kind.is_integer else kind  # weights have fractions
        losses = cast(cast(losses, wide) * cast(sample_weight, wide), kind)
    batch = losses.dims[0] * replicas_in_sync("compute_average_loss")
    if global_batch_size is not None:
        batch = size_of(global_batch_size, "compute_average_loss: global_batch_size")
    return divide_no_nan(reduce_sum(losses), cast(dims_tensor(batch, dtypes.int64), kind))


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the loss divided by the number of replicas, whose gradients are added up. Integers
    give a float64.

    Raises:
        RuntimeError: called in the scope of a strategy where no replica runs.
    """
    replicas = replicas_in_sync("scale_regularization_loss")
    total = reduce_sum(regularization_loss)
    total = cast(total, dtypes.float64) if total.dtype.is_integer else total
    return total if replicas == 1 else total / cast(replicas, total.dtype)


def _table(parts: Sequence[Any]) -> Tensor:
    tables = [convert_to_tensor(part) for part in parts]
    sizes = [table.dims[0] for table in tables]
    known = [size for size in sizes if isinstance(size, int)]
    share, more = divmod(sum(known), len(sizes)) if sizes else (0, 0)
    fair = [share + 1] * more + [share] * (len(sizes) - more)
    if not sizes or (len(known) == len(sizes) and known != fair):
        raise errors.InvalidArgumentError(
            None, None, f"embedding_lookup: parts of {sizes} rows are no division of a table; "
            f"{fair} are{at(user_origin())}",
        )  # fmt: skip
    return concat(tables, 0)


def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None
) -> Tensor:
    """The rows of `params` that `ids` names, each clipped to norm `max_norm` where given.

    Args:
        params: a table of rows, or a list of tables that are its parts: all of the same size, but
            for the first ones, which may have one row more.

    Raises:
        InvalidArgumentError: an id outside of the table, or parts of other sizes.
    """
    rows = gather(_table(params) if isinstance(params, list) else params, ids)
    if max_norm is None:
        return rows
    axes = list(range(convert_to_tensor(ids).ndim, rows.ndim))
    norm = reduce_sum(square(rows), axes, keepdims=True)
    scale: Tensor = max_norm * rsqrt(maximum(norm, max_norm * max_norm))
    return rows * scale


@composed
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """``x / sqrt(max(sum(abs(x) ** 2, axis), epsilon))``.

    Args:
        axis: an axis or a list; all by default.
        epsilon: the least sum of squares that the elements are divided by.
        name: accepted for TensorFlow programs.
        dim: TensorFlow's older name of `axis`.

    Raises:
        ValueError: both are given.
    """
    if axis is not None and dim is not None:
        raise ValueError(f"l2_normalize: give axis or dim, not both{at(user_origin())}")
    value: Tensor = convert_to_tensor(x)
    squares = square(magnitude(value) if value.dtype.is_complex else value)
    total = reduce_sum(squares, dim if axis is None else axis, keepdims=True)
    return value * cast(rsqrt(maximum(total, epsilon)), value.dtype)


@composed
def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target is among the `k` highest predictions of its row, ties included. It is
    not where one of these is not finite.

    Args:
        targets: [batch] class numbers; one that no class has is not among them.
        predictions: [batch, classes].
        k: how many.
        name: accepted for TensorFlow programs.
    """
    p, t = convert_to_tensor(predictions), convert_to_tensor(targets)
    if p.ndim != 2 or t.ndim != 1 or not t.shape.is_compatible_with(p.shape[:1]):
        raise errors.InvalidArgumentError(
            None, None,
            f"in_top_k: targets of shape {t.shape} do not name a class for each row of "
            f"predictions of shape {p.shape}{at(user_origin())}",
        )  # fmt: skip
    classes = dims_tensor(p.dims[1], t.dtype)
    known = (t >= 0) & (t < classes)
    own = gather(p, where(known, t, 0)[:, None], axis=1, batch_dims=1)
    higher = reduce_sum(cast(p > own, dtypes.int32), -1)
    inside: Tensor = known & (higher < k) & reduce_all(is_finite(p), -1)
    return inside


@composed
def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> Tensor:
    """Sigmoid cross-entropy with the positive term multiplied by `pos_weight`."""
    x = convert_to_tensor(logits)
    z = convert_to_tensor(labels, dtype_hint=x.dtype)
    loss: Tensor = (1 - z) * x + (1 + (pos_weight - 1) * z) * softplus(-x)
    return loss


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of zeros, a float32 scalar."""
    x = convert_to_tensor(value)
    zeros = logical_not(x) if x.dtype.is_bool else x == convert_to_tensor(0, x.dtype)
    return reduce_mean(cast(zeros, dtypes.float32))


__all__ = [
    "batch_normalization", "bias_add", "dropout", "embedding_lookup", "in_top_k",
    "l2_normalize", "moments", "weighted_cross_entropy_with_logits", "zero_fraction",
]  # fmt: skip
