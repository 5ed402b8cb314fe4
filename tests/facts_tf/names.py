"""The public names of TensorFlow's modules of the training stack, and of the classes in them.

``python tests/facts_tf/record.py names`` records them; `test_names.py` compares ours.
"""

from __future__ import annotations

from typing import Any

MODULES = (
    "data", "data.experimental", "io", "io.gfile", "summary", "summary.experimental", "config",
    "config.experimental", "config.optimizer", "config.threading", "distribute",
    "distribute.cluster_resolver", "distribute.experimental", "train", "profiler",
    "profiler.experimental",
)  # fmt: skip


def module_of(library: Any, path: str) -> Any:
    """The module of a path below the library."""
    for part in path.split("."):
        library = getattr(library, part)
    return library


def names_of(library: Any) -> dict[str, list[str]]:
    """The names of each module, and of each class in it, by their paths."""
    found = {}
    for path in MODULES:
        module = module_of(library, path)
        names = [name for name in dir(module) if not name.startswith("_")]
        found[path] = names
        for name in names:
            kind = getattr(module, name)
            if isinstance(kind, type):
                found[f"{path}.{name}"] = [n for n in dir(kind) if not n.startswith("_")]
    return found
