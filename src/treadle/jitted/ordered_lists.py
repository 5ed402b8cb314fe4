"""`heapq` and `bisect` in jitted functions: on lists that only the run knows, and with values that
only it knows."""

from __future__ import annotations

import bisect
import functools
import heapq
from collections.abc import Callable
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.jitted import ordered_functions
from treadle.jitted.arrays import direct, is_traced
from treadle.jitted.becoming import NeedsList
from treadle.jitted.errors import ChangesLength
from treadle.jitted.grown_lists import GrownList, Template
from treadle.jitted.opened import is_outermost
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.storage import scopes
from treadle.jitted.written import traced


def _changing(python: Any, written: Callable[..., Any], values: Any, *args: Any) -> Any:
    """A function that changes the list `values`."""
    values = direct(values)
    if not is_traced([values, *args]):
        return python(values, *args)
    if type(values) is list and not is_outermost(values) and (values or args):
        found = [Template(v) for v in (*values, *args)]
        raise NeedsList(values, functools.reduce(Template.joined, found))
    changed, result = traced(written, _list_of(values), *args)
    if isinstance(values, GrownList):
        values.parts = changed.parts
    elif isinstance(values, StackedList) and values.items is None:
        values.columns = changed.stacked().columns
    else:
        held: Any = values.items if isinstance(values, StackedList) else values
        held[:] = changed
    return result


def _list_of(values: Any) -> Any:
    """What is changed in place of a list: one that may change its length."""
    if isinstance(values, GrownList):
        return values.copy()
    if not isinstance(values, StackedList):
        return list(values)
    if values.items is not None:
        return list(values.items)
    if values.scope is not scopes.innermost:
        raise ChangesLength(
            values.origin,
            "a list that a comprehension made changes in a branch or loop that depends on array "
            f"values{at(user_origin())}",
        )
    return GrownList.of_stacked(values)


def _reading(python: Any, written: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A function that reads a list or array."""
    if options.get("key") is not None or not is_traced([*args, *options.values()]):
        return python(*args, **options)
    return traced(written, *args, **options)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{
        python: functools.partial(_changing, python, getattr(ordered_functions, python.__name__))
        for python in (
            heapq.heapify, heapq.heappop, heapq.heappush, heapq.heappushpop, heapq.heapreplace,
            bisect.insort_left, bisect.insort_right,
        )
    },
    **{
        python: functools.partial(_reading, python, getattr(ordered_functions, python.__name__))
        for python in (
            bisect.bisect_left, bisect.bisect_right, heapq.nlargest, heapq.nsmallest,
        )
    },
}  # fmt: skip
