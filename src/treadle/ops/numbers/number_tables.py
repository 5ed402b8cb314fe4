"""What is known of each operation on symbolic Python numbers: one record an operation.

The types of results come from Python itself, by trying numbers of the operands' types.
"""

from __future__ import annotations

import cmath
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.core.tensor import Tensor
from treadle.ops.control.raising import Raised, raise_unless
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise import (
    arithmetic,
    casting,
    comparison,
    complex_numbers,
    logic,
    powers,
    unary,
)
from treadle.ops.elementwise.python_floats import floor_quotient, hypot, log_of_base
from treadle.ops.elementwise.selection import where
from treadle.ops.numbers.terms import add_terms, is_symbolic, multiply_terms

Interval: TypeAlias = tuple[int, int]
MaybeInterval: TypeAlias = "Interval | None"
_EXACT_INTS = 2**53  # doubles hold all ints up to it


@record(frozen=True)
class Operation:
    """An operation on Python numbers.

    Attributes:
        name: for keys and messages.
        python: what it computes.
        build: ``build(*operands)`` records it in the graph, in double precision or int64.
        interval: ``interval(*intervals)`` of a result that is an int or bool, each None where it
            is not known.
        linear: ``linear(*operands)`` gives an int's normal form, or None.
        rounds_once: floating results are correctly rounded, so the program gives Python's bits.
    """

    name: str
    python: Callable[..., Any]
    build: Callable[..., Tensor]
    interval: Callable[..., MaybeInterval] | None = None
    linear: Callable[..., Any] | None = None
    rounds_once: bool = False

    def kind(self, kinds: Sequence[type], args: Sequence[Any]) -> type:
        """The type of the result.

        Raises:
            TypeError: Python refuses operands of these types.
        """
        if self.python is _chosen:
            return kinds[1]
        samples = [k(1) if is_symbolic(a) else a for k, a in zip(kinds, args, strict=True)]
        if self.python is operator.pow:
            return _kind_of_power(kinds, args, samples)
        if self.python in (operator.truediv, operator.floordiv, operator.mod) and not samples[1]:
            samples[1] = kinds[1](1)
        try:
            return type(self.python(*samples))
        except (ValueError, ArithmeticError):
            return complex if complex in kinds else float

    def is_exact(self, number: Any, surely: bool = False) -> bool:
        """Whether the program's result has the bits of Python's.

        Args:
            surely: also where products are contracted with sums, as in loops over scalars.
        """
        intervals = [_interval(a) for a in number.operands if _kind(a) in (bool, int)]
        limit = _EXACT_INTS if self.python is operator.truediv else 2**63 - 1
        fits = all(i is not None and max(map(abs, i)) <= limit for i in intervals)
        if number.kind in (bool, int) and all(_kind(a) in (bool, int) for a in number.operands):
            held = number.kind is bool or _interval(number) is not None
            whole = held and max(map(abs, _interval(number) or (0, 0))) <= 2**63 - 1
            return fits and whole and self.interval is not None
        if number.operation.python is operator.truediv:
            if _may_be_zero(number.operands[1]):
                return False  # Python raises
            if len(intervals) == 2:
                return fits
        return not surely and fits and self.rounds_once


def _kind(value: Any) -> type:
    return value.kind if is_symbolic(value) else type(value)


def _interval(value: Any) -> MaybeInterval:
    if is_symbolic(value):
        return value.interval  # type: ignore[no-any-return]
    return (int(value), int(value)) if isinstance(value, int) else None


def _may_be_zero(value: Any) -> bool:
    interval = _interval(value)
    if interval is not None:
        return interval[0] <= 0 <= interval[1]
    return bool(is_symbolic(value) or value == 0)


def _kind_of_power(kinds: Sequence[type], args: Sequence[Any], samples: Sequence[Any]) -> type:
    """``2 ** n`` is a float for a negative n."""
    if kinds[0] not in (bool, int) or kinds[1] not in (bool, int):
        return type(operator.pow(*samples))
    interval = _interval(args[1])
    if interval is not None and interval[1] < 0:
        return float
    if interval is not None and interval[0] < 0:
        values = args[1].values() if is_symbolic(args[1]) else None
        if values is None or any(v < 0 for v in values):
            raise args[1].needed("an exponent, since the type of the result depends on its sign")
    return int


