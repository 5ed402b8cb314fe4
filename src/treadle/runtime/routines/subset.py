"""The subset of Python that routines are written in, as far as all who compile it share it.

It has numbers of fixed types and arrays of them; assignments, ``while``, ``for`` over
``range``, ``lanes`` or ``singly``, ``if``, ``break``, ``continue``, ``return``; arithmetic,
comparisons, ``and``, ``or``; calls of other such functions and of the names in `language.py`. A
variable has the type of its first value. Numbers written as literals take the type of their
neighbour, and are i64 on their own. `names` gives types and constants their meaning; an ``if`` over
constants is decided here.

Integers in names of types that begin with ``i`` must not overflow, those with ``u`` wrap around.
Quotients and remainders are those of numbers that are not negative. A product that is added to
something may be rounded with the sum, once; sums keep their order.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

Names: TypeAlias = "Mapping[str, Any]"  # of types and constants


class Kind(NamedTuple):
    """A type: of numbers ("i", "u", "f", or "b" for a condition), or of arrays of them ("p")."""

    family: str
    bits: int
    element: Any = None

    @property
    def text(self) -> str:
        if self.family == "p":
            return "ptr"
        if self.family == "f":
            return {16: "half", 32: "float", 64: "double"}[self.bits]
        return f"i{self.bits}"


BOOL = Kind("b", 1)
I64 = Kind("i", 64)
KINDS = {f"{family}{bits}": Kind(family, bits) for family in "iu" for bits in (8, 16, 32, 64)} | {
    "f32": Kind("f", 32),
    "f64": Kind("f", 64),
    "int": I64,
    "bool": BOOL,
}


class Typed(NamedTuple):
    """A value: its text and its type."""

    text: str
    kind: Kind


Operand: TypeAlias = "Typed | int | float | bool"


class RoutineError(Exception):
    """A routine is not in the subset."""


@functools.cache
def definition_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a function."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def routine_named(name: str) -> Callable[..., Any]:
    """The function that `Rows.routine` names, `module.function`."""
    module, _, function = name.partition(".")
    found = importlib.import_module(f"treadle.runtime.routines.{module}")
    return getattr(found, function)  # type: ignore[no-any-return]


# What operators of literals and constants give.
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
