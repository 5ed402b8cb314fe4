"""Which code is converted: the user's own, never the standard library, NumPy or treadle, but for
modules of treadle that are programs for its compiler."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

# Installed packages whose functions run as they are. The standard library is added to these.
NEVER_CONVERTED = {
    "treadle", "numpy", "scipy", "ml_dtypes", "llvmlite", "gast", "matplotlib", "rich", "tqdm",
    "pandas", "PIL", "sklearn", "mlxtend", "pytest", "_pytest", "pluggy", "hypothesis", "IPython",
    "ipykernel", "jax", "torch", "tensorflow", "numba", "cupy",
}  # fmt: skip
# Modules and packages of treadle that are written as users write.
_PROGRAMS = (
    "treadle.examples.", "treadle.io.checksums", "treadle.jitted.array_functions",
    "treadle.jitted.list_functions", "treadle.jitted.math_functions",
    "treadle.jitted.pool_functions",
    "treadle.jitted.ordered_functions", "treadle.jitted.pcg",
    "treadle.jitted.table_functions", "treadle.jitted.text_functions",
    "treadle.jitted.twister",
)  # fmt: skip
MARK = "__treadle_do_not_convert__"  # holds the code of functions that are marked so
# Functions of treadle and NumPy that give other functions.
_KEEPING = {"function", "jit", "vectorize", "custom_gradient", "recompute_grad", "make_template",
            "wrap_function", "do_not_convert", "convert", "to_graph"}  # fmt: skip
_STANDARD = sys.stdlib_module_names
_CALLABLE_TYPES = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType,
                   types.MethodDescriptorType, types.ClassMethodDescriptorType)  # fmt: skip


def is_library_module(name: str | None) -> bool:
    """Whether the functions of a module are never converted."""
    if not name or name == "__main__" or name.startswith(_PROGRAMS):
        return False
    root = name.partition(".")[0]
    return root in NEVER_CONVERTED or root in _STANDARD


def is_library_object(value: Any) -> bool:
    """Whether calling `value` needs no conversion: a library's function or class."""
    if isinstance(value, types.FunctionType):
        return is_library_module(value.__globals__.get("__name__"))
    if isinstance(value, type):
        return is_library_module(value.__module__)
    if isinstance(value, types.MethodType):
        return is_library_object(value.__func__)
    if isinstance(value, _CALLABLE_TYPES):
        return True
    return (
        is_library_module(type(value).__module__)
        and type(value).__module__ != "functools"
        and (type(value).__module__.partition(".")[0] != "treadle")
        and numba_function(value) is None
    )


def numba_function(value: Any) -> Any:
    """The Python function that Numba's ``@jit`` was given, whose result `value` is; else None."""
    return getattr(value, "py_func", None) if _is_numbas(value) else None


def numba_ufunc(value: Any) -> tuple[Any, list[str] | None] | None:
    """The Python function that Numba's ``@vectorize`` was given, whose result `value` is, and the
    types of its loops (``"dd->d"``), None where it compiles others as they are asked for; else
    None."""
    if not _is_numbas(value) or type(value).__name__ != "DUFunc":
        return None
    return value._dispatcher.py_func, list(value.types) if value._frozen else None


def _is_numbas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numba"


def keeps_no_function(value: Any) -> bool:
    """Whether calling `value` uses up the functions and generators that it is given: what it gives
    does not call them later."""
    if not isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return False
    root = (value.__module__ or "").partition(".")[0]
    if root == "builtins":
        return value is not iter and getattr(value, "__self__", None) is builtins
    return root in {"treadle", "numpy"} and value.__name__ not in _KEEPING


def gives_library_object(value: Any) -> bool:
    """Whether calling `value` certainly gives an object of a library: numbers, tensors, tapes."""
    if not isinstance(value, types.FunctionType | type | types.BuiltinFunctionType):
        return False
    module = getattr(value, "__module__", None) or ""
    if getattr(value, "__name__", "") in {"function", "map_fn", "cond", "map_structure"}:
        return False
    if module.partition(".")[0] in {"treadle", "numpy"}:
        return True
    return module == "builtins" and isinstance(value, type) and value not in (type, super, object)
