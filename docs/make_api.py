"""Writes docs/api.md, the list of public names: `PYTHONPATH=src python docs/make_api.py`."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import treadle as td

PAGE = Path(__file__).with_name("api.md")

HEAD = """\
# Names

The public names, with TensorFlow 2's meaning unless noted. A name that is not here is not supported
yet. `PYTHONPATH=src python docs/make_api.py` writes this page.
"""


def public_modules(module: ModuleType = td, name: str = "td") -> Iterator[tuple[str, ModuleType]]:
    """(name as users write it, module), for treadle and the public modules in it."""
    yield name, module
    for inner in public_names(module):
        value = getattr(module, inner)
        if isinstance(value, ModuleType):
            yield from public_modules(value, f"{name}.{inner}")


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or else the functions and classes that the module itself defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__}
    return sorted(name for name in own if not name.startswith("_"))


def summary(value: Any) -> str:
    """The first line of the docstring; for a value, what it is. What NumPy says of its functions
    depends on its version."""
    if not (inspect.isclass(value) or callable(value)):
        return f"`{type(value).__name__}`"
    original = getattr(np, getattr(value, "__name__", ""), None)
    if original is not None and value.__doc__ and value.__doc__ == original.__doc__:
        return f"as `numpy.{value.__name__}`"
    lines = (inspect.getdoc(value) or "").strip().splitlines()
    return lines[0].replace("|", "\\|") if lines else ""


def section(title: str, module: ModuleType) -> list[str]:
    values = {name: getattr(module, name) for name in public_names(module)}
    rows = {name: v for name, v in values.items() if not isinstance(v, ModuleType)}
    if not rows:
        return []
    lines = [f"## {title}", "", "| name | what it is |", "| --- | --- |"]
    return [*lines, *(f"| `{name}` | {summary(value)} |" for name, value in rows.items()), ""]


def page() -> str:
    return "\n".join([HEAD, *(line for found in public_modules() for line in section(*found))])


if __name__ == "__main__":
    PAGE.write_text(page())
