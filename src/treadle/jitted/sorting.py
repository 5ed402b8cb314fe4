"""``sorted``, ``list.sort``, ``min`` and ``max`` of what only the run knows: numbers, tuples of
numbers, and anything with a key of these.

Elements keep their order where their keys are equal, as Python's do, in reverse too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted import ordered_functions
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    TracedSequence,
    direct,
    is_traced,
)
from treadle.jitted.becoming import NeedsList
from treadle.jitted.branches import raise_in_branch
from treadle.jitted.comprehensions import list_comp, list_of
from treadle.jitted.errors import NotStaged
from treadle.jitted.forms import ARRAY
from treadle.jitted.grown_lists import GrownList, Template
from treadle.jitted.iteration import Counted, as_counted
from treadle.jitted.later import later
from treadle.jitted.opened import is_outermost
from treadle.jitted.operations import call_function
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.statements import for_stmt, if_exp, truth
from treadle.jitted.storage import Storage, scopes
from treadle.jitted.written import traced
from treadle.ops.shaping.joining import stack

Key = Callable[[Any], Any]


def is_of_run(source: Any, key: Key | None) -> bool:
    """Whether only the run knows how the elements of a list compare."""
    values = list(source) if isinstance(source, list | tuple | range) else [source]
    if is_traced(values):
        return True
    return key is not None and len(values) > 0 and is_traced([key(v) for v in values])


def in_order(source: Any, key: Key | None, reverse: Any) -> StackedList:
    """``sorted(source, key=key, reverse=reverse)``.

    Raises:
        NotStaged: the elements are unlike each other, or keys are no numbers.
    """
    values = _stacked(source)
    keys = values if key is None else _stacked(list_comp(lambda one: key(one), values))
    order = _order(keys, bool(reverse))
    columns = [Array(Storage(c[order].tensor)) for c in values.columns]
    return StackedList(values.element, values.forms, columns)


def _stacked(source: Any) -> StackedList:
    """A list with its elements in arrays."""
    listed = list_of(source.listed() if isinstance(source, TracedSequence) else source)
    if isinstance(listed, StackedList) and listed.items is None:
        return listed
    if isinstance(listed, GrownList):
        return listed.stacked()
    values = list(listed)
    if not values:
        raise NotStaged(f"an empty list is put in order{at(user_origin())}")
    template = functools.reduce(Template.joined, map(Template, values))
    rows = [template.tensors(value) for value in values]
    columns = [Array(Storage(stack(column))) for column in zip(*rows, strict=True)]
    return StackedList(template.element, template.forms, columns)


def _order(keys: StackedList, reverse: bool) -> Array:
    """The positions of the elements in the order of their keys."""
    if any(form.kind == ARRAY for form in keys.forms):
        raise ConcreteValueError(
            "elements with arrays in them are put in order: give a key that is a number, or a "
            f"tuple of numbers{at(user_origin())}"
        )
    columns = [c[::-1] if reverse else c for c in keys.columns]
    if len(columns) == 1:
        found: Array = call_function(np.argsort, (columns[0],), {"kind": "stable"})
    else:
        found = call_function(np.lexsort, (columns[::-1],), {})
    if not reverse:
        return found
    last = found.shape[0] - 1
    turned: Array = last - found[::-1]
    return turned


def sort(owner: Any, key: Key | None, reverse: Any) -> None:
    """``owner.sort(key=key, reverse=reverse)`` of a list that only the run knows."""
    if isinstance(owner, GrownList):
        owner.parts = GrownList.of_stacked(in_order(owner, key, reverse)).parts
        return
    if isinstance(owner, StackedList) and owner.items is None:
        made = in_order(owner, key, reverse)
        for column, new in zip(owner.columns, made.columns, strict=True):
            column[...] = new
        return
    held: Any = owner.items if isinstance(owner, StackedList) else owner
    if scopes.open and not is_outermost(held):
        raise NeedsList(held, functools.reduce(Template.joined, map(Template, held)))
    held[:] = list(in_order(held, key, reverse))


def less(a: Any, b: Any) -> Any:
    """``a < b``, of tuples too, part by part."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return traced(ordered_functions.less, a, b)
    return a < b


def best(of: str, source: Any, key: Key | None) -> Any:
    """``max(source, key=key)`` or ``min(source, key=key)``: the first of the best ones.

    Args:
        of: which of the two functions it is.

    Raises:
        ValueError: there is none, also when the program runs.
    """
    source = direct(source)
    counted = as_counted(source)
    if counted is None:
        values = list(source)
        counted = Counted(len(values), lambda i: values[i])
    if counted.size == 0:
        raise ValueError(f"{of}() iterable argument is empty{at(user_origin())}")
    if counted.size is None:
        _check_any(counted, of)
    of_one: Key = key or (lambda one: one)

    def step(one: Any, found: Any, found_key: Any) -> Any:
        one_key = of_one(one)
        test = less(found_key, one_key) if of == "max" else less(one_key, found_key)
        return if_exp(test, lambda: (one, one_key), lambda: (found, found_key))

    first = counted.item(0)
    found, found_key = first, of_one(first)
    if counted.size is None or counted.size > _FEW:
        return for_stmt(counted.rest(), step, found, found_key)[0]
    for place in range(1, counted.size):
        found, found_key = step(counted.item(place), found, found_key)
    return found


def _check_any(counted: Counted, of: str) -> None:
    """Let the program raise a ValueError where there is no element."""

    def fail() -> None:
        raise ValueError(f"{of}() iterable argument is empty")

    test = truth(counted.length <= 0)
    if isinstance(test, Tensor):
        raise_in_branch(test, fail)
    elif test:
        fail()


_FEW = 16  # elements that are compared one by one

later.sort = sort
