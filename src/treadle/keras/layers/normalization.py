"""Normalization over batches, examples and groups of channels."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import treadle as td
from treadle.keras import config
from treadle.keras.layers.base import Layer
from treadle.keras.layers.input_spec import InputSpec
from treadle.modes import generation


class _Normalization(Layer):
    """What layers share that normalize and then multiply by gamma and add beta."""

    gamma: Any
    beta: Any
    scale: Any  # whether to multiply by gamma
    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("axis", "epsilon", "center", "scale")
    _weight_kinds: ClassVar[dict[str, str]] = {"gamma": "ones", "beta": "zeros"}

    def __init__(
        self, axis: Any, epsilon: float, center: bool, scale: bool, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(axis, int | list | tuple):
            raise TypeError(
                f"Expected an int or a list/tuple of ints for the argument 'axis', but received: "
                f"{axis}"
            )
        self.axis = axis if isinstance(axis, int) else list(axis)
        self.epsilon, self.center, self.scale = epsilon, center, scale

    def _axes(self, rank: int) -> list[int]:
        axes = [self.axis] if isinstance(self.axis, int) else self.axis
        if any(not -rank <= a < rank for a in axes):
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}): axis {self.axis} is not one of the '
                f"{rank} axes of the inputs"
            )
        return sorted(a % rank for a in axes)

    def build(self, input_shape: Any) -> None:
        axes = self._axes(len(input_shape))
        shape = [input_shape[a] for a in (axes if isinstance(self.axis, int) else self.axis)]
        if None in shape:
            named = axes[0] if len(axes) == 1 else axes
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) needs a known axis {named}, got '
                f"inputs of shape {tuple(input_shape)}"
            )
        self._build_weights(shape)
        if self._of_one_rank:
            given = [self.axis] if isinstance(self.axis, int) else self.axis
            self.input_spec = InputSpec(
                ndim=len(input_shape), axes={axis: input_shape[axis] for axis in given}
            )

    # Whether inputs have the rank of those that the weights were made for.
    _of_one_rank: ClassVar[bool] = True

    def _build_weights(self, shape: list[int]) -> None:
        self.gamma = self._own_weight("gamma", shape) if self.scale else None
        self.beta = self._own_weight("beta", shape) if self.center else None

    def _spread(self, parameter: Any, x: td.Tensor) -> Any:
        """A parameter with sizes of 1 where the inputs' other axes are."""
        rank = len(x.shape)
        axes = self._axes(rank)
        if parameter is None or axes == [rank - 1]:
            return parameter
        return td.reshape(parameter, [x.shape[i] if i in axes else 1 for i in range(rank)])


