"""Operators of ``try`` statements: whether Python would raise, also for what only the run knows.

`autograph.converters.tried` asks them before the statement that would raise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.jitted.arrays import Array, TracedSequence, as_number, direct, is_traced, number_of
from treadle.jitted.refused_numbers import REFUSED
from treadle.jitted.statements import in_, not_, or_
from treadle.jitted.tables import Table
from treadle.ops.numbers.python_numbers import SymbolicNumber, kind_of


def divides_by_zero(divisor: Any) -> Any:
    """Whether Python refuses to divide by a number."""
    divisor = direct(divisor)
    is_pythons = type(divisor) in (bool, int, float, complex, SymbolicNumber)
    return divisor == 0 if is_pythons else False


def refuses(function: str, number: Any) -> Any:
    """Whether a function of `math` refuses a number."""
    number = as_number(number)
    if kind_of(number) not in (bool, int, float):
        return False
    return REFUSED[getattr(math, function)](number)


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
