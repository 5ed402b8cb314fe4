"""Records the public names of Keras: ``python -m tests.keras.record_names``.

Run it with a Python that has tensorflow; the tests read ``names.json`` only.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import tensorflow as tf


def names_of(module: Any, path: str, found: dict[str, set[str]]) -> None:
    """Note the names of a module and of the public modules in it, by their paths below keras."""
    if not module.__name__.startswith("keras."):
        return
    names = {name for name in dir(module) if not name.startswith("_")}
    found.setdefault(path, set()).update(names - {"src", "keras"})
    for name in sorted(names - {"src", "keras"}):
        inner = inspect.getattr_static(module, name)
        if isinstance(inner, ModuleType) and ".src" not in inner.__name__:
            names_of(inner, f"{path}.{name}".strip("."), found)


def main() -> None:
    found: dict[str, set[str]] = {}
    names_of(importlib_of(tf.keras), "", found)
    names_of(keras, "", found)
    names = {module: sorted(found[module]) for module in sorted(found)}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in names.items())
    (Path(__file__).parent / "names.json").write_text(f"{{{lines}}}\n")
    print({module: len(found) for module, found in names.items()}, keras.__version__)


def importlib_of(lazy: Any) -> Any:
    """The module that TensorFlow's name stands for."""
    return getattr(lazy, "_load", lambda: lazy)() or lazy


if __name__ == "__main__":
    main()