class BatchNormalization(_Normalization):
    """Normalizes each channel over the batch; at inference by moving statistics.

    Args:
        axis: the channel axis.
        momentum: of the moving mean and variance.
        epsilon: added to the variance.
        center, scale: whether to add beta and multiply by gamma.
        beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer, beta_constraint,
        gamma_constraint: of these weights.
        moving_mean_initializer, moving_variance_initializer: of the statistics.
        renorm: correct the statistics of a batch towards running ones ("batch renormalization"), so
            that training computes what inference does.
        renorm_clipping: bounds of the corrections: a dict with "rmax", "rmin" and "dmax".
        renorm_momentum: of the running statistics of training.
        synchronized: take the statistics of the batches of all replicas together.

    Raises:
        ValueError: `renorm_clipping` has other keys, or bounds that contradict one another.
    """

    moving_mean_initializer: Any
    moving_variance_initializer: Any
    # Whether Keras 2 computes it by the kernel for images of TensorFlow that does all at once.
    fused: bool = True
    in_float32 = True
    _config_names: ClassVar[tuple[str, ...]] = (
        "momentum", "renorm", "renorm_clipping", "renorm_momentum", "synchronized",
    )  # fmt: skip
    _weight_kinds: ClassVar[dict[str, str]] = {
        "gamma": "ones", "beta": "zeros", "moving_mean": "zeros", "moving_variance": "ones",
    }  # fmt: skip
    _no_settings: ClassVar[tuple[str, ...]] = (
        "moving_mean_regularizer", "moving_mean_constraint", "moving_variance_regularizer",
        "moving_variance_constraint",
    )  # fmt: skip

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: dict[str, float] | None = None,
        renorm_momentum: float = 0.99,
        synchronized: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis, epsilon, center, scale,
            beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
            beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
            beta_constraint=beta_constraint, gamma_constraint=gamma_constraint,
            moving_mean_initializer=moving_mean_initializer,
            moving_variance_initializer=moving_variance_initializer, **kwargs,
        )  # fmt: skip
        self.momentum, self.synchronized = momentum, synchronized
        self.renorm, self.renorm_momentum = renorm, renorm_momentum
        self.renorm_clipping = _checked_clipping(renorm_clipping or {}) if renorm else None

    def _build_weights(self, shape: list[int]) -> None:
        super()._build_weights(shape)
        each: dict[str, Any] = {
            "trainable": False, "synchronization": "on_read", "aggregation": "mean",
        }  # fmt: skip
        self.moving_mean = self._own_weight("moving_mean", shape, **each)
        self.moving_variance = self._own_weight("moving_variance", shape, **each)
        if self.renorm:
            start = self.moving_variance_initializer

            def stddev(shape: Any, dtype: Any = None) -> td.Tensor:
                return td.sqrt(start(shape, dtype=dtype))

            self.moving_stddev = self.add_weight(shape, stddev, name="moving_stddev", **each)
            mean = self.moving_mean_initializer
            self.renorm_mean = self.add_weight(shape, mean, name="renorm_mean", **each)
            self.renorm_stddev = self.add_weight(shape, stddev, name="renorm_stddev", **each)

    def call(self, inputs: Any, training: Any = False, mask: Any = None) -> td.Tensor:
        if isinstance(training, td.Tensor):
            chosen: td.Tensor = td.cond(
                training,
                lambda: self._by_batch(inputs, mask),
                lambda: self._by_statistics(inputs),
            )
            return chosen
        if training and self.trainable:
            return self._by_batch(inputs, mask)
        return self._by_statistics(inputs)  # frozen layers, too, as in Keras

    def _by_batch(self, inputs: td.Tensor, mask: Any) -> td.Tensor:
        rank = len(inputs.shape)
        axes = [i for i in range(rank) if i not in self._axes(rank)]
        if mask is None:
            mean, variance = td.nn.moments(inputs, axes)
        else:
            mean, variance = _masked_moments(inputs, axes, mask)
        if self.synchronized:
            mean, variance = _of_all_replicas(mean, variance)
        if self.renorm:
            return self._renormalized(inputs, mean, variance)
        kept = variance
        if generation.is_2 and self.fused and mask is None and not self.synchronized:
            kept = self._unbiased(inputs, variance)
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, kept)):
            self._move(moving, value)
        return self._normalized(inputs, mean, variance)

    def _unbiased(self, x: td.Tensor, variance: td.Tensor) -> td.Tensor:
        """The unbiased variance of images and volumes: TensorFlow's fused kernel, which Keras 2
        takes for them, keeps that one."""
        rank = len(x.shape)
        if rank not in (4, 5) or self._axes(rank) not in ([1], [rank - 1]):
            return variance
        if x.dtype is td.float64:  # which the fused kernel does not take
            return variance
        count = td.cast(td.size(x) // td.size(variance), variance.dtype)
        return variance * count / td.maximum(count - 1.0, 1.0)

    def _renormalized(self, x: td.Tensor, mean: td.Tensor, variance: td.Tensor) -> td.Tensor:
        """The inputs normalized by the batch, with corrections, which have no gradients, towards
        the running statistics."""
        bounds = self.renorm_clipping or {}
        deviation = td.sqrt(variance + self.epsilon)
        running = td.maximum(
            self.renorm_stddev.read_value(), td.sqrt(td.constant(self.epsilon, x.dtype))
        )
        ratio = deviation / running
        shift = (mean - self.renorm_mean.read_value()) / running
        if bounds.get("rmin") is not None:
            ratio = td.maximum(ratio, bounds["rmin"])
        if bounds.get("rmax") is not None:
            ratio = td.minimum(ratio, bounds["rmax"])
        if bounds.get("dmax") is not None:
            shift = td.clip_by_value(shift, -bounds["dmax"], bounds["dmax"])
        ratio, shift = td.stop_gradient(ratio), td.stop_gradient(shift)
        for moving, value in ((self.renorm_mean, mean), (self.renorm_stddev, deviation)):
            kept = self.renorm_momentum
            moving.assign(moving.read_value() * kept + value * (1 - kept))
        self._move(self.moving_mean, mean)
        self._move(self.moving_stddev, deviation)
        square = td.square(self.moving_stddev.read_value())
        self.moving_variance.assign(td.maximum(square - self.epsilon, 0.0))
        m, v, r, d = (self._spread(p, x) for p in (mean, variance, ratio, shift))
        corrected = td.nn.batch_normalization(x, m, v, None, None, self.epsilon) * r + d
        gamma, beta = (self._spread(p, x) for p in (self.gamma, self.beta))
        scaled: td.Tensor = corrected if gamma is None else corrected * gamma
        return scaled if beta is None else scaled + beta

    def _move(self, moving: Any, value: td.Tensor) -> None:
        moving.assign(moving.read_value() * self.momentum + value * (1 - self.momentum))

    def _by_statistics(self, inputs: td.Tensor) -> td.Tensor:
        mean, variance = self.moving_mean.read_value(), self.moving_variance.read_value()
        return self._normalized(inputs, mean, variance)

    def _normalized(self, x: td.Tensor, mean: td.Tensor, variance: td.Tensor) -> td.Tensor:
        m, v, b, g = (self._spread(p, x) for p in (mean, variance, self.beta, self.gamma))
        return td.nn.batch_normalization(x, m, v, b, g, self.epsilon)


def _checked_clipping(bounds: dict[str, float]) -> dict[str, float]:
    keys = ("rmax", "rmin", "dmax")
    if set(bounds) - set(keys):
        raise ValueError(
            f"Received invalid keys for `renorm_clipping` argument: {bounds}. Supported values: "
            f"{list(keys)}."
        )
    highest, lowest, farthest = (bounds.get(key) for key in keys)
    if highest is not None and lowest is not None and highest < lowest:
        raise ValueError(
            "rmax should be greater than rmin in the `renorm_clipping` argument. Received: "
            f"rmax={highest}, rmin={lowest}."
        )
    if farthest is not None and farthest < 0:
        raise ValueError(
            "dmax should be non-negative in the `renorm_clipping` argument. Received: "
            f"dmax={farthest}."
        )
    return bounds


def _of_all_replicas(mean: td.Tensor, variance: td.Tensor) -> tuple[td.Tensor, td.Tensor]:
    """The moments of the batches of all replicas together, which are of one size."""
    replica = td.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return mean, variance
    squares = variance + td.square(mean)
    mean, squares = replica.all_reduce(td.distribute.ReduceOp.MEAN, [mean, squares])
    return mean, squares - td.square(mean)


def _masked_moments(
    x: td.Tensor, axes: list[int], mask: td.Tensor
) -> tuple[td.Tensor, td.Tensor]:
    """Mean and variance along the axes of what the mask, which has no last axis, does not leave
    out."""
    if len(mask.shape) != len(x.shape) - 1:
        raise ValueError(
            f"BatchNormalization: a mask has one axis less than the inputs of shape {x.shape}, "
            f"got {mask.shape}"
        )
    kept = td.broadcast_to(td.expand_dims(td.cast(mask, td.bool), -1), td.shape(x))
    count = td.reduce_sum(td.cast(kept, x.dtype), axes, keepdims=True) + config.epsilon()
    zero = td.zeros_like(x)
    mean = td.reduce_sum(td.where(kept, x, zero), axes, keepdims=True) / count
    squares = td.square(td.where(kept, x - mean, zero))
    variance = td.reduce_sum(squares, axes, keepdims=True) / count
    return td.squeeze(mean, axes), td.squeeze(variance, axes)


class LayerNormalization(_Normalization):
    """Normalizes each example over the given axes.

    Args:
        axis: an axis or a list of them.
        epsilon: added to the variance.
        center, scale: whether to add beta and multiply by gamma.
        rms_scaling: divide by the standard deviation only and multiply by gamma, as earlier
            versions of Keras did; `RMSNormalization` divides by the root of the mean square.
    """

    in_float32 = True
    _of_one_rank = False
    _config_names: ClassVar[tuple[str, ...]] = ("rms_scaling",)

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        *,
        rms_scaling: bool = False,
        **kwargs: Any,
    ) -> None:
        if rms_scaling:
            warnings.warn(
                "You passed `rms_scaling=True`, which is deprecated. This argument incorrectly "
                "scales the input by the variance, not the root mean square. To correctly use RMS "
                "Normalization, please use `keras.layers.RMSNormalization` instead.",
                stacklevel=2,
            )
        super().__init__(
            axis, epsilon, center, scale,
            beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
            beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
            beta_constraint=beta_constraint, gamma_constraint=gamma_constraint, **kwargs,
        )  # fmt: skip
        self.rms_scaling = rms_scaling

    def build(self, input_shape: Any) -> None:
        if not isinstance(self.axis, int):
            self.axis = sorted(self.axis)  # as Keras, whose files have sizes in this order
        super().build(input_shape)

    def _build_weights(self, shape: list[int]) -> None:
        center, scale = self.center, self.scale
        if self.rms_scaling:
            self.center, self.scale = False, True
        super()._build_weights(shape)
        self.center, self.scale = center, scale

    def call(self, inputs: Any) -> td.Tensor:
        axes = self._axes(len(inputs.shape))
        mean, variance = td.nn.moments(inputs, axes, keepdims=True)
        if self.rms_scaling:
            mean = td.zeros_like(mean)
        gamma, beta = (self._spread(p, inputs) for p in (self.gamma, self.beta))
        return td.nn.batch_normalization(inputs, mean, variance, beta, gamma, self.epsilon)


