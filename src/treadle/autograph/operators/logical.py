"""and, or, not."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from treadle.autograph.operators.conditionals import if_exp
from treadle.autograph.operators.values import is_staged, truth
from treadle.ops.elementwise import logic
from treadle.ops.numbers.python_numbers import apply, is_symbolic_number

MOST_NESTED = 16  # operands that are branches inside one another; of more, some follow others


def and_(first: Callable[[], Any], *others: Callable[[], Any]) -> Any:
    """``first() and ...``: later operands are evaluated only if the earlier ones are true."""
    value = first()
    for i, other in enumerate(others):
        if is_staged(value):
            _only_bools(value)
            rest = others[i:]
            if len(rest) > MOST_NESTED:
                head = and_(lambda: value, *rest[:MOST_NESTED])  # noqa: B023
                return and_(lambda: head, *rest[MOST_NESTED:])  # noqa: B023
            return if_exp(value, lambda: _boolean(and_(*rest)), lambda: False)  # noqa: B023
        if not value:
            return value
        value = other()
    return value


def or_(first: Callable[[], Any], *others: Callable[[], Any]) -> Any:
    """``first() or ...``: later operands are evaluated only if the earlier ones are false."""
    value = first()
    for i, other in enumerate(others):
        if is_staged(value):
            _only_bools(value)
            rest = others[i:]
            if len(rest) > MOST_NESTED:
                head = or_(lambda: value, *rest[:MOST_NESTED])  # noqa: B023
                return or_(lambda: head, *rest[MOST_NESTED:])  # noqa: B023
            return if_exp(value, lambda: True, lambda: _boolean(or_(*rest)))  # noqa: B023
        if value:
            return value
        value = other()
    return value


def _only_bools(value: Any) -> None:
    """Python gives the operand itself, which for a number need not be a bool."""
    if is_symbolic_number(value) and value.kind is not bool:
        value.leave_open("an operand of `and` or `or`")


def _boolean(value: Any) -> Any:
    return value if is_staged(value) else bool(value)


def not_(value: Any) -> Any:
    """``not value``."""
    if is_symbolic_number(value):
        return apply(operator.not_, value)
    return logic.logical_not(truth(value, "not")) if is_staged(value) else not value
