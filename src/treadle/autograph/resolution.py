"""The values of names in a function, as far as they are known before it runs."""

from __future__ import annotations

import copy
import types
from typing import Any, TypeAlias

import gast

from treadle.autograph.analysis.activity import local_names
from treadle.autograph.analysis.walking import walk
from treadle.autograph.facts import NOTHING, Environment, Facts


class Resolver:
    """Finds the values of a function's names through its closure, globals and builtins.

    Attributes:
        asked: the facts told so far, by dotted name: all that a conversion knows of the values.
    """

    def __init__(self, function: types.FunctionType, node: Any) -> None:
        self.environment = Environment(function)
        self.asked: dict[str, Facts] = {}
        self.outer: set[str] = set()
        self.hidden = local_names(node)
        bindings = _bindings(node)
        self.library = _library_locals(self, bindings)
        self.indexed = _indexed_locals(self, bindings)

    def inner(self, node: Any) -> Resolver:
        """The resolver of a function defined inside."""
        made = copy.copy(self)
        made.outer = self.outer | self.hidden
        made.hidden = local_names(node)
        bindings = _bindings(node)
        made.library = (self.library - made.hidden) | _library_locals(made, bindings)
        made.indexed = (self.indexed - made.hidden) | _indexed_locals(made, bindings)
        return made

    def facts(self, node: Any) -> Facts:
        """The facts of the object that a dotted name stands for."""
        path = self._path(node)
        if path is None:
            return NOTHING
        found = self.asked.get(path)
        if found is None:
            found = self.asked[path] = self.environment.facts(path)
        return found

    def _path(self, node: Any) -> str | None:
        """The dotted name; None for other expressions and the function's own variables."""
        if isinstance(node, gast.Name):
            return None if node.id in self.hidden or node.id in self.outer else str(node.id)
        if isinstance(node, gast.Attribute):
            owner = self._path(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        return None

    def used_up(self, call: Any) -> tuple[type, ...]:
        """The kinds of arguments that a call surely does not keep, as far as is known: functions,
        generators."""
        if self.facts(call.func).keeps_nothing:
            return gast.Lambda, gast.GeneratorExp
        return (gast.GeneratorExp,) if self.builtin(call.func) in _CONTAINERS else ()

    def is_numpy_call(self, node: Any) -> bool:
        """Whether `node` calls ``np.name(...)``."""
        named = isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute)
        return named and self.facts(node.func.value).is_numpy

    def builtin(self, node: Any) -> str | None:
        """The name of the builtin function or type that `node` stands for."""
        if isinstance(node, gast.Name) and self.facts(node).is_builtin:
            return str(node.id)
        return None

    def needs_no_conversion(self, node: Any) -> bool:
        """Whether calling `node` cannot run the user's own functions unconverted."""
        if isinstance(node, gast.Attribute) and self.is_library_value(node.value):
            return True
        return self.facts(node).is_library and not self.facts(node).is_of_numbers

    def is_library_value(self, node: Any) -> bool:
        """Whether `node` certainly is an instance of a library's or a built-in type."""
        match node:
            case gast.Name():
                return node.id in self.library
            case gast.Constant() | gast.JoinedStr() | gast.List() | gast.Dict() | gast.Set():
                return True
            case gast.ListComp() | gast.DictComp() | gast.SetComp() | gast.Tuple():
                return True
            case gast.BinOp():
                return self.is_library_value(node.left) and self.is_library_value(node.right)
            case gast.Call():
                if isinstance(node.func, gast.Attribute) and self.is_library_value(node.func.value):
                    return True
                return self.facts(node.func).gives_library
        return False

    def may_be_indexed(self, node: Any) -> bool:
        """Whether `node` is a name that may stand for a NumPy array, list or tuple: a global or
        closed-over one that does, or a local that gets one from a function of NumPy or a
        display."""
        if not isinstance(node, gast.Name):
            return False
        return node.id in self.indexed or self.facts(node).is_indexed

    def containers(self, function: Any) -> set[str]:
        """Local variables bound to nothing but displays and comprehensions of Python's own
        containers, or calls of their types."""
        bound, opaque = _bindings(function)
        given = {a.id for a in walk(function.args) if isinstance(a, gast.Name)}
        return {n for n in set(bound) - opaque - given if all(map(self._is_container, bound[n]))}

    def _is_container(self, node: Any) -> bool:
        if isinstance(node, gast.BinOp):  # [0] * n, a + [b]
            return self._is_container(node.left) or self._is_container(node.right)
        kinds = (gast.List, gast.Dict, gast.Set, gast.ListComp, gast.DictComp, gast.SetComp)
        if isinstance(node, gast.Call):
            return self.facts(node.func).is_container
        return isinstance(node, kinds)

    def is_harmless(self, call: Any) -> bool:
        """Whether a call is one of a library function, which changes no object of the user's."""
        name = self.builtin(call.func)
        if name is not None:
            return name in _HARMLESS
        return self.facts(call.func).is_library