class GroupNormalization(_Normalization):
    """Normalizes each example over groups of channels.

    Args:
        groups: the number of groups, which divides that of the channels; -1: one for a channel.
        axis: the channel axis.
        epsilon: added to the variance.
        center, scale: whether to add beta and multiply by gamma.
    """

    in_float32 = True
    _config_names: ClassVar[tuple[str, ...]] = ("groups",)

    def __init__(
        self, groups: int = 32, axis: int = -1, epsilon: float = 1e-3, center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
        beta_regularizer: Any = None, gamma_regularizer: Any = None, beta_constraint: Any = None,
        gamma_constraint: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            axis, epsilon, center, scale,
            beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
            beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
            beta_constraint=beta_constraint, gamma_constraint=gamma_constraint, **kwargs,
        )  # fmt: skip
        if not isinstance(groups, int) or (groups < 1 and groups != -1):
            raise ValueError(f"GroupNormalization: groups is a positive int or -1, got {groups!r}")
        self.groups = groups

    def _build_weights(self, shape: list[int]) -> None:
        (channels,) = shape
        if self.groups == -1:
            self.groups = channels
        if channels % self.groups:
            raise ValueError(
                f'Layer "{self.name}" (GroupNormalization): {self.groups} groups do not divide '
                f"{channels} channels"
            )
        super()._build_weights(shape)

    def call(self, inputs: Any) -> td.Tensor:
        rank = len(inputs.shape)
        (axis,) = self._axes(rank)
        shape = [td.shape(inputs)[i] if d is None else d for i, d in enumerate(inputs.shape)]
        width = inputs.shape[axis] // self.groups
        grouped = td.reshape(inputs, [*shape[:axis], self.groups, width, *shape[axis + 1 :]])
        others = [i for i in range(1, rank + 1) if i != axis]
        mean, variance = td.nn.moments(grouped, others, keepdims=True)
        of_group = [1] * (rank + 1)
        of_group[axis], of_group[axis + 1] = self.groups, width
        gamma, beta = (
            None if p is None else td.reshape(p, of_group) for p in (self.gamma, self.beta)
        )
        normalized = td.nn.batch_normalization(grouped, mean, variance, beta, gamma, self.epsilon)
        return td.reshape(normalized, shape)


