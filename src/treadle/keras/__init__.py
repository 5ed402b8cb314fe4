"""``td.keras``: layers, models, optimizers, losses and metrics by Keras's names."""

from treadle.keras import (
    activations,
    backend,
    callbacks,
    config,
    constraints,
    dtype_policies,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    ops,
    optimizers,
    random,
    regularizers,
    saving,
    tree,
    utils,
)
from treadle.keras.dtype_policies import DTypePolicy
from treadle.keras.layers import Input
from treadle.keras.models import Model, Sequential
from treadle.names import missing_name

__all__ = [
    "DTypePolicy", "Input", "Model", "Sequential", "activations", "backend", "callbacks", "config",
    "constraints", "dtype_policies", "initializers", "layers", "losses", "metrics",
    "mixed_precision", "models", "ops", "optimizers", "random", "regularizers", "saving", "tree",
    "utils",
]  # fmt: skip


def __getattr__(name: str) -> object:
    there = f"It is not supported yet. What there is: {', '.join(__all__)}"
    raise missing_name(__name__, name, there)
