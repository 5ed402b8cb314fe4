"""Comparisons of a jitted function: of lists and tuples part by part, where only the run knows some
of their parts, and which object one is or holds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from treadle.autograph.operators.logical import MOST_NESTED
from treadle.core.origin import at, user_origin
from treadle.jitted import list_functions
from treadle.jitted.arrays import Array, Traced, TracedSequence, as_number, direct, is_traced
from treadle.jitted.chosen_lists import is_chosen
from treadle.jitted.errors import NotStaged
from treadle.jitted.grown_lists import GrownList, of_python
from treadle.jitted.grown_lists import equal as equal_lists
from treadle.jitted.left import current, origin_of
from treadle.jitted.optional_values import MaybeNone, is_none
from treadle.jitted.pools import is_list
from treadle.jitted.run_texts import RunText, run_text
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.statements import and_, not_, or_, truth_value
from treadle.jitted.tables import Table, as_table
from treadle.jitted.written import traced
from treadle.ops.numbers.python_numbers import SymbolicNumber

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ALONE = SymbolicNumber | Traced | MaybeNone  # what compares itself

# -- what holds what -----------------------------------------------------------------------------


def in_(item: Any, container: Any) -> Any:
    container = direct(container)
    if isinstance(container, RunText):
        return container.holds(item)
    if type(container) is str and isinstance(direct(item), RunText):
        return run_text(container).holds(item)
    if isinstance(container, Table):
        return container.holds(item)
    if isinstance(container, dict | set | frozenset) and is_traced(item):
        table = as_table(container, item)
        return False if table is None else table.holds(item)
    if isinstance(container, TracedSequence) and not isinstance(item, Array):
        container = container.array()
    if isinstance(container, Array):
        return as_number((container == item).any())
    if isinstance(container, list | tuple | range) and is_traced([item, *container]):
        return or_(lambda: False, *(_equality(e, item) for e in container))
    return item in container


def is_same(a: Any, b: Any) -> bool:
    """``a is b``, of which both may have become one list or dict of the graph.

    Raises:
        NotStaged: only the run knows.
    """
    if a is b or (isinstance(a, type) and isinstance(b, type) and a == b):
        return True
    a, b = current(a), current(b)
    origin = origin_of(a)
    if is_chosen(a) or is_chosen(b) or (isinstance(origin, GrownList) and origin.others):
        raise NotStaged(
            "A variable is one of several lists, by a branch or loop that depends on array values, "
            f"and is asked which one it is{at(user_origin())}"
        )
    if isinstance(a, StackedList) and isinstance(b, StackedList):
        return a.origin is b.origin
    return a is b or (origin is not None and origin is origin_of(b))


def is_truth(value: Any, truth: bool) -> Any:
    """``value is True`` or ``value is False``, which one of NumPy's bools never is."""
    value = direct(value)
    if type(value) is not SymbolicNumber or value.kind is not bool:
        return value is truth
    return value if truth else not_(value)


# -- equality and order --------------------------------------------------------------------------


def equal(a: Any, b: Any) -> Any:
    """``a == b``, of which both may be lists or tuples, or None in some runs."""
    if isinstance(a, MaybeNone) or isinstance(b, MaybeNone):
        return _equal_or_none(a, b)
    pair = _parts(a, b)
    return a == b if pair is None else _equal_parts(*pair)


def unequal(a: Any, b: Any) -> Any:
    """``a != b``, of which both may be lists or tuples, or None in some runs."""
    if isinstance(a, MaybeNone) or isinstance(b, MaybeNone):
        return not_(_equal_or_none(a, b))
    pair = _parts(a, b)
    return a != b if pair is None else not_(_equal_parts(*pair))


def _equal_or_none(a: Any, b: Any) -> Any:
    """``a == b``, of which one is None in some runs."""
    both = and_(lambda: is_none(a), lambda: is_none(b))
    one = or_(lambda: is_none(a), lambda: is_none(b))
    return or_(
        lambda: both,
        lambda: and_(lambda: not_(one), lambda: truth_value(equal(direct(a), direct(b)))),
    )


def ordered(a: Any, symbol: str, b: Any) -> Any:
    """``a < b`` or another order, of which both may be lists or tuples: the first parts that differ
    decide, else the lengths."""
    pair = _parts(a, b)
    if pair is None:
        return _ORDERS[symbol](a, b)
    a, b = pair if "<" in symbol else pair[::-1]
    if type(a) is tuple or _few(a, b):
        return _ordered_parts(a, b, "=" in symbol)
    return traced(list_functions.is_less, _listed(a), _listed(b), "=" in symbol)


def _parts(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Two lists, or two tuples, of which only the run knows some parts; else None."""
    if isinstance(a, _ALONE) or isinstance(b, _ALONE):
        return None
    a, b = _held(a), _held(b)
    if not (type(a) is tuple and type(b) is tuple) and not (is_list(a) and is_list(b)):
        return None
    return (a, b) if a is not b and is_traced([a, b]) else None


def _held(value: Any) -> Any:
    """A list as it is now: of Python's, where it is one again."""
    value = direct(value)
    is_items = isinstance(value, StackedList) and value.items is not None
    return value.items if is_items else value


def _few(a: Any, b: Any) -> bool:
    """Whether two lists are Python's, and so short that their parts are compared one by one."""
    return type(a) is list and type(b) is list and min(len(a), len(b)) <= MOST_NESTED


def _equal_parts(a: Any, b: Any) -> Any:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) != len(b):
        return False
    if type(a) is tuple or _few(a, b):
        return and_(lambda: True, *(_equality(x, y) for x, y in zip(a, b, strict=True)))
    return equal_lists(*((a, b) if isinstance(a, TracedSequence) else (_listed(b), a)))


def _ordered_parts(a: Sequence[Any], b: Sequence[Any], or_equal: bool) -> Any:
    """Part by part: a comparison of the last ones first."""
    found: Any = len(a) <= len(b) if or_equal else len(a) < len(b)
    for x, y in reversed(list(zip(a, b, strict=False))):
        found = _is_before(x, y, found)
    return found


def _is_before(x: Any, y: Any, behind: Any) -> Any:
    """Whether a part decides, or where it does not, what the parts behind it say."""
    same = and_(_equality(x, y), lambda: behind)
    return or_(lambda: truth_value(ordered(x, "<", y)), lambda: same)


def _listed(values: Any) -> Any:
    """A list that is read at positions of the run."""
    return of_python(values) if type(values) is list and values else values


def _equality(a: Any, b: Any) -> Callable[[], Any]:
    return lambda: truth_value(equal(a, b))
