"""What is said where a public module has no such name, and where the name is instead."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

# Where a name may be that is not where it was looked for, the most likely places first.
_PLACES = (
    "treadle", "treadle.math", "treadle.linalg", "treadle.nn", "treadle.random", "treadle.bitwise",
    "treadle.strings", "treadle.debugging", "treadle.data", "treadle.nest", "treadle.autograph",
    "treadle.config", "treadle.config.experimental", "treadle.test", "treadle.keras",
    "treadle.keras.layers",
    "treadle.keras.losses", "treadle.keras.metrics", "treadle.keras.optimizers",
    "treadle.keras.optimizers.schedules", "treadle.keras.activations",
    "treadle.keras.initializers", "treadle.keras.callbacks", "treadle.keras.regularizers",
    "treadle.keras.utils",
)  # fmt: skip


def missing_name(module: str, name: str, more: str = "") -> AttributeError:
    """The error for ``module.name``, with where the name is, or what is near it.

    Args:
        more: what else is known of this name.
    """
    here = _shown(module)
    if name.startswith("__") and name.endswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    hint = more or _elsewhere(module, name) or _near(module, name)
    if not hint:
        hint = "If it is TensorFlow's, it is not supported yet: docs/api.md lists the names"
    return AttributeError(f"{here} has no {name!r}. {hint}")


def missing_in(module: str) -> Callable[[str], object]:
    """A module's ``__getattr__``."""

    def __getattr__(name: str) -> object:
        raise missing_name(module, name)

    return __getattr__


def _shown(module: str) -> str:
    return "td" + module.removeprefix("treadle")


def _loaded() -> Iterator[tuple[str, ModuleType]]:
    """The places that are imported; what is not imported yet stays so."""
    for place in _PLACES:
        module = sys.modules.get(place)
        if module is not None:
            yield place, module


def _elsewhere(module: str, name: str) -> str:
    found = [p for p, m in _loaded() if p != module and name in _public(m)]
    if found:
        return f"Use {' or '.join(f'{_shown(p)}.{name}' for p in found[:2])}"
    if module == "treadle.linalg" and _stages(name):
        return f"Use np.linalg.{name}, which takes tensors, in functions too"
    return ""


def _stages(name: str) -> bool:
    """Whether NumPy's function of that name works on tensors of a graph."""
    from treadle.numpy_staging.functions import FUNCTIONS

    return getattr(np.linalg, name, None) in FUNCTIONS


def _near(module: str, name: str) -> str:
    import difflib

    names = _public(sys.modules[module]) if module in sys.modules else set()
    near = difflib.get_close_matches(name, sorted(names), 3, 0.75)
    return f"Near it {'is' if len(near) == 1 else 'are'} {', '.join(near)}" if near else ""


def _public(module: ModuleType) -> set[str]:
    listed = getattr(module, "__all__", None)
    return set(listed) if listed is not None else {n for n in vars(module) if n[:1] != "_"}
