"""Optimizers, by Keras's names."""

from collections.abc import Mapping
from typing import Any

from treadle.keras.optimizers import legacy, schedules
from treadle.keras.optimizers.base import Optimizer
from treadle.keras.optimizers.loss_scale import LossScaleOptimizer
from treadle.keras.optimizers.multi import MultiOptimizer, OptimizerMap
from treadle.keras.optimizers.muon import Muon
from treadle.keras.optimizers.rules import (
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Ftrl,
    Lamb,
    Lion,
    Nadam,
    RMSprop,
)
from treadle.keras.optimizers.schedule_free import ScheduleFreeAdamW
from treadle.keras.serialization import custom, deserialize_keras_object, serialize_keras_object
from treadle.names import missing_in

_CLASSES: tuple[type[Optimizer], ...] = (
    SGD, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion, Muon, Nadam,
    RMSprop, ScheduleFreeAdamW,
)  # fmt: skip
_BY_NAME = {c.__name__.lower(): c for c in _CLASSES}


def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer as data, without its state."""
    found: dict[str, Any] = serialize_keras_object(optimizer)
    return found


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The optimizer that `serialize` described; Keras 2 had class names in any case."""
    name = _BY_NAME.get(str(config["class_name"]).lower())
    if "module" not in config and name is not None:
        config = {**config, "class_name": name.__name__}
    return deserialize_keras_object(config, custom_objects)


def get(identifier: Any) -> Any:
    """An optimizer from its name, its class, a configuration, or itself; None stays None."""
    if identifier is None:
        return None
    identifier = custom(identifier)
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, Mapping):
        return deserialize(identifier)
    if isinstance(identifier, type) and issubclass(identifier, Optimizer):
        return identifier()  # type: ignore[call-arg]
    found = _BY_NAME.get(str(identifier).lower())
    if found is None:
        raise ValueError(f"Unknown optimizer {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")
    return found()  # type: ignore[call-arg]


__all__ = [
    "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion",
    "LossScaleOptimizer", "MultiOptimizer", "Muon", "Nadam", "Optimizer", "OptimizerMap",
    "RMSprop", "ScheduleFreeAdamW", "deserialize", "get", "legacy", "schedules", "serialize",
]  # fmt: skip

__getattr__ = missing_in(__name__)
