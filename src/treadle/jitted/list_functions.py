"""What lists of the graph do besides growing at their end, written as users write theirs: traced
with a jitted function that has the list. Each gives the list back, and a result."""

from __future__ import annotations

from typing import Any


def _place(index: Any, size: Any) -> Any:
    """A position from the begin, inside the list."""
    place = index
    if place < 0:
        place += size
    return place


def popped(values: Any, index: Any) -> Any:
    size = len(values)
    place = _place(index, size)
    if place < 0 or place >= size:
        raise IndexError("pop index out of range")
    item = values[place]
    for i in range(place, size - 1):
        values[i] = values[i + 1]
    values.pop()
    return values, item


def inserted(values: Any, index: Any, item: Any) -> Any:
    size = len(values)
    place = min(max(_place(index, size), 0), size)
    values.append(item)
    for i in range(size - place):
        values[size - i] = values[size - i - 1]
    values[place] = item
    return values, None


def position(values: Any, item: Any, start: Any = 0) -> Any:
    """The first position of an item from `start` on, or -1."""
    size = len(values)
    place = start
    # In tuples: an item may be a tuple itself, of which only the program can compare the parts.
    while place < size and not (values[place], 0) == (item, 0):  # noqa: SIM201
        place += 1
    if place >= size:
        place = -1
    return place


def index(values: Any, item: Any, start: Any = 0) -> Any:
    place = position(values, item, start)
    if place < 0:
        raise ValueError("the item is not in the list")
    return place


def removed(values: Any, item: Any) -> Any:
    return popped(values, index(values, item))[0], None


def count(values: Any, item: Any) -> Any:
    found = 0
    for i in range(len(values)):
        if (values[i], 0) == (item, 0):
            found += 1
    return found


def spliced(values: Any, start: Any, stop: Any, items: Any) -> Any:
    """``values[start:stop] = items``; the positions may be None."""
    size, count = len(values), len(items)
    begin = 0 if start is None else min(max(_place(start, size), 0), size)
    end = size if stop is None else min(max(_place(stop, size), begin), size)
    longer = count - (end - begin)
    if longer > 0:
        for _ in range(longer):
            values.append(items[0])
        for k in range(size - end):
            values[size + longer - 1 - k] = values[size - 1 - k]
    elif longer < 0:
        for k in range(size - end):
            values[end + longer + k] = values[end + k]
        for _ in range(-longer):
            values.pop()
    for k in range(count):
        values[begin + k] = items[k]
    return values, None


def turned(values: Any) -> Any:
    size = len(values)
    for i in range(size // 2):
        held = values[i]
        values[i] = values[size - 1 - i]
        values[size - 1 - i] = held
    return values, None


def extended(values: Any, others: Any) -> Any:
    for item in others:
        values.append(item)
    return values, None


def equal(values: Any, others: Any) -> Any:
    """``values == others``, of two lists."""
    place, size = 0, len(values)
    same = size == len(others)
    while same and place < size:
        same = bool((values[place], 0) == (others[place], 0))
        place += 1
    return same


def is_less(values: Any, others: Any, or_equal: Any) -> Any:
    """``values < others`` of two lists, or ``<=``."""
    place, size = 0, min(len(values), len(others))
    # In tuples: see `position`.
    while place < size and (values[place], 0) == (others[place], 0):
        place += 1
    found = len(values) < len(others) or (or_equal and len(values) == len(others))
    if place < size:
        found = bool((values[place], 0) < (others[place], 0))
    return found
