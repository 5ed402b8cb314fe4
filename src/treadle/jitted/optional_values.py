"""Values that are None in some runs: what a variable is after a branch that gave it None.

    best = None
    for x in v:                        best is None in the first iteration and a number afterwards
        if best is None or x < best:   ``best is None`` asks the program
            best = x

A `MaybeNone` is a pair: a bool of the graph, and the value for where there is one. Whatever uses
the value raises a TypeError when the program runs and it is None. Where a branch was taken because
it is not None, as in ``if x is not None: y += x``, nothing needs to be checked.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.autograph.operators.undefined import Undefined
from treadle.core import nest
from treadle.core.interrupts import during, is_mode
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Indirect
from treadle.ops.control.raising import Raised, raise_unless
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.logic import LOGICAL_NOT, logical_not
from treadle.ops.numbers.python_numbers import symbolic_number


class MaybeNone(Indirect):
    """A value, or None in runs in which `present` is false.

    Attributes:
        present: whether there is a value, a symbolic bool.
        value: the value, which may be a structure; anything where there is none.
    """

    __slots__ = ("_asked", "present", "value")

    def __init__(self, present: Any, value: Any) -> None:
        self.present, self.value = present, value
        self._asked: list[Tensor] = []  # bools that say that it is None, as code has asked for them

    def is_none(self) -> Any:
        """``self is None``, a symbolic bool."""
        absent = logical_not(self.present.tensor())
        self._asked.append(absent)
        return symbolic_number(absent)

    def get(self) -> Any:
        """The value; the program raises a TypeError in runs in which it is None."""
        present = self.present.tensor()
        if not any(_says_that_there_is(present, self._asked, *path) for path in _paths.taken):
            raise_unless(present, Raised(TypeError("None is used where a value is needed"), ()))
        return self.value

    @property
    def seen_as(self) -> type:
        """For `nest`, which asks all objects."""
        return MaybeNone

    def __repr__(self) -> str:
        return f"<{self.value!r} or None>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.get(), name)

    def __eq__(self, other: object) -> Any:
        if other is None:
            return self.is_none()
        return operator.eq(self.get(), other)

    def __ne__(self, other: object) -> Any:
        if other is None:
            return self.present
        return operator.ne(self.get(), other)

    __hash__ = None  # type: ignore[assignment]


def _of_value(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: function(self.get(), *args)


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self.get())


_BINARY = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
    "lshift", "rshift",
]  # fmt: skip
_OTHER = ["neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "getitem", "setitem"]
_BUILTIN = {"iter": iter, "len": len, "round": round, "divmod": divmod}


def _install() -> None:
    """Put the operators of values on `MaybeNone`."""
    for name in _BINARY:
        plain, own = getattr(operator, name), name.rstrip("_")
        setattr(MaybeNone, f"__{own}__", _of_value(plain))
        setattr(MaybeNone, f"__r{own}__", _reflected(plain))
        setattr(MaybeNone, f"__i{own}__", _of_value(getattr(operator, f"i{own}")))
    for name, function in [*((n, getattr(operator, n)) for n in _OTHER), *_BUILTIN.items()]:
        setattr(MaybeNone, f"__{name}__", _of_value(function))
    setattr(MaybeNone, "__call__", lambda self, *a, **k: self.get()(*a, **k))  # noqa: B010


_install()


class _Paths(threading.local):
    """The branches that this thread traces: the bool that decided, and what it was."""

    taken: tuple[tuple[Tensor, bool], ...] = ()


_paths = is_mode(_Paths())


def taking(test: Tensor, outcome: bool) -> during:
    """While a branch is traced that is taken where `test` is `outcome`."""
    return during(_paths, "taken", (*_paths.taken, (test, outcome)))


def _says_that_there_is(
    present: Tensor, asked: list[Tensor], test: Tensor, outcome: bool
) -> bool:
    """Whether a branch is only taken where there is a value.

    Args:
        asked: bools that are false where there is one.
        test, outcome: the bool that the branch asks for, and what it is there.
    """
    if outcome and _is_same(test, present):
        return True
    if any(test is t for t in asked):
        return not outcome
    node = test.value.node  # type: ignore[attr-defined]
    negated = node is not None and node.op is LOGICAL_NOT
    return negated and outcome and any(node.inputs[0] is t.value for t in asked)  # type: ignore[attr-defined]


def _is_same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.is_symbolic and b.is_symbolic and a.value is b.value)  # type: ignore[attr-defined]


def is_none(value: Any) -> Any:
    """``value is None``."""
    if isinstance(value, MaybeNone):
        return value.is_none()
    if isinstance(value, Undefined):
        value.fail()
    return value is None


def maybe_none(value: Any, filler: Any = None) -> MaybeNone:
    """A value of Python's as one that may be None.

    Args:
        filler: the value that stands where there is none.
    """
    if isinstance(value, MaybeNone):
        return value
    if value is None:
        return MaybeNone(_flag(False), Undefined("None") if filler is None else filler)
    return MaybeNone(_flag(True), value)


def like(value: Any, other: Any) -> Any:
    """`value` as one that may be None, where `other` is such a value."""
    if isinstance(other, MaybeNone) and not isinstance(value, Undefined):
        return maybe_none(value, other.value)
    return value


def _flag(present: bool) -> Any:
    return symbolic_number(convert_to_tensor(np.bool_(present)))


def _built(like: MaybeNone, parts: list[Any]) -> Any:
    """A value with other parts; in a result, where they are known, the value or None."""
    present, value = parts
    if type(present) in (bool, np.bool_, np.ndarray):
        return value if present else None
    if isinstance(present, Tensor) and not present.is_symbolic:
        return value if bool(present) else None
    return MaybeNone(present, value)


nest.register_node(
    MaybeNone,
    lambda value: [value.present, value.value],
    _built,
    lambda value: (),
    composite=False,
)
