"""Records the public names of Keras, and the orders of its constructors' arguments:
``python -m tests.keras.record_names``.

Run it with a Python that has tensorflow; the tests read ``names.json`` and ``positions.json`` only.
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


def positions() -> dict[str, list[str]]:
    """The arguments that constructors take by position, in their order. Left out are layers of
    other libraries' objects, and second names of classes."""
    found = {}
    for place in (
        "layers", "optimizers", "optimizers.schedules", "metrics", "losses", "initializers",
        "regularizers", "constraints", "callbacks",
    ):  # fmt: skip
        module = keras
        for part in place.split("."):
            module = getattr(module, part)
        for name in sorted(vars(module)):
            kind = getattr(module, name)
            left_out = name in ("TorchModuleWrapper", "JaxLayer", "FlaxLayer")
            if not isinstance(kind, type) or left_out or kind.__name__ != name:
                continue
            parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
            names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
            if names:
                found[f"{place}.{name}"] = names
    return found


def text_of(facts: dict[str, Any]) -> str:
    """The JSON: a line for each entry."""
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    return f"{{{lines}}}\n"


def main() -> None:
    found: dict[str, set[str]] = {}
    names_of(importlib_of(tf.keras), "", found)
    names_of(keras, "", found)
    names = {module: sorted(found[module]) for module in sorted(found)}
    here = Path(__file__).parent
    (here / "names.json").write_text(text_of(names))
    (here / "positions.json").write_text(text_of(positions()))
    print({module: len(found) for module, found in names.items()}, keras.__version__)


def importlib_of(lazy: Any) -> Any:
    """The module that TensorFlow's name stands for."""
    return getattr(lazy, "_load", lambda: lazy)() or lazy


if __name__ == "__main__":
    main()