class RMSNormalization(_Normalization):
    """Divides each example by the root of its mean square over the given axes, times a learnt
    scale.

    Args:
        axis: an axis or a list of them.
        epsilon: added to the mean square.
    """

    supports_masking = False
    _of_one_rank = False
    _weight_kinds: ClassVar[dict[str, str]] = {}
    _no_settings: ClassVar[tuple[str, ...]] = ("center", "scale")

    def __init__(self, axis: Any = -1, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(axis, epsilon, False, True, **kwargs)

    def _build_weights(self, shape: list[int]) -> None:
        self.scale = self.add_weight(shape, "ones", name="scale")

    def call(self, x: Any) -> td.Tensor:
        axes = self._axes(len(x.shape))
        mean_square = td.reduce_mean(td.square(x), axes, keepdims=True)
        root = td.math.rsqrt(mean_square + self.epsilon)
        return td.multiply(x * root, self._spread(self.scale, x))


class UnitNormalization(Layer):
    """Each example over its Euclidean norm along the given axes.

    Args:
        axis: an axis or a list of them.
    """

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("axis",)

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        given = [axis] if isinstance(axis, int) else axis
        if not isinstance(given, list | tuple) or not all(isinstance(a, int) for a in given):
            raise TypeError(
                "Invalid value for `axis` argument: expected an int or a list/tuple of ints. "
                f"Received: axis={axis}"
            )
        self.axis = axis if isinstance(axis, int) else list(axis)
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        square = td.reduce_sum(td.square(inputs), self.axis, keepdims=True)
        return td.multiply(inputs, td.minimum(td.math.rsqrt(square), 1e12))
