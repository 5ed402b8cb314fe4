"""``import tensorflow`` and ``import keras`` give treadle, in the process that installs this."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from typing import Any

ALIASES = {
    "tensorflow": "treadle",
    "keras": "treadle.keras",
    "keras_core": "treadle.keras",
    "tf_keras": "treadle.keras",
}


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module of TensorFlow's as the module, or the attribute, that treadle has for it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top, _, rest = name.partition(".")
        if top not in ALIASES:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.loader_state = ".".join(filter(None, (ALIASES[top], rest)))
        return spec

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        spec = module.__spec__
        sys.modules[spec.name] = _named(spec.loader_state, spec.name)


def _named(name: str, asked: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        try:
            return getattr(importlib.import_module(parent), last)
        except (ImportError, AttributeError):
            raise ModuleNotFoundError(f"No module named {asked!r}", name=asked) from None


def install() -> None:
    """Let TensorFlow's names stand for treadle's from now on."""
    sys.meta_path.insert(0, _Alias())
