"""Layers that disturb their inputs while training: dropout and noise."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle as td
from treadle.keras import random
from treadle.keras.layers.base import Layer
from treadle.keras.layers.input_spec import InputSpec
from treadle.keras.layers.spatial import format_name


class _Disturbing(Layer):
    """A layer that gives its inputs back unless it trains. `training` may be a tensor."""

    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = ("seed",)

    def __init__(self, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        self._build_at_init()

    def _draw_from_seed(self) -> None:
        """Make the generator of the seeds of calls, which files keep."""
        self.seed_generator = random.SeedGenerator(self.seed)

    def call(self, inputs: Any, training: Any = False) -> td.Tensor:
        if isinstance(training, td.Tensor):
            chosen: td.Tensor = td.cond(
                training, lambda: self._disturbed(inputs), lambda: td.identity(inputs)
            )
            return chosen
        return self._disturbed(inputs) if training else inputs

    def _disturbed(self, inputs: td.Tensor) -> td.Tensor:
        raise NotImplementedError

    def _check_fraction(self, value: float, name: str) -> float:
        if not 0 <= value <= 1:
            raise ValueError(f"{type(self).__name__}: {name} must be in [0, 1], got {value}")
        return value


def _checked_noise_shape(shape: Any) -> tuple[int | None, ...]:
    wrong = "Invalid value received for argument `noise_shape`. Expected "
    if not isinstance(shape, list | tuple):
        raise ValueError(f"{wrong}a tuple or list of integers. Received: {shape!r}")
    sizes = [d for d in shape if d is not None]
    if not all(isinstance(d, int) for d in sizes):
        raise ValueError(f"{wrong}all elements to be integers or None. Received: {shape!r}")
    if any(d < 1 for d in sizes):
        raise ValueError(
            f"{wrong}all dimensions to be positive integers or None. Received: {shape!r}"
        )
    return tuple(shape)


class Dropout(_Disturbing):
    """While training, zeroes a fraction `rate` of the inputs and scales the rest up.

    Args:
        noise_shape: sizes of 1 in it are axes along which one choice serves all; None stands for
            the inputs' size.
        seed: makes the choices repeat.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("rate", "noise_shape")

    def __init__(
        self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        self.rate = self._check_fraction(rate, "rate")
        self.noise_shape = None if noise_shape is None else _checked_noise_shape(noise_shape)
        if rate > 0:
            self._draw_from_seed()

    def _disturbed(self, inputs: td.Tensor) -> td.Tensor:
        if self.rate == 0:
            return td.identity(inputs)
        return random.dropout(inputs, self.rate, self.noise_shape, self.seed_generator)


class _SpatialDropout(Dropout):
    """While training, zeroes a fraction `rate` of the channels and scales the others up.

    Args:
        data_format: "channels_last" or "channels_first".
    """

    rank: ClassVar[int]
    _config_names: ClassVar[tuple[str, ...]] = ("data_format",)
    _no_settings: ClassVar[tuple[str, ...]] = ("noise_shape", "trainable")

    def __init__(
        self, rate: float, data_format: str | None = None, seed: int | None = None,
        name: str | None = None, dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(rate, seed=seed, name=name, dtype=dtype, **kwargs)
        self.data_format = format_name(data_format)
        space = (1,) * self.rank
        last = self.data_format == "channels_last"
        self.noise_shape = (None, *space, None) if last else (None, None, *space)
        self.input_spec = InputSpec(ndim=self.rank + 2)


class SpatialDropout1D(_SpatialDropout):
    """While training, zeroes a fraction `rate` of the features at all steps and scales the others
    up."""

    rank = 1
    _no_settings: ClassVar[tuple[str, ...]] = ("noise_shape", "trainable", "data_format")

    def __init__(
        self, rate: float, seed: int | None = None, name: str | None = None, dtype: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(rate, "channels_last", seed, name, dtype, **kwargs)


class SpatialDropout2D(_SpatialDropout):
    __doc__ = _SpatialDropout.__doc__
    rank = 2


class SpatialDropout3D(_SpatialDropout):
    __doc__ = _SpatialDropout.__doc__
    rank = 3


class GaussianNoise(_Disturbing):
    """While training, adds normally distributed noise."""

    _config_names: ClassVar[tuple[str, ...]] = ("stddev",)

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        self.stddev = self._check_fraction(stddev, "stddev")
        if stddev > 0:
            self._draw_from_seed()

    def _disturbed(self, inputs: td.Tensor) -> td.Tensor:
        if self.stddev == 0:
            return td.identity(inputs)
        shape = td.shape(inputs)
        noise = random.normal(shape, 0.0, self.stddev, inputs.dtype, self.seed_generator)
        return td.add(inputs, noise)


class GaussianDropout(_Disturbing):
    """While training, multiplies by noise of mean 1 and standard deviation
    ``sqrt(rate / (1 - rate))``."""

    _config_names: ClassVar[tuple[str, ...]] = ("rate",)

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        self.rate = self._check_fraction(rate, "rate")
        if rate > 0:
            self._draw_from_seed()

    def _disturbed(self, inputs: td.Tensor) -> td.Tensor:
        if self.rate == 0:
            return td.identity(inputs)
        if self.rate == 1:
            raise ValueError(f'Layer "{self.name}" (GaussianDropout): a rate of 1 has no noise')
        stddev = math.sqrt(self.rate / (1.0 - self.rate))
        noise = random.normal(td.shape(inputs), 1.0, stddev, inputs.dtype, self.seed_generator)
        return td.multiply(inputs, noise)


_SELU_LOW = -1.6732632423543772 * 1.0507009873554805  # where selu ends on the left


class AlphaDropout(Dropout):
    """While training, sets a fraction `rate` of the inputs to the lowest value of `selu`, and keeps
    mean and variance as they were. Arguments as for Dropout."""

    def _choices(self, inputs: td.Tensor) -> Any:
        """The shape of the random choices."""
        sizes = td.shape(inputs)
        if self.noise_shape is None:
            return sizes
        return td.stack([sizes[i] if d is None else d for i, d in enumerate(self.noise_shape)])

    def _disturbed(self, inputs: td.Tensor) -> td.Tensor:
        if self.rate == 0:
            return td.identity(inputs)
        drawn = random.uniform(self._choices(inputs), seed=self.seed_generator)
        kept = td.cast(drawn >= self.rate, inputs.dtype)
        if self.rate == 1:
            return td.zeros_like(inputs)
        scale = ((1 - self.rate) * (1 + self.rate * _SELU_LOW**2)) ** -0.5
        shift = -scale * _SELU_LOW * self.rate
        return td.add(scale * (inputs * kept + _SELU_LOW * (1.0 - kept)), shift)
