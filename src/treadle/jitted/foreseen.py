"""Operators of ``try`` statements: whether Python would raise, also for what only the run knows.

`autograph.converters.tried` asks them before the statement that would raise.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from treadle.jitted.arrays import Array, TracedSequence, as_number, direct, is_traced, number_of
from treadle.jitted.comparing import in_
from treadle.jitted.refused_numbers import is_refused, text_of_refusal
from treadle.jitted.statements import not_, or_
from treadle.jitted.tables import Table
from treadle.ops.numbers.python_numbers import SymbolicNumber, kind_of


def divides_by_zero(divisor: Any) -> Any:
    """Whether Python refuses to divide by a number."""
    divisor = direct(divisor)
    is_pythons = type(divisor) in (bool, int, float, complex, SymbolicNumber)
    return divisor == 0 if is_pythons else False


def refuses(function: str, error: str, *numbers: Any) -> Any:
    """Whether a function of `math`, or `int`, refuses its arguments with an error of a class."""
    numbers = tuple(map(as_number, numbers))
    if any(kind_of(n) not in (bool, int, float) for n in numbers):
        return False
    return is_refused(int if function == "int" else getattr(math, function), error, numbers)


def refusal_of(function: str, *told: Any) -> str:
    """What Python says where a division, or a function of `math`, refuses its operands.

    Args:
        function: ``div``, ``floordiv``, ``mod``; or a name, which the class of the error follows.
        told: the operands, which are no more than looked at.
    """
    if function in _DIVISIONS:
        numbers = [n if kind_of(n) in _NUMBERS else 1.0 for n in map(as_number, map(direct, told))]
        return text_of_refusal(_DIVISIONS[function], "ZeroDivisionError", numbers)
    name = int if function == "int" else getattr(math, function)
    return text_of_refusal(name, told[0], ())


_DIVISIONS = {"div": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod}
_NUMBERS = (bool, int, float, complex)


def lacking_of(held: Any, is_read: bool) -> str:
    """What Python says of a position where a list or tuple has no item."""
    held = direct(held)
    if isinstance(held, Array):
        return f"index is out of bounds for axis 0 of an array of {held.ndim} dimensions"
    name = "tuple" if isinstance(held, tuple) else "list"
    return f"{name} index out of range" if is_read else f"{name} assignment index out of range"


def lacks_position(held: Any, position: Any) -> Any:
    """Whether an array or list has no item at a position."""
    held, position = direct(held), direct(position)
    if isinstance(held, Table) or not isinstance(held, Array | TracedSequence | list | tuple):
        return False
    index: Any = as_number(position) if is_traced(position) else position
    if type(index) is not int and not isinstance(index, np.integer | SymbolicNumber):
        return False
    size: Any
    if isinstance(held, Array):
        size = number_of(held.dims[0]) if held.ndim else 0
    else:
        size = held.length if isinstance(held, TracedSequence) else len(held)
    return or_(lambda: index < -size, lambda: index >= size)


def lacks_key(held: Any, key: Any) -> Any:
    """Whether a dict has no entry for a key."""
    held = direct(held)
    if isinstance(held, Table):
        return False if held.is_set else not_(held.holds(key))
    if not isinstance(held, dict) or hasattr(held, "default_factory"):
        return False
    return not_(in_(key, held)) if is_traced(key) else key not in held
