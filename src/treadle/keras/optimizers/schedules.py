"""Learning rates as functions of the iteration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import treadle as td
from treadle.keras.serialization import deserialize_keras_object, serialize_keras_object


class LearningRateSchedule:
    """Base: ``schedule(step)`` gives the rate, a float32 scalar."""

    def __call__(self, step: Any) -> td.Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define __call__")

    def _called(self, name: str | None) -> str:
        """The given name, or that of the class."""
        return name or type(self).__name__.replace("ConstantDecay", "Constant")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal schedule."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        """A schedule from what `get_config` gave."""
        return cls(**config)


class _Decay(LearningRateSchedule):
    """A rate that falls with each `decay_steps`; at whole ones only with `staircase`."""

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, decay_rate: float,
        staircase: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase = decay_rate, staircase
        self.name = self._called(name)

    def passed(self, step: Any) -> td.Tensor:
        """How many times `decay_steps` have passed."""
        times = td.cast(step, td.float32) / self.decay_steps
        return td.floor(times) if self.staircase else times


class ExponentialDecay(_Decay):
    """``initial * decay_rate ** (step / decay_steps)``; whole powers only with `staircase`."""

    def __call__(self, step: Any) -> td.Tensor:
        rate = td.constant(self.decay_rate, td.float32)
        return self.initial_learning_rate * td.pow(rate, self.passed(step))


class InverseTimeDecay(_Decay):
    """``rate / (1 + decay_rate * step / decay_steps)``; whole divisions only with `staircase`."""

    def __call__(self, step: Any) -> td.Tensor:
        return self.initial_learning_rate / (1.0 + self.decay_rate * self.passed(step))


class PolynomialDecay(LearningRateSchedule):
    """From one rate to another along a power of the steps that are left.

    Args:
        cycle: start again from a part of the first rate after each `decay_steps`.
    """

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, end_learning_rate: float = 0.0001,
        power: float = 1.0, cycle: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power, self.cycle = end_learning_rate, power, cycle
        self.name = self._called(name)

    def __call__(self, step: Any) -> td.Tensor:
        now, steps = td.cast(step, td.float32), td.constant(float(self.decay_steps))
        if self.cycle:
            steps = steps * td.maximum(td.math.ceil(now / steps), 1.0)
        else:
            now = td.minimum(now, steps)
        span = self.initial_learning_rate - self.end_learning_rate
        return span * td.pow(1.0 - now / steps, self.power) + self.end_learning_rate


class PiecewiseConstantDecay(LearningRateSchedule):
    """``values[i]`` for steps above ``boundaries[i - 1]`` up to ``boundaries[i]``."""

    def __init__(
        self, boundaries: Sequence[float], values: Sequence[float], name: str | None = None
    ) -> None:
        if len(values) != len(boundaries) + 1:
            raise ValueError("PiecewiseConstantDecay needs one more value than boundaries")
        self.boundaries, self.values = list(boundaries), list(values)
        self.name = self._called(name)

    def __call__(self, step: Any) -> td.Tensor:
        position = td.cast(step, td.float32)
        rate = td.constant(self.values[-1], td.float32)
        for boundary, value in reversed(list(zip(self.boundaries, self.values, strict=False))):
            rate = td.where(position <= boundary, td.constant(value, td.float32), rate)
        return rate


class CosineDecay(LearningRateSchedule):
    """Half a cosine wave from the initial rate down to ``alpha`` times it.

    Args:
        warmup_target: with it the rate first rises in a line to this one, within `warmup_steps`,
            and the wave begins there.
    """

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, alpha: float = 0.0,
        name: str | None = None, warmup_target: float | None = None, warmup_steps: int = 0,
    ) -> None:  # fmt: skip
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.alpha, self.name = alpha, self._called(name)
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps

    def __call__(self, step: Any) -> td.Tensor:
        now = td.cast(step, td.float32)
        if self.warmup_target is None:
            return self._wave(now, self.initial_learning_rate)
        rise = self.warmup_target - self.initial_learning_rate
        risen = self.initial_learning_rate + rise * (now / max(self.warmup_steps, 1))
        wave = self._wave(now - self.warmup_steps, self.warmup_target)
        return td.where(now < self.warmup_steps, risen, wave)

    def _wave(self, step: td.Tensor, top: float) -> td.Tensor:
        done = td.minimum(step / self.decay_steps, 1.0)
        wave = 0.5 * (1.0 + td.cos(math.pi * done))
        return top * ((1.0 - self.alpha) * wave + self.alpha)


class CosineDecayRestarts(LearningRateSchedule):
    """Half cosine waves from a rate down to ``alpha`` times it, one after the other.

    Args:
        initial_learning_rate: the top of the first wave.
        first_decay_steps: the length of the first wave.
        t_mul: each wave is so many times as long as the one before.
        m_mul: its top is so many times as high.
        alpha: the bottom, as a part of the first top.
    """

    def __init__(
        self, initial_learning_rate: float, first_decay_steps: int, t_mul: float = 2.0,
        m_mul: float = 1.0, alpha: float = 0.0, name: str | None = "SGDRDecay",
    ) -> None:  # fmt: skip
        if first_decay_steps <= 0:
            raise ValueError(
                "CosineDecayRestarts: first_decay_steps must be above 0, got "
                f"{first_decay_steps}"
            )  # fmt: skip
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul, self.m_mul, self.alpha, self.name = t_mul, m_mul, alpha, name

    def __call__(self, step: Any) -> td.Tensor:
        done = td.cast(step, td.float32) / self.first_decay_steps
        if self.t_mul == 1.0:
            waves = td.floor(done)
            done = done - waves
        else:
            grown = td.math.log(1.0 - done * (1.0 - self.t_mul)) / math.log(self.t_mul)
            waves = td.floor(grown)
            length = td.pow(td.constant(self.t_mul, td.float32), waves)
            done = (done - (1.0 - length) / (1.0 - self.t_mul)) / length
        top = td.pow(td.constant(self.m_mul, td.float32), waves)
        wave = 0.5 * top * (1.0 + td.cos(math.pi * done))
        return self.initial_learning_rate * ((1.0 - self.alpha) * wave + self.alpha)


def serialize(learning_rate_schedule: LearningRateSchedule) -> Any:
    """A schedule as data."""
    return serialize_keras_object(learning_rate_schedule)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The schedule that `serialize` described."""
    return deserialize_keras_object(config, custom_objects)
