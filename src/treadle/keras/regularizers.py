"""Penalties on weights, added to the loss."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras import config, serialization
from treadle.names import missing_in


class Regularizer:
    """Base: ``regularizer(weight)`` gives a penalty."""

    def __call__(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal regularizer."""
        raise NotImplementedError(f"{type(self).__name__} must define get_config()")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """A regularizer from what `get_config` gave."""
        return cls(**config)


class L1L2(Regularizer):
    """``l1 * sum(abs(x)) + l2 * sum(x ** 2)``."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> td.Tensor:
        x = td.convert_to_tensor(x)
        penalty = td.zeros([], x.dtype)
        if self.l1:
            penalty = penalty + self.l1 * td.reduce_sum(td.abs(x))
        if self.l2:
            penalty = penalty + self.l2 * td.reduce_sum(td.square(x))
        return penalty

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1, "l2": self.l2}


class L1(L1L2):
    """``l1 * sum(abs(x))``."""

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(l1=l1)

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1}


class L2(L1L2):
    """``l2 * sum(x ** 2)``."""

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(l2=l2)

    def get_config(self) -> dict[str, Any]:
        return {"l2": self.l2}


class OrthogonalRegularizer(Regularizer):
    """The mean of the absolute cosines between the rows of a matrix, times a factor.

    Args:
        factor: the factor.
        mode: "rows" or "columns".

    Raises:
        ValueError: another mode.
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        if mode not in ("rows", "columns"):
            raise ValueError(
                'Invalid value for argument `mode`. Expected one of {"rows", "columns"}. '
                f"Received: mode={mode}"
            )
        self.factor, self.mode = float(factor), mode

    def __call__(self, x: Any) -> td.Tensor:
        x = td.convert_to_tensor(x)
        if len(x.shape) != 2:
            raise ValueError(
                "Inputs to OrthogonalRegularizer must have rank 2. Received: inputs.shape="
                f"{x.shape}"
            )  # fmt: skip
        rows = x if self.mode == "rows" else td.transpose(x)
        squares = td.reduce_sum(td.square(rows), 1, keepdims=True)
        rows = rows * td.minimum(td.math.rsqrt(squares), 1.0 / config.epsilon())
        count = rows.shape[0] or 0
        others = 1.0 - td.eye(count, dtype=x.dtype)
        cosines = td.abs(td.matmul(rows, rows, transpose_b=True) * others)
        total: td.Tensor = self.factor * 0.5 * td.reduce_sum(cosines)
        return total / (count * (count - 1.0) / 2.0)

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "mode": self.mode}


l1, l2, orthogonal_regularizer = L1, L2, OrthogonalRegularizer


def l1_l2(l1: float = 0.0, l2: float = 0.0) -> L1L2:
    """Both penalties."""
    return L1L2(l1, l2)


_BY_NAME: dict[str, Any] = {
    "l1": L1, "l2": L2, "L1": L1, "L2": L2, "l1_l2": l1_l2, "L1L2": L1L2, "l1l2": L1L2,
    "orthogonal_regularizer": OrthogonalRegularizer,
    "OrthogonalRegularizer": OrthogonalRegularizer,
}  # fmt: skip


def get(identifier: Any) -> Any:
    """A regularizer from its name or a function; None stays None."""
    identifier = serialization.custom(identifier)
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, dict):
        return serialization.deserialize_keras_object(identifier)
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    raise ValueError(f"Unknown regularizer {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


def serialize(regularizer: Any) -> Any:
    """A regularizer as data."""
    return serialization.serialize_keras_object(regularizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The regularizer that `serialize` described."""
    return serialization.deserialize_keras_object(config, custom_objects)


__getattr__ = missing_in(__name__)
