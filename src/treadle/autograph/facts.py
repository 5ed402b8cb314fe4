"""Facts about names of a function, which its conversion depends on besides the source."""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from treadle.autograph import config
from treadle.autograph.loop_options import set_loop_options

UNKNOWN: Any = object()
CONTAINERS: Any = (list, dict, set, bytearray)


class Facts(NamedTuple):
    """The facts about the object of a dotted name that a conversion may ask for.

    Attributes:
        is_known: whether there is such an object.
        is_library_module: whether its attributes can be asked about.
        is_builtin: whether it is the builtin of that name.
        is_library: see `config.is_library_object`.
        gives_library: see `config.gives_library_object`.
        is_container: whether it is the type of one of Python's own containers.
        sets_options: whether it is `set_loop_options`.
        is_of_numbers: whether it is a function of `math` or `cmath`.
        is_indexed: whether it is a NumPy array, list or tuple.
        is_numpy: whether it is the module numpy.
        keeps_nothing: see `config.keeps_no_function`.
    """

    is_known: bool = False
    is_library_module: bool = False
    is_builtin: bool = False
    is_library: bool = False
    gives_library: bool = False
    is_container: bool = False
    sets_options: bool = False
    is_of_numbers: bool = False
    is_indexed: bool = False
    is_numpy: bool = False
    keeps_nothing: bool = False


NOTHING = Facts()


def facts_of(name: str, value: Any) -> Facts:
    """The facts of an object, or UNKNOWN, by the last part of its dotted name."""
    if value is UNKNOWN:
        return NOTHING
    return Facts(
        True,
        isinstance(value, types.ModuleType) and config.is_library_module(value.__name__),
        value is getattr(builtins, name, UNKNOWN),
        config.is_library_object(value),
        config.gives_library_object(value),
        any(value is kind for kind in CONTAINERS),
        value is set_loop_options,
        isinstance(value, types.BuiltinFunctionType) and value.__module__ in ("math", "cmath"),
        isinstance(value, np.ndarray | list | tuple),
        value is np,
        config.keeps_no_function(value),
    )


class Environment:
    """The values of a function's free names: its closure, then globals, then builtins."""

    def __init__(self, function: types.FunctionType) -> None:
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        self.closure = dict(zip(names, cells, strict=True))
        self.globals = function.__globals__

    def value(self, name: str) -> Any:
        """The object, or UNKNOWN: there is none, or none yet."""
        if name in self.closure:
            try:
                return self.closure[name].cell_contents
            except ValueError:  # not assigned yet
                return UNKNOWN
        return self.globals.get(name, vars(builtins).get(name, UNKNOWN))

    def facts(self, path: str) -> Facts:
        """The facts of the object that a dotted name stands for."""
        root, *names = path.split(".")
        value, found = self.value(root), root
        for name in names:
            if not facts_of(found, value).is_library_module:
                return NOTHING
            value, found = getattr(value, name, UNKNOWN), name
        return facts_of(found, value)


def hold(function: types.FunctionType, asked: Mapping[str, Iterable[bool]]) -> bool:
    """Whether a function's names have the facts that a conversion asked for, by dotted name."""
    environment = Environment(function)
    return all(environment.facts(path) == tuple(facts) for path, facts in asked.items())
