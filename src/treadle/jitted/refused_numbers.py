"""What Python's `math` and division refuse, for numbers that only the run knows.

In a ``try`` statement that would catch the error the program raises it: the handler was passed
when the function was traced, so what the formula gives would be the silent result. Functions of
`math` outside of branches and loops are checked as well; in these a check would cost more than the
function.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from treadle.core.interrupts import during, is_mode
from treadle.jitted.storage import scopes
from treadle.ops.control.raising import Raised, raise_unless
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.logic import logical_not
from treadle.ops.numbers.python_numbers import SymbolicNumber, kind_of, set_division_check

Kinds = Callable[[], Any]


class _Tried(threading.local):
    """What the handlers catch of the ``try`` statements that are being traced."""

    kinds: tuple[Kinds, ...] = ()


_tried = is_mode(_Tried())


def trying(kinds: Kinds) -> during:
    """The body of a ``try`` statement, whose handlers catch ``kinds()``."""
    return during(_tried, "kinds", (*_tried.kinds, kinds))


def _is_caught(error: type[Exception]) -> bool:
    """Whether a handler of the user's around would catch an error."""
    for kinds in _tried.kinds:
        found = kinds()
        for kind in found if isinstance(found, tuple) else (found,):
            if isinstance(kind, type) and issubclass(error, kind):
                return True
    return False


_IN_TRY = (
    ": td.jit passed the except clause when it traced the function, so compare the number before, "
    "in an if statement"
)


def _refuse(refused: Any, error: type[Exception], text: str, caught: bool) -> None:
    """Raise an error where `refused`, a bool or a symbolic one, is true."""
    if refused is not False:
        raised = Raised(error(text + (_IN_TRY if caught else "")), [])
        raise_unless(logical_not(convert_to_tensor(refused)), raised)


def check_math(function: Any, numbers: list[Any]) -> None:
    """Let the program raise where Python's function refuses its argument.

    Args:
        function: one of `math`.
        numbers: its arguments, of which some are symbolic.
    """
    refuses = REFUSED.get(function)
    if refuses is None or type(numbers[0]) is not SymbolicNumber or kind_of(numbers[0]) is complex:
        return
    caught = _is_caught(ValueError)
    if caught or not scopes.open:
        # No comparison holds for a NaN, which the functions give back.
        _refuse(refuses(numbers[0]), ValueError, "math domain error", caught)


# Where functions refuse a number, which is no NaN.
REFUSED: dict[Any, Callable[[Any], Any]] = {
    math.sqrt: lambda x: x < 0,
    math.log: lambda x: x <= 0,
    math.log2: lambda x: x <= 0,
    math.log10: lambda x: x <= 0,
    math.log1p: lambda x: x <= -1,
    math.acos: lambda x: abs(x) > 1,
    math.asin: lambda x: abs(x) > 1,
    math.acosh: lambda x: x < 1,
    math.atanh: lambda x: abs(x) >= 1,
}


def _check_division(divisor: Any) -> None:
    """Let the program raise where a handler would catch that a number is divided by zero."""
    if isinstance(divisor, SymbolicNumber) and _is_caught(ZeroDivisionError):
        zero: Any = divisor
        _refuse(zero == 0, ZeroDivisionError, "division by zero", True)


set_division_check(_check_division)
