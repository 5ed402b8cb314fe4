"""Modules under ``tensorflow.python``: their names are those of treadle's public modules.

TensorFlow defines its public functions in private modules, and libraries import them from there:
``tensorflow.python.ops.math_ops.reduce_sum`` is ``tensorflow.reduce_sum``. Such a name is looked up
in the public modules. What is in none of them is in `private`, or an `ImportError`. Modules under
``tensorflow.core`` have protocol buffers. Those under ``keras.src``, in which Keras defines its
public functions, are looked up as ``tensorflow.python.keras``, its older place.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

from treadle.compat.replacement import private

# The packages under ``tensorflow.python``. What is imported from them are modules, or packages.
_PACKAGE_NAMES = """
    autograph autograph.converters autograph.core autograph.impl autograph.lang autograph.operators
    autograph.pyct autograph.pyct.common_transformers autograph.pyct.static_analysis
    autograph.utils checkpoint client compat compiler compiler.xla data data.experimental
    data.experimental.ops data.kernel_tests data.ops data.util debug distribute eager
    eager.polymorphic_function feature_column framework grappler keras keras.backend
    keras.backend.common keras.distribution keras.engine keras.layers keras.layers.attention
    keras.layers.convolutional keras.layers.core keras.layers.merging keras.layers.normalization
    keras.layers.pooling keras.layers.preprocessing keras.layers.regularization
    keras.layers.reshaping keras.layers.rnn keras.losses keras.metrics keras.mixed_precision
    keras.models keras.ops keras.optimizer_v2 keras.optimizers keras.saving keras.trainers
    keras.trainers.data_adapters keras.utils layers lib lib.core lib.io
    lookup module ops ops.distributions ops.linalg ops.linalg.sparse ops.losses ops.numpy_ops
    ops.parallel_for ops.ragged ops.signal ops.structured platform profiler saved_model summary
    tools tools.docs tpu trackable training training.experimental training.saving types user_ops
    util
"""
_PACKAGES = frozenset(_PACKAGE_NAMES.split())
_ROOTS = {
    "tensorflow.python": "", "keras.src": "keras", "tf_keras.src": "keras",
}  # fmt: skip
# Modules that Keras 2 had in its time in public places, from which older programs import names.
# Those whose names are also those of modules of treadle are these.
_OLDER_NAMES = """
    engine engine.base_layer engine.input_layer engine.input_spec engine.network engine.sequential
    engine.topology engine.training layers.advanced_activations layers.convolutional_recurrent
    layers.embeddings layers.local layers.merge objectives utils.conv_utils utils.data_utils
    utils.generic_utils utils.io_utils utils.layer_utils utils.np_utils utils.tf_utils
    utils.vis_utils
"""
_OLDER_KERAS = frozenset(_OLDER_NAMES.split())
# Where names of private modules are looked up, in this order.
_PLACES = (
    "treadle", "treadle.math", "treadle.nn", "treadle.linalg", "treadle.random", "treadle.image",
    "treadle.strings", "treadle.sparse", "treadle.ragged", "treadle.debugging", "treadle.signal",
    "treadle.bitwise", "treadle.test", "treadle.errors", "treadle.keras", "treadle.keras.backend",
    "treadle.keras.utils", "treadle.keras.layers", "treadle.raw_ops", "treadle.train",
    "treadle.types.experimental", "treadle.experimental", "treadle.config", "treadle.autograph",
    "treadle.autograph.experimental", "treadle.data", "treadle.data.experimental",
    "treadle.lookup", "treadle.nest", "treadle.compat", "treadle.summary", "treadle.distribute",
    "treadle.saved_model", "treadle.keras.models", "treadle.compat.v1", "treadle.compat.v1.io",
)  # fmt: skip
# Modules that are none of Keras's mean TensorFlow 1's function where Keras has one of that name.
_KERAS_LAST = tuple(sorted(_PLACES, key=lambda place: place.startswith("treadle.keras")))

# Modules, or packages of them, whose names are those of TensorFlow 1's modules first: others of the
# same name in the places above mean something else.
_OF_TENSORFLOW_1 = {
    "feature_column": "feature_column", "layers": "layers", "ops.init_ops": "initializers",
    "ops.losses": "losses", "ops.lookup_ops": "lookup", "ops.metrics": "metrics",
    "ops.metrics_impl": "metrics", "ops.rnn": "nn", "ops.rnn_cell": "nn.rnn_cell",
    "ops.rnn_cell_impl": "nn.rnn_cell", "platform.tf_logging": "logging",
    "platform.resource_loader": "resource_loader", "summary": "summary", "training": "train",
}  # fmt: skip

# Functions that have TensorFlow 1's arguments in the private modules of operations, in another
# order than those of the same name that are public in TensorFlow 2.
_NAMES_OF_1 = """
    assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_near
    assert_negative assert_non_negative assert_non_positive assert_none_equal assert_positive
    assert_rank assert_rank_at_least assert_rank_in assert_scalar avg_pool
    batch_norm_with_global_normalization conv1d conv2d conv2d_transpose conv3d_transpose convolution
    crelu ctc_loss decode_csv depthwise_conv2d dropout embedding_lookup embedding_lookup_sparse
    erosion2d fractional_avg_pool fractional_max_pool fused_batch_norm in_top_k max_pool moments
    nce_loss parse_example parse_single_example pool random_poisson safe_embedding_lookup_sparse
    sampled_softmax_loss separable_conv2d softmax_cross_entropy_with_logits sufficient_statistics
    weighted_moments
