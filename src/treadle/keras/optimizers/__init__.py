"""Optimizers, by Keras's names."""

from collections.abc import Callable
from typing import Any

from treadle.keras.optimizers import schedules
from treadle.keras.optimizers.base import Optimizer
from treadle.keras.optimizers.rules import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Nadam,
    RMSprop,
)
from treadle.names import missing_in

_BY_NAME: dict[str, Callable[[], Optimizer]] = {
    "sgd": SGD, "adam": Adam, "adamw": AdamW, "rmsprop": RMSprop, "adagrad": Adagrad,
    "adadelta": Adadelta, "adamax": Adamax, "nadam": Nadam,
}  # fmt: skip


def get(identifier: Any) -> Optimizer:
    """An optimizer from its name, its class's name or an instance."""
    if isinstance(identifier, Optimizer):
        return identifier
    found = _BY_NAME.get(str(identifier).lower())
    if found is None:
        raise ValueError(f"Unknown optimizer {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")
    return found()


__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Nadam", "Optimizer", "RMSprop",
    "get", "schedules",
]  # fmt: skip

__getattr__ = missing_in(__name__)