# -- intervals -----------------------------------------------------------------------------------


def _from_ends(function: Callable[[int, int], int]) -> Callable[..., MaybeInterval]:
    """Of a function that is monotone in each operand."""

    def rule(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
        if a is None or b is None:
            return None
        ends = [function(x, y) for x in a for y in b]
        return min(ends), max(ends)

    return rule


def _floordiv(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    if a is None or b is None or b[0] <= 0 <= b[1]:
        return None
    return _from_ends(operator.floordiv)(a, b)


def _mod(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    if b is None or b[0] <= 0 <= b[1]:
        return None
    if b[0] < 0:
        return b[0] + 1, 0
    if a is not None and a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, b[1] - 1


def _abs(a: MaybeInterval) -> MaybeInterval:
    if a is None:
        return None
    return (0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def _pow(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    if a is None or b is None or b[0] < 0 or b[1] > 64 or a[0] < 0:
        return None
    return a[0] ** b[0] if a[0] else 0, max(a[1] ** b[1], 1)


def _select(test: MaybeInterval, a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    if a is None or b is None:
        return None
    return min(a[0], b[0]), max(a[1], b[1])


def _less(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    if a is None or b is None:
        return None
    return int(a[1] < b[0]), int(a[0] < b[1])


def _less_equal(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    if a is None or b is None:
        return None
    return int(a[1] <= b[0]), int(a[0] <= b[1])


def _equal(a: MaybeInterval, b: MaybeInterval) -> MaybeInterval:
    if a is None or b is None:
        return None
    return int(a == b and a[0] == a[1]), int(a[0] <= b[1] and b[0] <= a[1])


def _opposite(rule: Callable[..., MaybeInterval]) -> Callable[..., MaybeInterval]:
    def opposite(*intervals: MaybeInterval) -> MaybeInterval:
        found = rule(*intervals)
        return None if found is None else (1 - found[1], 1 - found[0])

    return opposite


def _same(a: MaybeInterval) -> MaybeInterval:
    return a


# -- in the graph --------------------------------------------------------------------------------


def _wide(*operands: Any, least: DType = dtypes.int64) -> list[Tensor]:
    """The operands as tensors of the widest of their types."""
    kinds = [np.dtype(_kind(a)).kind for a in operands]
    wide = least
    if "c" in kinds:
        wide = dtypes.complex128
    elif "f" in kinds:
        wide = dtypes.float64
    return [_cast(a, wide) for a in operands]


def _cast(value: Any, dtype: DType) -> Tensor:
    return casting.cast(value.tensor() if is_symbolic(value) else convert_to_tensor(
        value, {int: dtypes.int64, float: dtypes.float64}.get(type(value))), dtype)  # fmt: skip


def _by(function: Callable[..., Any], least: DType = dtypes.int64) -> Callable[..., Tensor]:
    return lambda *operands: function(*_wide(*operands, least=least))


def _float(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return _by(function, dtypes.float64)


def _bits(function: Callable[..., Any], truth: Callable[..., Any]) -> Callable[..., Tensor]:
    """``&`` and the like: of bools or of ints."""

    def build(*operands: Any) -> Tensor:
        if all(_kind(a) is bool for a in operands):
            return truth(*(_cast(a, dtypes.bool) for a in operands))  # type: ignore[no-any-return]
        return function(*_wide(*operands))  # type: ignore[no-any-return]

    return build


def _build_select(test: Any, a: Any, b: Any) -> Tensor:
    if _kind(a) is bool:
        left, right = (_cast(v, dtypes.bool) for v in (a, b))
    else:
        left, right = _wide(a, b)
    return where(_cast(test, dtypes.bool), left, right)


def _build_round(number: Any, *digits: Any) -> Tensor:
    if digits:
        raise number.needed("rounded to a number of digits")
    return unary.round(*_wide(number, least=dtypes.float64))


def _staged_ufunc(ufunc: Any) -> Callable[..., Tensor]:
    return lambda *operands: ufunc(*_wide(*operands, least=dtypes.float64))


def _shift(left: bool) -> Callable[..., Tensor]:
    """By a number of bits that is known: a product or quotient with a power of two. By another one:
    all bits go to the right where it is 64 or more, and Python refuses one below 0."""

    def build(x: Any, by: Any) -> Tensor:
        value, count = _wide(x, by)
        if type(by) is int and 0 <= by < 63:
            power = convert_to_tensor(1 << by, dtypes.int64)
            return value * power if left else value // power
        _check_not_negative(by, count)
        most = arithmetic.minimum(count, convert_to_tensor(63, dtypes.int64))
        if not left:
            return logic.right_shift(value, most)
        found = where(most == count, logic.left_shift(value, most), _cast(0, dtypes.int64))
        is_whole = comparison.equal(logic.right_shift(found, most), value)
        text = "an int shifted to the left leaves the 64 bits that ints have in a program"
        raise_unless(is_whole, Raised(OverflowError(text), []))
        return found

    return build


def _check_not_negative(by: Any, count: Tensor) -> None:
    interval = getattr(by, "interval", None)
    if interval is None or interval[0] < 0:
        enough = comparison.greater_equal(count, convert_to_tensor(0, dtypes.int64))
        raise_unless(enough, Raised(ValueError("negative shift count"), []))


# -- the operations ------------------------------------------------------------------------------


def _chosen(test: Any, a: Any, b: Any) -> Any:
    return a if test else b


def _subtract(a: Any, b: Any) -> Any:
    return add_terms(a, b, -1)


def _negate(a: Any) -> Any:
    return add_terms(0, a, -1)


def _positive(a: Any, *more: Any) -> Any:
    return None if more else add_terms(0, a)


_RECORDS = [
    Operation("+", operator.add, _by(arithmetic.add), _from_ends(operator.add), add_terms, True),
    Operation("-", operator.sub, _by(arithmetic.subtract),
              lambda a, b: None if a is None or b is None else (a[0] - b[1], a[1] - b[0]),
              _subtract, True),
    Operation("*", operator.mul, _by(arithmetic.multiply), _from_ends(operator.mul),
              multiply_terms, True),
    Operation("/", operator.truediv, _float(arithmetic.divide), rounds_once=True),
    Operation("//", operator.floordiv, _by(lambda x, y: _floor_quotient(x, y)), _floordiv),
    Operation("%", operator.mod, _by(arithmetic.mod), _mod),
    Operation("**", operator.pow, _by(powers.pow), _pow),
    Operation("<<", operator.lshift, _shift(True),
              _from_ends(lambda x, y: x << min(max(y, 0), 64))),
    Operation(">>", operator.rshift, _shift(False), _from_ends(lambda x, y: x >> max(y, 0))),
    Operation("&", operator.and_, _bits(logic.and_, logic.logical_and),
              lambda a, b: (0, min(a[1], b[1])) if a and b and min(a[0], b[0]) >= 0 else None),
    Operation("|", operator.or_, _bits(logic.or_, logic.logical_or)),
    Operation("^", operator.xor, _bits(logic.xor_, logic.logical_xor)),
    Operation("<", operator.lt, _by(comparison.less), _less, rounds_once=True),
    Operation("<=", operator.le, _by(comparison.less_equal), _less_equal, rounds_once=True),
    Operation(">", operator.gt, _by(comparison.greater), _opposite(_less_equal), rounds_once=True),
    Operation(">=", operator.ge, _by(comparison.greater_equal), _opposite(_less),
              rounds_once=True),
    Operation("==", operator.eq, _by(comparison.equal), _equal, rounds_once=True),
    Operation("!=", operator.ne, _by(comparison.not_equal), _opposite(_equal), rounds_once=True),
    Operation("negation", operator.neg, _by(unary.negative),
              lambda a: None if a is None else (-a[1], -a[0]), _negate, True),
    Operation("+x", operator.pos, _by(lambda x: x), _same, _positive, True),
    Operation("~", operator.invert, _by(lambda x: -1 - x),
              lambda a: None if a is None else (-1 - a[1], -1 - a[0])),
    Operation("not", operator.not_, lambda a: logic.logical_not(_cast(a, dtypes.bool)),
              lambda a: None if a is None else (int(a == (0, 0)), int(a[0] <= 0 <= a[1])),
              rounds_once=True),
    Operation("abs", operator.abs, _by(unary.abs), _abs, rounds_once=True),
    Operation("min", min, _by(arithmetic.minimum), _from_ends(min)),
    Operation("max", max, _by(arithmetic.maximum), _from_ends(max)),
    Operation("select", _chosen, _build_select, _select, rounds_once=True),
    Operation("int", int, lambda a: _cast(a, dtypes.int64), _same, _positive),
    Operation("float", float, lambda a: _cast(a, dtypes.float64), rounds_once=True),
    Operation("bool", bool, lambda a: _cast(a, dtypes.bool),
              lambda a: None if a is None else (int(not a[0] <= 0 <= a[1]), int(a != (0, 0))),
              rounds_once=True),
    Operation("complex", complex, lambda a, b=0: _cast(a, dtypes.complex128)
              + _cast(b, dtypes.complex128) * 1j, rounds_once=True),
    Operation("floor", math.floor, _float(unary.floor), _same, _positive),
    Operation("ceil", math.ceil, _float(unary.ceil), _same, _positive),
    Operation("trunc", math.trunc, lambda a: _cast(a, dtypes.int64), _same, _positive),
    Operation("round", round, lambda a, *digits: _build_round(a, *digits), _same, _positive),
    Operation("real", operator.attrgetter("real"), lambda a: _complex("real", a)),
    Operation("imag", operator.attrgetter("imag"), lambda a: _complex("imag", a)),
    Operation("conjugate", operator.methodcaller("conjugate"), lambda a: _complex("conj", a)),
]  # fmt: skip
SELECT = next(r for r in _RECORDS if r.python is _chosen)
SUM, PRODUCT = _RECORDS[0], _RECORDS[2]
REAL, IMAG, CONJUGATE = _RECORDS[-3:]


def _complex(name: str, number: Any) -> Tensor:
    return getattr(complex_numbers, name)(_cast(number, dtypes.complex128))  # type: ignore[no-any-return]


def _has_minus(x: Tensor) -> Tensor:
    """Whether the sign is minus, that of zeros too."""
    return (x < 0.0) | ((x == 0.0) & (1.0 / x < 0.0))  # type: ignore[no-any-return]


def _log_of_base(x: Tensor, base: float) -> Tensor:
    return unary.log(x) / math.log(base) if x.dtype.is_complex else log_of_base(x, base)


def _floor_quotient(x: Tensor, y: Tensor) -> Tensor:
    return floor_quotient(x, y) if x.dtype.is_floating else arithmetic.floordiv(x, y)


# Functions of `math` and `cmath` -> what the graph has for them.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(unary, name) for name in (
        "sqrt", "exp", "expm1", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc")},
    "log": lambda x, base=None: unary.log(x) if base is None
    else unary.log(x) / unary.log(base),
    "log2": lambda x: _log_of_base(x, 2.0),
    "log10": lambda x: _log_of_base(x, 10.0),
    "pow": powers.pow,
    "fabs": unary.abs,
    "atan2": arithmetic.atan2,
    "hypot": lambda *xs: functools.reduce(hypot, xs, _cast(0.0, dtypes.float64)),
    "degrees": lambda x: x * (180.0 / math.pi),
    "radians": lambda x: x * (math.pi / 180.0),
    "fmod": arithmetic.truncatemod,
    "copysign": lambda x, y: where(_has_minus(y), -unary.abs(x), unary.abs(x)),
    "isnan": lambda x: comparison.not_equal(x, x),
}  # fmt: skip
_ROUNDED = {"sqrt", "fabs"}  # correctly rounded wherever they are computed

_by_function: dict[Any, Operation] = {r.python: r for r in _RECORDS}
_by_function |= {abs: _by_function[operator.abs], pow: _by_function[operator.pow]}
for _module in (math, cmath):
    for _name, _function in _FUNCTIONS.items():
        if hasattr(_module, _name):
            _by_function[getattr(_module, _name)] = Operation(
                f"{_module.__name__}.{_name}", getattr(_module, _name), _float(_function),
                rounds_once=_name in _ROUNDED,
            )  # fmt: skip


def operation_of(function: Callable[..., Any]) -> Operation | None:
    """The record of a Python function of numbers; None where there is none."""
    try:
        found = _by_function.get(function)
    except TypeError:  # not hashable
        return None
    if found is None and isinstance(function, np.ufunc) and function.nout == 1:
        found = Operation(f"np.{function.__name__}", function, _staged_ufunc(function))
        _by_function[function] = found
    return found