_Bindings: TypeAlias = "tuple[dict[str, list[Any]], set[str]]"

_CONTAINERS = ("dict", "frozenset", "list", "set", "tuple")
_HARMLESS = {
    "abs", "bool", "complex", "divmod", "float", "int", "isinstance", "len", "max", "min", "pow",
    "range", "round", "slice", "str", "sum", "tuple", "type",
}  # fmt: skip


def _library_locals(resolver: Resolver, bindings: _Bindings) -> set[str]:
    """Local names bound to nothing but library values: the greatest set that is consistent."""
    bound, opaque = bindings
    resolver.library = set(bound) - opaque
    while True:
        kept = {n for n in resolver.library if all(map(resolver.is_library_value, bound[n]))}
        if kept == resolver.library:
            return kept
        resolver.library = kept


_LISTING = ("list", "sorted", "tuple")


def _indexed_locals(resolver: Resolver, bindings: _Bindings) -> set[str]:
    """Local names that are bound to a call of a function of NumPy or to the display of a list or
    tuple, among other things."""
    bound, _ = bindings
    displays = (gast.List, gast.Tuple, gast.ListComp)

    def is_indexed(value: Any) -> bool:
        if isinstance(value, gast.BinOp):  # [0] * n, a + [b]
            return is_indexed(value.left) or is_indexed(value.right)
        if isinstance(value, gast.Call) and resolver.builtin(value.func) in _LISTING:
            return True
        return isinstance(value, displays) or resolver.is_numpy_call(value)

    return {name for name, values in bound.items() if any(map(is_indexed, values))}


def _bindings(function: Any) -> _Bindings:
    """The expressions each name is bound to, and the names bound in any other way. A lambda binds
    none."""
    if not isinstance(function, gast.FunctionDef):
        return {}, set()
    bound: dict[str, list[Any]] = {}
    opaque: set[str] = set()
    simple: set[int] = set()
    stored: list[Any] = []
    for node in walk(function):
        pairs: list[tuple[Any, Any]] = []
        if isinstance(node, gast.Name):
            if not isinstance(node.ctx, gast.Load):
                stored.append(node)
        elif isinstance(node, gast.Assign):
            pairs = [(t, node.value) for t in node.targets]
        elif isinstance(node, gast.withitem) and node.optional_vars is not None:
            pairs = [(node.optional_vars, node.context_expr)]
        elif isinstance(node, gast.AugAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, gast.FunctionDef | gast.ClassDef):
            opaque.add(node.name)
        elif isinstance(node, gast.Global | gast.Nonlocal):
            opaque.update(node.names)
        for target, value in pairs:
            names = target.elts if isinstance(target, gast.Tuple) else [target]
            for name in (n for n in names if isinstance(n, gast.Name)):
                bound.setdefault(name.id, []).append(value)
                simple.add(id(name))
    return bound, opaque | {n.id for n in stored if id(n) not in simple}
