"""Penalties on weights, added to the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras import serialization
from treadle.names import missing_in

Regularizer = Callable[[td.Tensor], td.Tensor]


class L1L2:
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


l1, l2 = L1, L2


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """Both penalties."""
    return L1L2(l1, l2)


_BY_NAME: dict[str, Any] = {"l1": L1, "l2": L2, "L1": L1, "L2": L2, "l1_l2": l1_l2, "L1L2": L1L2}


def get(identifier: Any) -> Any:
    """A regularizer from its name or a function; None stays None."""
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, dict):
        return serialization.deserialize_keras_object(identifier)
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    raise ValueError(f"Unknown regularizer {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


__getattr__ = missing_in(__name__)
