"""``keras.optimizers.legacy``: the optimizers under the names that Keras 2 kept for older ones."""

from treadle.keras.optimizers.base import Optimizer
from treadle.keras.optimizers.rules import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    Ftrl,
    Nadam,
    RMSprop,
)
from treadle.names import missing_in

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "Optimizer", "RMSprop",
]  # fmt: skip

__getattr__ = missing_in(__name__)
