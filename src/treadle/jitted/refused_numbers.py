"""What Python refuses to compute, for numbers that only the run knows: a root of a negative number,
a division by zero, the int of a NaN.

The program raises what Python raises, in branches and loops too, where a formula would go on with a
NaN. In a ``try`` statement that would catch the error its text says that the handler was passed
when the function was traced (`autograph.converters.tried` makes most of these jumps to it).
Floats that are too large are infinite, as with NumPy and Numba, where Python's `math` raises an
OverflowError: only a ``try`` statement that catches it asks.
"""

from __future__ import annotations

import math
import operator
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.core.interrupts import during, is_mode
from treadle.core.tensor import Tensor
from treadle.jitted.known_signs import is_never_negative
from treadle.jitted.storage import scopes
from treadle.ops.control.raising import Raised, raise_unless
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.logic import logical_not, logical_or
from treadle.ops.numbers.number_tables import PRODUCT
from treadle.ops.numbers.python_numbers import (
    SymbolicNumber,
    apply,
    computed,
    kind_of,
    set_number_check,
    symbolic_number,
)

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


class Refusal(NamedTuple):
    """Numbers that a function of Python's refuses.

    Attributes:
        when: whether it refuses some numbers, none of which is a NaN that makes the result one.
        sample: numbers that it refuses, for what it raises; None: those of the operands' types that
            are 1, and 0 for the last one.
        text: what the error says, where it is not what Python says of the sample.
    """

    when: Callable[..., Any]
    sample: tuple[Any, ...] | None = None
    text: str = ""


def check(function: Any, numbers: Any) -> None:
    """Let the program raise where Python's function refuses its arguments.

    Args:
        function: of `math`, `operator` or `builtins`.
        numbers: its arguments, of which some are symbolic.
    """
    if not any(type(n) is SymbolicNumber for n in numbers):
        return
    if complex in map(kind_of, numbers) and function not in _DIVISIONS:
        return
    if function is operator.mul:
        _check_product(*numbers)
        return
    if function is operator.pow:
        _check_power(*numbers)
    for when, sample, text in REFUSED.get(function, ()):
        error = _error(function, sample or _divided_by_zero(numbers))
        caught = _is_caught(type(error))
        if not caught and isinstance(error, OverflowError) and function not in _TO_INTS:
            continue
        refused = when(*numbers)
        if refused is not False:
            text = (text or str(error)) + (_IN_TRY if caught else "")
            raise_unless(logical_not(_truth(refused)), Raised(type(error)(text), []))


def _check_power(x: Any, y: Any) -> None:
    """A power of ints is an int of 64 bits. Squares and cubes are products like others, which wrap
    around."""
    if kind_of(x) not in (bool, int) or kind_of(y) not in (bool, int):
        return
    most: Any
    if type(y) is SymbolicNumber:
        wrong = apply(math.pow, abs(apply(float, x)), apply(float, y)) > _MOST_INT
    elif y <= _CUBE:
        return
    else:
        most = int(_MOST_INT ** (1.0 / y))
        while (most + 1) ** y < 2**63:
            most += 1
        wrong = abs(x) > most
    if wrong is not False:
        text = "a power of ints leaves the 64 bits that ints have in a jitted function: use floats"
        raise_unless(logical_not(_truth(wrong)), Raised(OverflowError(text), []))


def _check_product(x: Any, y: Any) -> None:
    """A product of ints is an int of 64 bits. In loops products wrap around: those that grow from
    one iteration to the next have checks of their own (`growing_ints`)."""
    if scopes.open or not all(map(_is_open, (x, y))):
        return
    x, y = apply(int, x), apply(int, y)
    apart = apply(float, computed(PRODUCT, (x, y))) - apply(float, x) * apply(float, y)
    text = "a product of ints leaves the 64 bits that ints have in a jitted function: use floats"
    refused = abs(apart) > 2.0**62  # one that wrapped around is 2**64 away
    raise_unless(logical_not(_truth(refused)), Raised(OverflowError(text), []))


def _is_open(number: Any) -> bool:
    """Whether an int may have any size, as those among the arguments: sizes of arrays have not."""
    return kind_of(number) is int and type(number) is SymbolicNumber and number.interval is None


_CUBE = 3
_MOST_INT = 2.0**63 - 1024.0


def is_refused(function: Any, error: str, numbers: Any) -> Any:
    """Whether Python's function refuses its arguments with an error of a class."""
    found: Any = False
    for when, sample, _ in REFUSED.get(function, ()):
        if sample is not None and type(_error(function, sample)).__name__ == error:
            found = _either(found, when(*numbers))
    return symbolic_number(found) if isinstance(found, Tensor) else found


def text_of_refusal(function: Any, error: str, numbers: Any) -> str:
    """What Python's function says where it refuses numbers with an error of a class."""
    for _, sample, text in REFUSED.get(function, ()):
        found = _error(function, sample or _divided_by_zero(numbers))
        if type(found).__name__ == error:
            return text or str(found)
    return f"{function.__name__}() refuses the number"


def _truth(value: Any) -> Any:
    return convert_to_tensor(value.tensor() if type(value) is SymbolicNumber else value)


