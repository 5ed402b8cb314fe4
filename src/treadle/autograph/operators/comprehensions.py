"""Comprehensions and generator expressions over what may be a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.autograph.errors import StagingTypeError
from treadle.autograph.operators.collecting import collect
from treadle.autograph.operators.iteration import is_graph_iterable
from treadle.autograph.operators.streams import Stream
from treadle.core.origin import at, user_origin
from treadle.ops.collections.graph_list import GraphList


def generator(
    element: Callable[[Any], Any],
    iterable: Any,
    *conditions: Callable[[Any], Any],
    flat: bool = False,
) -> Stream:
    """``(element(x) for x in iterable if condition(x))``; with `flat` of all it gives."""
    return Stream(element, iterable, conditions, flat)


def list_comp(
    element: Callable[[Any], Any],
    iterable: Any,
    *conditions: Callable[[Any], Any],
    flat: bool = False,
) -> Any:
    """``[element(x) for x in iterable if condition(x)]``.

    A Python list, or a list of the graph where its length depends on the graph.
    """
    return collect(Stream(element, iterable, conditions, flat))


def iterable(value: Any) -> Any:
    """`value` for a Python iteration that is no loop: a tensor's rows where their number is known.

    Raises:
        StagingTypeError: only the running graph knows the number.
    """
    if not is_graph_iterable(value):
        return value
    found = collect(value)
    if isinstance(found, GraphList):
        raise StagingTypeError(
            "This comprehension is Python's own (it makes a dict or set, or has an assignment or a "
            "lambda in it) and cannot iterate over a tensor whose length is large or only known "
            f"when the graph runs: use a for loop{at(user_origin())}"
        )
    return found
