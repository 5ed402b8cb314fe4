"""Numbers that are known not to be negative, whatever the run has: ``math.sqrt(dx * dx + dy * dy)``
of floats needs no check.

Ints have 64 bits here and wrap around: their sums and products are known not to be negative only
where they stay within 64 bits for all operands that there can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.graph.ir import Value
from treadle.graph.rewrite import constant_of
from treadle.ops.numbers.python_numbers import INT64, SymbolicNumber

_DEEPEST = 40  # operations behind a number that are looked at

Interval = tuple[int, int]


def is_never_negative(number: Any) -> bool:
    """Whether a number is known to be zero or more, or a NaN."""
    if type(number) is not SymbolicNumber:
        return bool(number >= 0)
    known = number.interval
    if known is not None and known[0] >= 0 and _holds(known, INT64):
        return True
    value = getattr(number.tensor(), "value", None)
    return isinstance(value, Value) and _Search().is_never_negative(value, _DEEPEST)


class _Search:
    """What is found of values, each of which may be an operand of several others."""

    def __init__(self) -> None:
        self.signs: dict[Value, bool] = {}
        self.intervals: dict[Value, Interval | None] = {}

    def is_never_negative(self, value: Value, depth: int) -> bool:
        if value.spec.dtype.kind not in "f":
            interval = self.interval(value, depth)
            return interval is not None and interval[0] >= 0
        if value not in self.signs:
            self.signs[value] = self._is_never_negative(value, depth)
        return self.signs[value]

    def _is_never_negative(self, value: Value, depth: int) -> bool:
        node = value.node
        if node is None or not depth:
            return False
        known = constant_of(value)
        if known is not None:
            return bool((known >= 0).all())
        name, inputs = node.op.name, node.inputs
        if name in _ALWAYS or (name == "multiply" and inputs[0] is inputs[1]):
            return True
        if name == "pow":
            exponent = constant_of(inputs[1])
            if exponent is not None and not (exponent % 2).any():
                return True
        of_all = inputs[1:] if name == "where" else inputs
        return name in _FROM_ALL and all(self.is_never_negative(v, depth - 1) for v in of_all)

    def interval(self, value: Value, depth: int) -> Interval | None:
        """The least and the largest value of an int, where no operation that gives it can wrap
        around; None where that is not known."""
        if value not in self.intervals:
            limits = _limits(value)
            found = self._interval(value, depth) if limits is not None else None
            if limits is not None and (found is None or not _holds(found, limits)):
                # A narrow int is within its own limits, whatever has wrapped around.
                found = limits if value.spec.dtype.size < 8 else None
            self.intervals[value] = found
        return self.intervals[value]

    def _interval(self, value: Value, depth: int) -> Interval | None:
        node = value.node
        if node is None or not depth:
            return None
        known = constant_of(value)
        if known is not None:
            return (int(known.min()), int(known.max())) if known.size else None
        name = node.op.name
        if name not in _OF_INTS:
            return None
        inputs = node.inputs[1:] if name == "where" else node.inputs
        found = [self.interval(v, depth - 1) for v in inputs]
        known_intervals = [i for i in found if i is not None]
        if len(known_intervals) < len(found):
            return None
        if name == "multiply" and inputs[0] is inputs[1]:
            ends = [end * end for end in known_intervals[0]]
            low, high = known_intervals[0]
            return 0 if low <= 0 <= high else min(ends), max(ends)
        return _OF_INTS[name](*known_intervals)


def _limits(value: Value) -> Interval | None:
    """What the dtype of a value holds, of bools and ints."""
    kind = value.spec.dtype.kind
    if kind == "b":
        return 0, 1
    if kind not in "iu":
        return None
    info = np.iinfo(value.spec.dtype.np_dtype)
    return int(info.min), int(info.max)


def _holds(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _either(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _size(a: Interval) -> Interval:
    ends = abs(a[0]), abs(a[1])
    return 0 if a[0] <= 0 <= a[1] else min(ends), max(ends)


# Operations on floats whose results are never negative, and those of which none is where no operand
# is.
_ALWAYS = frozenset({"abs", "exp", "sqrt", "square"})
_FROM_ALL = frozenset({"add", "cast", "divide", "maximum", "minimum", "multiply", "pow", "where"})
# Operations on ints: the interval of the result, as far as it does not wrap around.
_OF_INTS: dict[str, Callable[..., Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _product,
    "square": lambda a: (_size(a)[0] ** 2, _size(a)[1] ** 2),
    "abs": _size,
    "cast": lambda a: a,
    "identity": lambda a: a,
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "where": _either,
}
