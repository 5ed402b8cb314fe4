"""Loading all ops: a module registers its ops when it is imported, which happens when a program
first needs one of them."""

from __future__ import annotations

import importlib
import os
import pkgutil

# Ops of modules that are not in this package.
_ELSEWHERE = {
    "ctc_beam_search": "treadle.sparse.label_sequences",
    "custom_gradient": "treadle.autodiff.custom_node",
    "edit_distance": "treadle.sparse.label_sequences",
    "py_function": "treadle.autodiff.python_functions",
    "unique_elements": "treadle.numpy_staging.counting",
}


def load_op(name: str) -> None:
    """Import the module that registers an op, where there is one of this name."""
    if name in _ELSEWHERE:
        importlib.import_module(_ELSEWHERE[name])
    else:
        load_all_ops()


def load_all_ops() -> None:
    """Import every module with ops, for who asks the registry for all of them."""
    for name in dict.fromkeys(_ELSEWHERE.values()):
        importlib.import_module(name)
    for module in pkgutil.walk_packages([os.path.dirname(__file__)], "treadle.ops."):
        importlib.import_module(module.name)
