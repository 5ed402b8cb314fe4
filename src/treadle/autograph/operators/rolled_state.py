"""The state of rolled loops: the leaves of variables, and how two of their values compare."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.autograph.loop_notes import Peel
from treadle.autograph.operators.journal import is_owner
from treadle.autograph.operators.undefined import Undefined
from treadle.autograph.operators.values import is_number
from treadle.core import nest
from treadle.core.tensor import Tensor
from treadle.ops.numbers.python_numbers import is_symbolic_number
from treadle.ops.numbers.tabulated import TabulatedArray
from treadle.ops.state import Variable


class Form:
    """The form of a leaf of the state in the loop.

    kind: "tensor": a loop variable; "fixed": stays as it is; "started": a number whose next
        value is not known yet; "listed": a number by its values; "linear": a number that grows by
        `value`; "constant": a number that stays; "unset": has no value yet.
    """

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind, self.value = kind, value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and (self.kind, repr(self.value)) == (
            other.kind, repr(other.value),
        )  # fmt: skip

    __hash__ = None  # type: ignore[assignment]


class Opened:
    """A variable's leaves: the tensors of a structure that cannot change, or the value itself."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.is_open = nest.is_nested(value) and not _holds_owner(value)
        self.leaves = nest.flatten(value) if self.is_open else [value]

    def closed(self, value: Any) -> list[Any]:
        if not self.is_open:
            return [value]
        try:
            nest.assert_same_structure(self.value, value)
        except (TypeError, ValueError):
            raise Peel("a variable changes its structure") from None
        return nest.flatten(value)

    def packed(self, leaves: Sequence[Any]) -> Any:
        return nest.pack(self.value, leaves) if self.is_open else leaves[0]


def _holds_owner(value: Any) -> bool:
    if isinstance(value, list | dict | set) or is_owner(value):
        return True
    return any(_holds_owner(child) for _, child in nest.children(value) or ())


def is_plain_number(value: Any) -> bool:
    return is_number(value) and not isinstance(value, np.ndarray)


def may_follow(result: Any) -> bool:
    """Whether a variable without a value may become `result` in a loop."""
    if isinstance(result, Tensor | Variable | Undefined) or result is None:
        return True
    if type(result) is TabulatedArray:
        return True
    return is_plain_number(result) or isinstance(result, str | types.FunctionType)


def equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a is b or (not is_symbolic_number(a) and repr(a) == repr(b)))


def differ(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(before) != len(after) or any(
            a is not b for a, b in zip(before, after, strict=True)
        )
    if isinstance(before, dict) and isinstance(after, dict):
        return list(before) != list(after) or any(before[k] is not after[k] for k in before)
    if hasattr(before, "parts") and hasattr(after, "parts"):
        return any(a is not b for a, b in zip(before.parts, after.parts, strict=True))
    return before is not after


def closed_over(body: types.FunctionType) -> list[Any]:
    found = []
    for cell in body.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found
