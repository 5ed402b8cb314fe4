"""Numbers that are known not to be negative, whatever the run has: ``math.sqrt(dx * dx + dy * dy)``
needs no check."""

from __future__ import annotations

from typing import Any

from treadle.graph.ir import Value
from treadle.graph.rewrite import constant_of
from treadle.ops.numbers.python_numbers import SymbolicNumber

_DEEPEST = 12  # operations behind a number that are looked at


def is_never_negative(number: Any) -> bool:
    """Whether a number is known to be zero or more, or a NaN."""
    if type(number) is not SymbolicNumber:
        return bool(number >= 0)
    if number.interval is not None:
        return number.interval[0] >= 0
    value = getattr(number.tensor(), "value", None)
    return isinstance(value, Value) and _is_never_negative(value, _DEEPEST)


def _is_never_negative(value: Value, depth: int) -> bool:
    node = value.node
    if node is None or not depth:
        return False
    known = constant_of(value)
    if known is not None:
        return known.dtype.kind in "biuf" and bool((known >= 0).all())
    name, inputs = node.op.name, node.inputs
    if name in _ALWAYS or (name == "multiply" and inputs[0] is inputs[1]):
        return True
    if name == "pow":
        exponent = constant_of(inputs[1])
        if exponent is not None and exponent.dtype.kind in "iuf" and not (exponent % 2).any():
            return True
    of_all = inputs[1:] if name == "where" else inputs
    return name in _FROM_ALL and all(_is_never_negative(v, depth - 1) for v in of_all)


# Operations whose results are never negative, and those of which none is where no operand is.
_ALWAYS = frozenset({"abs", "exp", "sqrt", "square"})
_FROM_ALL = frozenset({"add", "cast", "divide", "maximum", "minimum", "multiply", "pow", "where"})
