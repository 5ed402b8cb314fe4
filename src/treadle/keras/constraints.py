"""Constraints: functions that give an updated weight its allowed value."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras import config, serialization
from treadle.names import missing_in


class Constraint:
    """Base: ``constraint(weight)`` gives the value to keep; here the same one."""

    def __call__(self, w: Any) -> td.Tensor:
        return td.convert_to_tensor(w)

    def get_config(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Constraint:
        """A constraint from what `get_config` gave."""
        return cls(**config)


def _norms(w: td.Tensor, axis: Any) -> td.Tensor:
    return td.sqrt(td.reduce_sum(td.square(w), axis, keepdims=True))


class MaxNorm(Constraint):
    """Norms along `axis` of at most `max_value`."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> td.Tensor:
        w = td.convert_to_tensor(w)
        norms = _norms(w, self.axis)
        desired = td.clip_by_value(norms, 0.0, self.max_value)
        return td.multiply(w, desired / (config.epsilon() + norms))


class NonNeg(Constraint):
    """Nothing below 0."""

    def __call__(self, w: Any) -> td.Tensor:
        return td.nn.relu(w)


class UnitNorm(Constraint):
    """Norms of 1 along `axis`."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> td.Tensor:
        w = td.convert_to_tensor(w)
        return td.divide(w, config.epsilon() + _norms(w, self.axis))


class MinMaxNorm(Constraint):
    """Norms along `axis` drawn into an interval, by `rate` of the way."""

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> td.Tensor:
        w = td.convert_to_tensor(w)
        norms = _norms(w, self.axis)
        inside = td.clip_by_value(norms, self.min_value, self.max_value)
        desired = self.rate * inside + (1.0 - self.rate) * norms
        return td.multiply(w, desired / (config.epsilon() + norms))


max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm
_BY_NAME: dict[str, Any] = {
    "MaxNorm": MaxNorm, "NonNeg": NonNeg, "UnitNorm": UnitNorm, "MinMaxNorm": MinMaxNorm,
    "max_norm": MaxNorm, "non_neg": NonNeg, "unit_norm": UnitNorm, "min_max_norm": MinMaxNorm,
}  # fmt: skip


def get(identifier: Any) -> Any:
    """A constraint from its name, class or a function; None stays None."""
    identifier = serialization.custom(identifier)
    if isinstance(identifier, type):
        return identifier()
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, dict):
        return serialization.deserialize_keras_object(identifier)
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    raise ValueError(f"Unknown constraint {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


def serialize(constraint: Any) -> Any:
    """A constraint as data."""
    return serialization.serialize_keras_object(constraint)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The constraint that `serialize` described."""
    return serialization.deserialize_keras_object(config, custom_objects)


__getattr__ = missing_in(__name__)