def _error(function: Any, sample: tuple[Any, ...]) -> Exception:
    """What Python's function raises."""
    try:
        function(*sample)
    except (ArithmeticError, ValueError) as error:
        return error
    return ValueError("a negative number to a power that is no whole number, which is complex")


def _divided_by_zero(numbers: Any) -> tuple[Any, ...]:
    first, last = (kind_of(n) for n in numbers)
    return first(1), last(0)


def _either(a: Any, b: Any) -> Any:
    """``a or b`` of bools, of which some are symbolic."""
    if a is False or b is False:
        return b if a is False else a
    return True if a is True or b is True else logical_or(_truth(a), _truth(b))


def _both(a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else a & b


def _is_negative(x: Any) -> Any:
    return False if is_never_negative(x) else x < 0


def _is_infinite(x: Any) -> Any:
    return abs(x) == math.inf if kind_of(x) is float else False


def _is_zero(*numbers: Any) -> Any:
    return numbers[-1] == 0


def _is_nan(x: Any) -> Any:
    return x != x if kind_of(x) is float else False


def _is_no_int64(x: Any) -> Any:
    """Python's int is any number; those here have 64 bits."""
    return abs(x) >= 2.0**63 if kind_of(x) is float else False


def _is_fraction(x: Any) -> Any:
    if kind_of(x) in (bool, int):
        return False
    return _both(apply(math.fmod, x, 1.0) != 0, abs(x) < math.inf)


def _is_complex_power(x: Any, y: Any) -> Any:
    fraction = _is_fraction(y)
    if fraction is False:
        return False
    return _both(fraction, _both(_is_negative(x), x > -math.inf))


def _divides_power(x: Any, y: Any) -> Any:
    if kind_of(x) in (bool, int) and kind_of(y) in (bool, int):
        return False  # the power of ints has a check of its own
    negative = _is_negative(y)
    return False if negative is False else _both(negative, x == 0)


def _is_pole(x: Any) -> Any:
    return _both(x <= 0, apply(math.fmod, x, 1.0) == 0)


def _is_remainder_of_nothing(x: Any, y: Any) -> Any:
    return _either(_both(y == 0, x == x), _both(_is_infinite(x), y == y))


_MOST_EXP = math.log(sys.float_info.max)


def _too_large(most: float) -> Callable[[Any], Any]:
    return lambda x: _both(x > most, x < math.inf)


def _too_far(most: float) -> Callable[[Any], Any]:
    return lambda x: _both(abs(x) > most, abs(x) < math.inf)


def _of_base(*numbers: Any) -> Any:
    return numbers[1] <= 0 if len(numbers) > 1 else False


_DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)
_TO_INTS = (int, round, math.floor, math.ceil, math.trunc)
_WHOLE = (
    Refusal(_is_nan, (math.nan,)),
    Refusal(_is_no_int64, (math.inf,), "cannot convert a float of 2**63 or more to int of 64 bits"),
)
_NOT_POSITIVE = (Refusal(lambda x, *base: x <= 0, (0.0,)),)
_INFINITE = (Refusal(_is_infinite, (math.inf,)),)
_FAR = (Refusal(lambda x: abs(x) > 1, (2.0,)),)
_LARGE = (Refusal(_too_large(_MOST_EXP), (1e3,)),)
_HYPERBOLIC = (Refusal(_too_far(_MOST_EXP + math.log(2.0)), (1e3,)),)
_REMAINDER = (Refusal(_is_remainder_of_nothing, (1.0, 0.0)),)

REFUSED: dict[Any, tuple[Refusal, ...]] = {
    **dict.fromkeys(_DIVISIONS, (Refusal(_is_zero),)),
    **dict.fromkeys(_TO_INTS, _WHOLE),
    operator.pow: (Refusal(_is_complex_power, (-8.0, 0.5)), Refusal(_divides_power, (0.0, -1.0))),
    math.pow: (Refusal(_is_complex_power, (-8.0, 0.5)), Refusal(_divides_power, (0.0, -1.0))),
    math.lgamma: (Refusal(_is_pole, (0.0,)),),
    math.sqrt: (Refusal(_is_negative, (-1.0,)),),
    math.log: (
        *_NOT_POSITIVE, Refusal(_of_base, (1.0, 0.0)),
        Refusal(lambda x, *base: base[0] == 1 if base else False, (2.0, 1.0)),
    ),
    math.log2: _NOT_POSITIVE, math.log10: _NOT_POSITIVE,
    math.log1p: (Refusal(lambda x: x <= -1, (-1.0,)),),
    math.acos: _FAR, math.asin: _FAR,
    math.acosh: (Refusal(lambda x: x < 1, (0.0,)),),
    math.atanh: (Refusal(lambda x: abs(x) >= 1, (1.0,)),),
    math.sin: _INFINITE, math.cos: _INFINITE, math.tan: _INFINITE, math.fmod: _REMAINDER,
    math.exp: _LARGE, math.expm1: _LARGE, math.sinh: _HYPERBOLIC, math.cosh: _HYPERBOLIC,
}  # fmt: skip

set_number_check(check)
