"""``import tensorflow`` and ``import keras`` give treadle, in the process that asks for it."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from importlib.metadata import DistributionFinder
from types import ModuleType
from typing import Any

import treadle
from treadle.compat import replacement
from treadle.compat.replacement import distributions
from treadle.compat.replacement.absent import name_absent_parts
from treadle.compat.replacement.attributes import accept_attributes
from treadle.compat.replacement.internal import KERAS, OPERATORS, TENSORFLOW
from treadle.compat.replacement.keras_layers import accept_names_of_keras_2, be_keras_2
from treadle.compat.replacement.lookups import private_module
from treadle.compat.replacement.xla import XLA
from treadle.core.origin import at, user_origin
from treadle.core.tensor import SymbolicTensor

_NAMES = {
    "tensorflow": "treadle",
    "keras": "treadle.keras",
    "keras_core": "treadle.keras",
    "tf_keras": "treadle.keras",
}
_KERAS_2 = "2.21.0"  # what the package tf_keras calls itself
# Modules that stand elsewhere in treadle than in the packages.
_ELSEWHERE = {
    "tf_keras.api._v1.keras.__internal__.legacy.layers": "treadle.compat.v1.layers",
    "tf_keras.api._v1.keras": "treadle.compat.v1.keras",
    "tf_keras.api._v2.keras": "treadle.keras",
    "tensorflow.compiler.tf2xla.python.xla": "treadle.compat.replacement.xla",
    "tensorflow.estimator": "treadle.compat.v1.estimator",
    "tensorflow.feature_column": "treadle.compat.v1.feature_column",
}
# Public modules of TensorFlow 2 of which treadle has TensorFlow 1's.
_OLDER = ("estimator", "feature_column")


class _Finder(DistributionFinder, importlib.abc.Loader):
    """Finds a module of TensorFlow's as the module, or the attribute, that treadle has for it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top, _, rest = name.partition(".")
        if top not in _NAMES:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.loader_state = ".".join(filter(None, (_NAMES[top], rest)))
        return spec

    def find_distributions(self, context: Any = DistributionFinder.Context()) -> Any:  # noqa: B008
        versions = dict.fromkeys(_NAMES, treadle.__version__)
        versions |= {"keras": treadle.keras.__version__, "tf_keras": _KERAS_2}
        del versions["keras_core"]
        return distributions.found(versions, context)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        spec = module.__spec__
        sys.modules[spec.name] = _module(spec.loader_state, spec.name)


def _module(name: str, asked: str) -> Any:
    private = private_module(asked)
    if private is not None:
        return private
    if asked in _ELSEWHERE:
        return _found(_ELSEWHERE[asked], asked)
    if asked not in _NAMES and any(other.startswith(f"{asked}.") for other in _ELSEWHERE):
        package = ModuleType(asked)
        package.__path__ = []
        return package
    return _found(name, asked)


def _found(name: str, asked: str) -> Any:
    if name.startswith("treadle.compat.v1"):
        _reach_older_names()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name and not name.startswith(f"{error.name}."):
            raise
        parent, _, last = name.rpartition(".")
        try:
            return getattr(importlib.import_module(parent), last)
        except (ImportError, AttributeError):
            raise ModuleNotFoundError(f"No module named {asked!r}", name=asked) from None


class _Older(ModuleType):
    """A module of TensorFlow 1, which is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_found(_ELSEWHERE[self.__name__], self.__name__), name)


def _reach_older_names() -> None:
    """TensorFlow's ``compat.v1`` computes at once until a program says otherwise, also where a
    library imports it; only ``import treadle.compat.v1`` means graphs by itself."""
    importlib.import_module("treadle.compat.v1.values").Mode.reached(by_import=False)


def _gradients() -> Any:
    return _found("treadle.compat.v1", "tensorflow.compat.v1")


def as_tensorflow() -> None:
    """Let ``import tensorflow`` and ``import keras`` give treadle from now on, in this process.

    Libraries that are written for TensorFlow then run on treadle, unchanged:

        import treadle as td

        td.compat.as_tensorflow()
        import tensorflow_probability as tfp

    It stands before the first import of TensorFlow and of what imports it. Modules under
    ``tensorflow.python``, which are private but which libraries import, are there as far as
    treadle has what they are asked for. Keras has the names of both its versions. Where the
    environment has ``TF_USE_LEGACY_KERAS=1``, as libraries for version 2 ask, it says that it is
    that, names weights and writes files of them as that does, and TensorFlow's functions take what
    `keras.Input` gives. A second call does nothing.

    Raises:
        RuntimeError: TensorFlow itself, or Keras, was imported before.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    imported = [n for n in _NAMES if n in sys.modules]
    if imported:
        raise RuntimeError(
            f"as_tensorflow: {imported[0]} was imported before, and objects of both would meet: "
            f"call it first{at(user_origin())}"
        )
    accept_attributes()
    accept_names_of_keras_2()
    replacement.is_active = True
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        vars(treadle.keras)["__version__"] = _KERAS_2
        be_keras_2()
    vars(treadle).update(
        __internal__=TENSORFLOW, __operators__=OPERATORS, __git_version__="unknown", xla=XLA
    )
    # Libraries that take tensors of several packages ask for the module of their class.
    treadle.Tensor.__module__ = SymbolicTensor.__module__ = "tensorflow.python.framework.ops"
    # Libraries say what the gradients are of operations in files of their own, or that they have
    # none.
    vars(treadle)["RegisterGradient"] = lambda op_type: _gradients().RegisterGradient(op_type)
    vars(treadle)["no_gradient"] = lambda op_type: _gradients().NotDifferentiable(op_type)
    vars(treadle).update((name, _Older(f"tensorflow.{name}")) for name in _OLDER)
    vars(treadle.keras)["__internal__"] = KERAS
    name_absent_parts()
    sys.meta_path.insert(0, _Finder())
