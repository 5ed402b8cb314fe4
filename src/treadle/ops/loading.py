"""Loading all ops: a module registers its ops when it is imported, which happens when a program
first needs one of them."""

from __future__ import annotations

import importlib
import os
import pkgutil


def load_all_ops() -> None:
    """Import every module of ops, for who asks the registry for all ops or for any name."""
    for module in pkgutil.walk_packages([os.path.dirname(__file__)], "treadle.ops."):
        importlib.import_module(module.name)
