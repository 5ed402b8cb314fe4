"""Batch and layer normalization."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras import initializers
from treadle.keras.layers.base import InputSpec, Layer


class BatchNormalization(Layer):
    """Normalizes each channel over the batch; at inference by moving statistics.

    Args:
        axis: the channel axis.
        momentum: of the moving mean and variance.
        epsilon: added to the variance.
        center, scale: whether to add beta and multiply by gamma.
    """

    in_float32 = True

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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.axis, self.momentum, self.epsilon = axis, momentum, epsilon
        self.center, self.scale = center, scale
        self._initializers = {
            "gamma": initializers.get(gamma_initializer),
            "beta": initializers.get(beta_initializer),
            "moving_mean": initializers.get(moving_mean_initializer),
            "moving_variance": initializers.get(moving_variance_initializer),
        }

    def build(self, input_shape: Any) -> None:
        size = input_shape[self.axis]
        if size is None:
            raise ValueError(
                f'Layer "{self.name}" (BatchNormalization) needs a known axis {self.axis}, got '
                f"inputs of shape {tuple(input_shape)}"
            )
        self.gamma = self._weight("gamma", size) if self.scale else None
        self.beta = self._weight("beta", size) if self.center else None
        self.moving_mean = self._weight("moving_mean", size, trainable=False)
        self.moving_variance = self._weight("moving_variance", size, trainable=False)
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: size})
        self.built = True

    def _weight(self, name: str, size: int, trainable: bool = True) -> td.Variable:
        return self.add_weight((size,), self._initializers[name], name=name, trainable=trainable)

    def call(self, inputs: Any, training: Any = False) -> td.Tensor:
        if isinstance(training, td.Tensor):
            chosen: td.Tensor = td.cond(
                training, lambda: self._by_batch(inputs), lambda: self._by_statistics(inputs)
            )
            return chosen
        # Frozen layers run in inference mode, as in Keras.
        return (
            self._by_batch(inputs) if training and self.trainable else self._by_statistics(inputs)
        )

    def _by_batch(self, inputs: td.Tensor) -> td.Tensor:
        rank = len(inputs.shape)
        axes = [i for i in range(rank) if i != self.axis % rank]
        mean, variance = td.nn.moments(inputs, axes)
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(moving.value() * self.momentum + value * (1 - self.momentum))
        return self._normalized(inputs, mean, variance)

    def _by_statistics(self, inputs: td.Tensor) -> td.Tensor:
        return self._normalized(inputs, self.moving_mean.value(), self.moving_variance.value())

    def _normalized(self, x: td.Tensor, mean: td.Tensor, variance: td.Tensor) -> td.Tensor:
        m, v, b, g = (self._along_axis(x, p) for p in (mean, variance, self.beta, self.gamma))
        return td.nn.batch_normalization(x, m, v, b, g, self.epsilon)

    def _along_axis(self, x: td.Tensor, parameter: Any) -> Any:
        rank = len(x.shape)
        trailing = rank - 1 - self.axis % rank
        if parameter is None or not trailing:
            return parameter
        return td.reshape(parameter, [-1] + [1] * trailing)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "axis": self.axis,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "center": self.center,
            "scale": self.scale,
        }


class LayerNormalization(Layer):
    """Normalizes each example over the given axes."""

    in_float32 = True

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else list(axis)
        self.epsilon, self.center, self.scale = epsilon, center, scale
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)

    def _axes(self, rank: int) -> list[int]:
        axes = [self.axis] if isinstance(self.axis, int) else self.axis
        return sorted(a % rank for a in axes)

    def build(self, input_shape: Any) -> None:
        axes = self._axes(len(input_shape))
        shape = [input_shape[a] for a in axes]
        if None in shape:
            raise ValueError(
                f'Layer "{self.name}" (LayerNormalization) needs known axes {axes}, got inputs of '
                f"shape {tuple(input_shape)}"
            )
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(shape, self.gamma_initializer, name="gamma")
        if self.center:
            self.beta = self.add_weight(shape, self.beta_initializer, name="beta")
        self.input_spec = InputSpec(ndim=len(input_shape), axes=dict(zip(axes, shape, strict=True)))
        self.built = True

    def call(self, inputs: Any) -> td.Tensor:
        rank = len(inputs.shape)
        axes = self._axes(rank)
        mean, variance = td.nn.moments(inputs, axes, keepdims=True)
        shape = [inputs.shape[i] if i in axes else 1 for i in range(rank)]
        gamma, beta = (self._spread(p, shape, axes, rank) for p in (self.gamma, self.beta))
        return td.nn.batch_normalization(inputs, mean, variance, beta, gamma, self.epsilon)

    @staticmethod
    def _spread(parameter: Any, shape: list[Any], axes: list[int], rank: int) -> Any:
        if parameter is None or axes == list(range(rank - len(axes), rank)):
            return parameter
        return td.reshape(parameter, shape)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "axis": self.axis, "epsilon": self.epsilon, "center": self.center, "scale": self.scale,
        }  # fmt: skip