"""
_FUNCTIONS_OF_1 = frozenset(_NAMES_OF_1.split())


class MessageModule(ModuleType):
    """A module or package under ``tensorflow.core``."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"The protocol buffers of {name}.")
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.endswith("_pb2"):
            return private.message(name)
        return importlib.import_module(f"{self.__name__}.{name}")


class PrivateModule(ModuleType):
    """A module under ``tensorflow.python`` or ``keras.src``."""

    def __init__(self, name: str, inside: str, has_modules: bool = True) -> None:
        super().__init__(name, f"What treadle has for the names of {name}.")
        self.__path__: list[str] = []
        self._inside, self._has_modules = inside, has_modules

    def __getattr__(self, name: str) -> Any:
        if name == "__all__" and self._has_modules:
            exported = _exported(self._inside) or _of_1(self._inside)
            if exported:
                return exported
        if name.startswith("__"):
            raise AttributeError(name)
        found = _of_same_module(self._inside, name)
        if found is None:
            found = private.named(self._inside, name)
        is_package = self._has_modules and (self._inside in _PACKAGES or not self._inside)
        if found is None and is_package:  # any other name of a package is taken for a module
            found = _submodule(f"{self.__name__}.{name}")
        if found is None:
            found = private.found(self._inside, name)
        if found is None:
            found = _public(name, self._inside)
        if found is None:
            raise AttributeError(
                f"{self.__name__} is private to TensorFlow, and treadle has no {name!r} for it"
            )
        setattr(self, name, found)
        return found


def _of_same_module(inside: str, name: str) -> Any:
    """What Keras's public module of the same name exports: its private modules are called so."""
    exported = _exported(inside)
    return getattr(_attribute(f"treadle.{inside}"), name) if name in exported else None


def _exported(inside: str) -> list[str]:
    if inside != "keras" and not inside.startswith("keras."):
        return []
    try:
        found: list[str] = _attribute(f"treadle.{inside}").__all__
        return found
    except AttributeError:
        return []


def _of_1(inside: str) -> list[str]:
    """What a module has for ``import *`` whose names are those of one of TensorFlow 1's."""
    found: list[str] = []
    for place in _places_of_1(inside):
        module = _attribute(place)
        found += getattr(module, "__all__", None) or dir(module)
    return [name for name in found if not name.startswith("_")]


def _places_of_1(inside: str) -> tuple[str, ...]:
    return tuple(
        f"treadle.compat.v1.{place}"
        for start, place in _OF_TENSORFLOW_1.items()
        if f"{inside}.".startswith(f"{start}.")
    )


def _submodule(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def _public(name: str, inside: str) -> Any:
    of_1 = _places_of_1(inside)
    if name in _FUNCTIONS_OF_1 and inside.startswith("ops.") and inside.count(".") == 1:
        of_1 = tuple(f"treadle.compat.v1{module}" for module in (".nn", ".random", ""))
    places = _PLACES if inside.startswith("keras") else _KERAS_LAST
    for place in (*of_1, *places):
        try:
            return getattr(_attribute(place), name)
        except AttributeError:
            continue
    return None


def _attribute(place: str) -> Any:
    """What is reached from ``treadle`` by attributes: not all of its modules are files."""
    first, *rest = place.split(".")
    return functools.reduce(getattr, rest, importlib.import_module(first))


def private_module(name: str) -> ModuleType | None:
    """The module for a name under ``tensorflow.python``, ``tensorflow.core`` or ``keras.src``, or
    of an older Keras; None for others.

    Raises:
        ModuleNotFoundError: it is the name of something within a module.
    """
    if f"{name}.".startswith("tensorflow.core."):
        return MessageModule(name)
    root = next((root for root in _ROOTS if f"{name}.".startswith(f"{root}.")), None)
    if root is None:
        older = name.removeprefix("tensorflow.").removeprefix("keras.")
        return PrivateModule(name, f"keras.{older}", False) if older in _OLDER_KERAS else None
    inside = f"{_ROOTS[root]}{name.removeprefix(root)}".removeprefix(".")
    package = inside.rpartition(".")[0]
    if package and package not in _PACKAGES:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return PrivateModule(name, inside)
