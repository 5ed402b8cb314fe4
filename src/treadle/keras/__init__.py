"""``td.keras``: layers, models, optimizers, losses and metrics by Keras's names."""

from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.keras import (
    activations,
    backend,
    callbacks,
    config,
    constraints,
    dtype_policies,
    export,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    ops,
    optimizers,
    quantizers,
    random,
    regularizers,
    saving,
    tree,
    utils,
)
from treadle.keras.dtype_policies import DTypePolicy, FloatDTypePolicy
from treadle.keras.initializers import Initializer
from treadle.keras.layers import Input, InputSpec, Layer
from treadle.keras.layers.functions import Operation
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.losses import Loss
from treadle.keras.metrics import Metric
from treadle.keras.models import Model, Sequential
from treadle.keras.models.network import Function
from treadle.keras.optimizers import Optimizer
from treadle.keras.quantizers import Quantizer
from treadle.keras.regularizers import Regularizer
from treadle.keras.rematerialization import RematScope
from treadle.keras.stateless import StatelessScope
from treadle.keras.variables import Variable, name_scope
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.keras import applications as applications
    from treadle.keras import datasets as datasets
    from treadle.keras import distillation as distillation
    from treadle.keras import distribution as distribution
    from treadle.keras import legacy as legacy
    from treadle.keras import preprocessing as preprocessing
    from treadle.keras import visualization as visualization
    from treadle.keras import wrappers as wrappers

__version__ = "3.15.1"  # of Keras, whose names and files these are


def version() -> str:
    """The version of Keras whose names and files these are."""
    return __version__


def device(device_name: str) -> Any:
    """``with keras.device("cpu:0"):`` operations and variables are placed there."""
    return td.device(device_name.replace("gpu:", "GPU:").replace("cpu:", "CPU:"))


def remat(f: Any) -> Any:
    """A function whose results are computed again for its gradient, rather than kept."""
    return td.recompute_grad(f)


__all__ = [
    "DTypePolicy", "FloatDTypePolicy", "Function", "Initializer", "Input", "InputSpec",
    "KerasTensor", "Layer", "Loss", "Metric", "Model", "Operation", "Optimizer", "Quantizer",
    "Regularizer", "RematScope",
    "Sequential", "StatelessScope", "Variable", "activations", "applications", "backend",
    "callbacks", "config", "constraints", "datasets", "device", "distillation", "distribution",
    "dtype_policies", "export",
    "initializers", "layers", "legacy",
    "losses", "metrics", "mixed_precision", "models", "name_scope", "ops", "optimizers",
    "preprocessing", "quantizers", "random", "regularizers", "remat", "saving", "tree", "utils",
    "version", "visualization", "wrappers",
]  # fmt: skip

__getattr__ = provided(
    __name__,
    {
        "treadle.keras":
        "applications datasets distillation distribution legacy preprocessing visualization "
        "wrappers"
    },
)
