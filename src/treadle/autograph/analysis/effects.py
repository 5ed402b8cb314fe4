"""Side effects of Python code: a loop whose body has some runs in Python.

Code is looked at before it runs: its bytecode for stores into objects and globals and for the names
that it loads, and each object that it calls when the call comes (`refusal_of_call`).
"""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import types
from typing import Any

import numpy as np

from treadle.autograph import config
from treadle.autograph.memory import per_code

_STORES = {
    "STORE_GLOBAL": "assigns the global {}", "DELETE_GLOBAL": "deletes the global {}",
    "STORE_ATTR": "assigns the attribute .{}", "DELETE_ATTR": "deletes the attribute .{}",
    "STORE_SUBSCR": "assigns an item", "DELETE_SUBSCR": "deletes an item",
    "STORE_SLICE": "assigns a slice", "IMPORT_NAME": "imports {}",
    "LOAD_BUILD_CLASS": "defines a class", "YIELD_VALUE": "yields",
    "CHECK_EXC_MATCH": "catches exceptions",
}  # fmt: skip
_BUILTINS = frozenset({
    "print", "input", "open", "exec", "eval", "compile", "setattr", "delattr", "next", "anext",
    "globals", "locals", "vars", "id", "hash", "type", "breakpoint", "__import__", "super",
    "repr", "str", "format", "memoryview",
}) - {"str", "repr", "format", "super"}  # fmt: skip
_MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "add",
    "discard", "setdefault", "popitem", "appendleft", "popleft", "extendleft", "rotate",
    "__setitem__", "__delitem__", "fill", "put", "itemset", "partition", "resize", "setflags",
    "setfield", "byteswap", "intersection_update", "difference_update",
    "symmetric_difference_update", "__next__", "send", "throw", "close",
})  # fmt: skip
_PURE_MODULES = frozenset({
    "math", "cmath", "operator", "_operator", "functools", "_functools", "itertools", "typing",
    "collections", "_collections", "numbers", "fractions", "dataclasses", "abc", "copy", "string",
    "treadle", "numpy", "builtins", "enum", "types", "contextlib",
})  # fmt: skip
_IN_PLACE = frozenset({"put", "place", "copyto", "putmask", "fill_diagonal", "save", "savez",
                       "savetxt", "at", "seterr", "errstate", "shuffle"})  # fmt: skip
_PLAIN = (str, bytes, tuple, range, frozenset, int, float, complex, type, types.ModuleType)


@per_code
def _summary(code: types.CodeType) -> tuple[str | None, tuple[str, ...]]:
    """The side effect of storing outside of itself, if any, and the dotted names it loads."""
    names: dict[str, None] = {}
    path = ""
    for i in dis.get_instructions(code):
        outer = i.opname == "STORE_DEREF" and i.argval in code.co_freevars
        if i.opname in _STORES or outer:
            what = _STORES.get(i.opname, "assigns the variable {} of a function around it")
            return f"it {what.format(i.argval)}", ()
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            path = str(i.argval)
            names[path] = None
        elif i.opname in ("LOAD_ATTR", "LOAD_METHOD") and path:
            path = f"{path}.{i.argval}"
            names[path] = None
        elif i.opname not in ("PUSH_NULL", "CACHE", "PRECALL", "NOP"):
            path = ""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            reason, inner = _summary(constant)
            if reason is not None and not _is_nonlocal_of(code, constant):
                return reason, ()
            names.update(dict.fromkeys(inner))
    return None, tuple(names)


def _is_nonlocal_of(code: types.CodeType, inner: types.CodeType) -> bool:
    """Whether all that an inner function stores are variables of the code around it."""
    stores = [i for i in dis.get_instructions(inner)
              if i.opname in _STORES or i.opname == "STORE_DEREF"]  # fmt: skip
    return all(
        i.opname == "STORE_DEREF"
        and (i.argval in code.co_cellvars or i.argval in inner.co_cellvars)
        for i in stores
    ) and not any(isinstance(c, types.CodeType) for c in inner.co_consts)


def refusal_of_code(function: types.FunctionType) -> str | None:
    """The side effect that a function has, or None. Calls of functions that only a run knows are
    looked at when they come."""
    reason, names = _summary(function.__code__)
    if reason is not None:
        return reason
    for name in names:
        value = _resolved(function, name)
        if value is None or isinstance(value, types.ModuleType):
            continue
        root = name.partition(".")[0]
        if root in _BUILTINS and "." not in name and value is getattr(builtins, root, None):
            return f"it calls {root}()"
        library = isinstance(value, np.random.Generator | np.random.RandomState)
        if library or (callable(value) and config.is_library_object(value)):
            found = refusal_of_call(value)
            if found is not None:
                return found
    return None


def _resolved(function: types.FunctionType, name: str) -> Any:
    """The value of a dotted name, by globals and attributes of modules; None if not known."""
    root, *rest = name.split(".")
    value = function.__globals__.get(root, getattr(builtins, root, None))
    for part in rest:
        if not isinstance(value, types.ModuleType):
            return None
        value = getattr(value, part, None)
    return value


def refusal_of_call(target: Any) -> str | None:
    """Why a call of `target` may do more than to give a result, or None."""
    if isinstance(target, types.FunctionType):
        return _of_function(target)
    if isinstance(target, types.MethodType):
        return refusal_of_call(target.__func__)
    if isinstance(target, functools.partial):
        return refusal_of_call(target.func)
    if isinstance(target, type):
        return _of_class(target)
    name = getattr(target, "__name__", type(target).__name__)
    if isinstance(target, types.BuiltinFunctionType | types.MethodWrapperType):
        return _of_builtin(target, name)
    root = type(target).__module__.partition(".")[0]
    if root in _PURE_MODULES:
        module = str(getattr(target, "__module__", "") or "")
        return f"it calls {module}.{name}()" if "random" in module and root == "numpy" else None
    method = getattr(type(target), "__call__", None)  # noqa: B004
    return (
        refusal_of_call(method)
        if isinstance(method, types.FunctionType)
        else (f"it calls a {type(target).__name__}")
    )


def _of_function(function: types.FunctionType) -> str | None:
    module = str(function.__globals__.get("__name__") or "")
    if not config.is_library_module(module):
        return refusal_of_code(function)
    name = function.__name__
    pure = module.partition(".")[0] in _PURE_MODULES
    random = module.startswith("numpy.random")
    if pure and not random and not (module.startswith("numpy") and name in _IN_PLACE):
        return None
    return f"it calls {module}.{name}(), which may do more than to give a result"


def _of_builtin(target: Any, name: str) -> str | None:
    owner = getattr(target, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        module = str(getattr(target, "__module__", "") or "")
        known = module.partition(".")[0] in _PURE_MODULES and "random" not in module
        if known and name not in _IN_PLACE and not (module == "builtins" and name in _BUILTINS):
            return None
        return f"it calls {module}.{name}()"
    if isinstance(owner, _PLAIN):
        return None
    holders = (list, dict, set, bytearray, collections.deque, np.ndarray, np.generic)
    if isinstance(owner, holders) and name not in _MUTATORS:
        return None
    return f"it calls .{name}() of a {type(owner).__name__}"


def _of_class(kind: type) -> str | None:
    if config.is_library_object(kind):
        root = kind.__module__.partition(".")[0]
        return None if root in _PURE_MODULES else f"it makes a {kind.__name__}"
    if issubclass(kind, tuple) or "__dataclass_fields__" in vars(kind):
        return None if not hasattr(kind, "__post_init__") else f"it makes a {kind.__name__}"
    return f"it makes a {kind.__name__}"
