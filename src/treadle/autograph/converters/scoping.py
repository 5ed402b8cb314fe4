"""Names that depend on where code is written: private names in classes, ``super()``."""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.analysis.activity import parameters
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import load


def mangle(root: Any, class_name: str) -> None:
    """``self.__x`` becomes ``self._Class__x``, as the compiler does inside a class body."""
    prefix = "_" + class_name.lstrip("_")
    if prefix == "_":
        return
    for node in walk(root):
        for field in ("id", "attr", "name", "arg"):
            name = getattr(node, field, "")
            private = isinstance(name, str) and name.startswith("__") and not name.endswith("__")
            if private and node is not root:
                setattr(node, field, prefix + name)


def explicit_super(function: Any) -> None:
    """``super()`` becomes ``super(__class__, self)``, which works in nested functions too."""
    names = parameters(function.args)
    for node in walk(function):
        if (
            isinstance(node, gast.Call)
            and isinstance(node.func, gast.Name)
            and node.func.id == "super"
            and not node.args
            and names
        ):
            node.args = [load("__class__"), load(names[0])]


def is_generator(function: Any) -> bool:
    """Whether a nested function yields: such a function is left as it is."""
    return any(isinstance(n, gast.Yield | gast.YieldFrom | gast.Await) for n in walk(function))
