"""Names of Keras 2 that Keras 3 has no longer: modules of experiments that ended, and functions of
`keras.backend`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import treadle as td
from treadle.compat.replacement.locally_connected import (
    LocallyConnected1D,
    LocallyConnected2D,
    local_conv,
)
from treadle.compat.replacement.premade_models import LinearModel, WideDeepModel
from treadle.compat.replacement.sessions_of_keras import have_sessions
from treadle.keras import learning_phase
from treadle.keras.layers.arguments import training_of_the_call

# What was in ``keras.layers.experimental.preprocessing``, and is in ``keras.layers`` now.
_PREPROCESSING = """
    CategoryEncoding CenterCrop Discretization HashedCrossing Hashing IntegerLookup Normalization
    RandomContrast RandomCrop RandomFlip RandomHeight RandomRotation RandomTranslation RandomWidth
    RandomZoom Rescaling Resizing StringLookup TextVectorization
"""


class SyncBatchNormalization(td.keras.layers.BatchNormalization):
    """A `BatchNormalization` over the examples of all replicas."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(synchronized=True, **kwargs)


class AbstractRNNCell(td.keras.layers.Layer):
    """The base of cells of `RNN`: a subclass has `state_size`, `output_size` and
    ``call(inputs, states)``."""

    def call(self, inputs: Any, states: Any) -> Any:
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        raise NotImplementedError

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """States of zeros."""
        if inputs is not None:
            batch_size, dtype = td.shape(inputs)[0], inputs.dtype
        return td.nest.map_structure(
            lambda size: td.zeros([batch_size, *td.TensorShape(size)], dtype), self.state_size
        )


# -- keras.backend ---------------------------------------------------------------------------------


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x, or its result, where layers train; else `alt`, or its result."""
    training = training_of_the_call() if training is None else training

    def value(of: Any) -> Any:
        return of() if callable(of) else of

    if td.is_tensor(training) and td.get_static_value(training) is None:
        return td.cond(td.cast(training, td.bool), lambda: value(x), lambda: value(alt))
    return value(x) if training else value(alt)


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x, or its result, where layers do not train; else `alt`, or its result."""
    return in_train_phase(alt, x, training)


@contextlib.contextmanager
def learning_phase_scope(value: int) -> Iterator[None]:
    """Layers of the block that nobody tells train (1) or do not (0)."""
    before = learning_phase.trains()
    learning_phase.set_learning_phase(value)
    try:
        yield
    finally:
        learning_phase.set_learning_phase(None if before is None else int(before))


def local_conv1d(
    inputs: Any, kernel: Any, kernel_size: Any, strides: Any, data_format: str | None = None
) -> td.Tensor:
    """A convolution along one axis with a table of filters for each place."""
    return local_conv(inputs, kernel, kernel_size, strides, (kernel.shape[0],), data_format)


def print_tensor(x: Any, message: str = "", summarize: int = 3) -> Any:
    """x, which is printed behind the message."""
    td.print(message, x, summarize=summarize, output_stream=sys.stdout)
    return td.identity(x)


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: Any = None) -> td.Tensor:
    """Ones with the probability p, and zeros."""
    dtype = dtype or td.keras.config.floatx()
    return td.cast(td.random.uniform(shape, dtype=dtype, seed=seed) <= p, dtype)


def normalize_batch_in_training(
    x: Any, gamma: Any, beta: Any, reduction_axes: Any, epsilon: float = 1e-3
) -> tuple[Any, Any, Any]:
    """x less its mean over the axes, over its deviation, times gamma, plus beta; and both."""
    mean, variance = td.nn.moments(x, list(reduction_axes), keepdims=True)
    shape = list(mean.shape)

    def fitted(weight: Any) -> Any:
        return None if weight is None else td.reshape(weight, shape)

    found = td.nn.batch_normalization(x, mean, variance, fitted(beta), fitted(gamma), epsilon)
    axes = list(reduction_axes)
    return found, td.squeeze(mean, axes), td.squeeze(variance, axes)


def model_from_config(config: Any, custom_objects: Any = None) -> Any:
    """The model of a configuration with the name of its class."""
    return td.keras.saving.deserialize_keras_object(config, custom_objects)


def get_graph() -> Any:
    """The graph that operations are written into: of TensorFlow 1, where these are meant."""
    return td.compat.v1.get_default_graph()


def _module(name: str, /, **names: Any) -> ModuleType:
    """A module below ``treadle.keras``, which imports find, too."""
    found = ModuleType(f"treadle.keras.{name}", "Names of Keras 2.")
    found.__path__ = []
    vars(found).update(names)
    sys.modules[found.__name__] = found
    return found


def have_names_of_keras_2() -> None:
    """Give the modules of Keras these names."""
    of: Any = td.keras
    layers = {name: getattr(of.layers, name) for name in _PREPROCESSING.split()}
    preprocessing = _module("layers.experimental.preprocessing", **layers)
    vars(of.layers).update(
        LocallyConnected1D=LocallyConnected1D, LocallyConnected2D=LocallyConnected2D,
        AbstractRNNCell=AbstractRNNCell,
        experimental=_module(
            "layers.experimental", preprocessing=preprocessing, EinsumDense=of.layers.EinsumDense,
            SyncBatchNormalization=SyncBatchNormalization,
        ),
    )  # fmt: skip
    vars(of.callbacks)["experimental"] = _module(
        "callbacks.experimental", BackupAndRestore=of.callbacks.BackupAndRestore
    )
    schedules = of.optimizers.schedules
    vars(of)["experimental"] = _module(
        "experimental", LinearModel=LinearModel, WideDeepModel=WideDeepModel,
        CosineDecay=schedules.CosineDecay, CosineDecayRestarts=schedules.CosineDecayRestarts,
    )  # fmt: skip
    for function in (
        in_train_phase, in_test_phase, learning_phase_scope, local_conv1d, print_tensor,
        random_binomial, normalize_batch_in_training, get_graph,
    ):  # fmt: skip
        vars(of.backend)[function.__name__] = function
    vars(of.backend)["local_conv2d"] = local_conv
    vars(of.models)["model_from_config"] = model_from_config
    have_sessions()
