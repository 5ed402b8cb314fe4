"""What rows of a pool do (`pools`), written as users write: traced with the function that has them.

`begins`, `sizes` and `rooms` say for each row where its first element lies in `data`, how many it
has and how many it has room for. A row that is full moves to the end, with twice the room.
"""

from __future__ import annotations

from operator import getitem
from typing import Any


def place_of(sizes: Any, row: Any, index: Any) -> Any:
    """A position from the begin of a row, inside it."""
    size = getitem(sizes, row)
    place = index
    if place < 0:
        place += size
    if place < 0 or place >= size:
        raise IndexError("list index out of range")
    return place


def item(begins: Any, sizes: Any, data: Any, row: Any, index: Any) -> Any:
    return getitem(data, getitem(begins, row) + place_of(sizes, row, index))


def appended(begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, value: Any) -> Any:
    size = getitem(sizes, row)
    if size == getitem(rooms, row):
        begin = getitem(begins, row)
        begins[row] = len(data)
        room = max(2 * size, 4)
        for k in range(size):
            data.append(getitem(data, begin + k))
        for _ in range(room - size):
            data.append(value)
        rooms[row] = room
    data[getitem(begins, row) + size] = value
    sizes[row] = size + 1
    return begins, sizes, rooms, data


def extended(begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, values: Any) -> Any:
    for value in values:
        begins, sizes, rooms, data = appended(begins, sizes, rooms, data, row, value)
    return begins, sizes, rooms, data


def refilled(begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, values: Any) -> Any:
    """As many other elements."""
    begin = getitem(begins, row)
    for k in range(len(values)):
        data[begin + k] = values[k]
    return begins, sizes, rooms, data


def replaced(
    begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, index: Any, value: Any
) -> Any:
    data[getitem(begins, row) + place_of(sizes, row, index)] = value
    return begins, sizes, rooms, data


def emptied(begins: Any, sizes: Any, rooms: Any, data: Any, row: Any) -> Any:
    sizes[row] = 0
    return begins, sizes, rooms, data


def popped(begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, index: Any) -> Any:
    size = getitem(sizes, row)
    if size == 0:
        raise IndexError("pop from empty list")
    place = place_of(sizes, row, index)
    begin = getitem(begins, row)
    found = getitem(data, begin + place)
    for k in range(place, size - 1):
        data[begin + k] = getitem(data, begin + k + 1)
    sizes[row] = size - 1
    return begins, sizes, rooms, data, found


def inserted(
    begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, index: Any, value: Any
) -> Any:
    size = getitem(sizes, row)
    place = index
    if place < 0:
        place += size
    place = min(max(place, 0), size)
    begins, sizes, rooms, data = appended(begins, sizes, rooms, data, row, value)
    begin = getitem(begins, row)
    for k in range(size - place):
        data[begin + size - k] = getitem(data, begin + size - k - 1)
    data[begin + place] = value
    return begins, sizes, rooms, data


def pushed(begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, value: Any, most: int) -> Any:
    """At the end of a row of at most so many elements, which forgets its first one for it."""
    size = getitem(sizes, row)
    if size < most:
        begins, sizes, rooms, data = appended(begins, sizes, rooms, data, row, value)
    elif most > 0:
        begin = getitem(begins, row)
        for k in range(size - 1):
            data[begin + k] = getitem(data, begin + k + 1)
        data[begin + size - 1] = value
    return begins, sizes, rooms, data


def pushed_left(
    begins: Any, sizes: Any, rooms: Any, data: Any, row: Any, value: Any, most: int
) -> Any:
    """At the begin of a row of at most so many elements, which forgets its last one for it."""
    size = getitem(sizes, row)
    if size < most:
        begins, sizes, rooms, data = inserted(begins, sizes, rooms, data, row, 0, value)
    elif most > 0:
        begin = getitem(begins, row)
        for k in range(size - 1):
            data[begin + size - 1 - k] = getitem(data, begin + size - 2 - k)
        data[begin] = value
    return begins, sizes, rooms, data
