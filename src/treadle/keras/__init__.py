"""``td.keras``: layers, models, optimizers, losses and metrics by Keras's names."""

from treadle.keras import (
    activations,
    callbacks,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
    utils,
)
from treadle.keras.layers import Input
from treadle.keras.models import Model, Sequential

__all__ = [
    "Input", "Model", "Sequential", "activations", "callbacks", "initializers", "layers", "losses",
    "metrics", "models", "optimizers", "regularizers", "utils",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"treadle.keras has no {name!r}: it is not supported yet. "
        f"What there is: {', '.join(__all__)}"
    )
