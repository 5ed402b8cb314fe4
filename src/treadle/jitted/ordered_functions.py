"""The functions of `heapq` and `bisect`, written as users write theirs: traced with a jitted
function that calls one with values of the run. Those that change a list give it back."""

from __future__ import annotations

from operator import getitem
from typing import Any


def less(a: Any, b: Any) -> Any:
    """``a < b``, of tuples too, part by part."""
    if isinstance(a, tuple):
        if len(a) == 0 or len(b) == 0:
            return len(a) < len(b)
        if len(a) == 1 and len(b) == 1:
            return less(a[0], b[0])
        return less(a[0], b[0]) or ((a[0], 0) == (b[0], 0) and less(a[1:], b[1:]))
    return a < b


def risen(heap: Any, place: Any) -> Any:
    """The heap with the item at a place moved up to where it belongs."""
    item = getitem(heap, place)
    above = (place - 1) // 2
    while place > 0 and less(item, getitem(heap, max(above, 0))):
        heap[place] = getitem(heap, above)
        place = above
        above = (place - 1) // 2
    heap[place] = item
    return heap


def sunk(heap: Any, place: Any) -> Any:
    """The heap with the item at a place moved down to where it belongs."""
    size = len(heap)
    item = getitem(heap, place)
    below = 2 * place + 1
    moving = below < size
    while moving:
        if below + 1 < size and not less(getitem(heap, below), getitem(heap, below + 1)):
            below += 1
        moving = less(getitem(heap, below), item)
        if moving:
            heap[place] = getitem(heap, below)
            place = below
            below = 2 * place + 1
            moving = below < size
    heap[place] = item
    return heap


def heappush(heap: Any, item: Any) -> Any:
    heap.append(item)
    return risen(heap, len(heap) - 1), None


def heappop(heap: Any) -> Any:
    last = heap.pop()
    item = last
    if len(heap) > 0:
        item = getitem(heap, 0)
        heap[0] = last
        heap = sunk(heap, 0)
    return heap, item


def heapreplace(heap: Any, item: Any) -> Any:
    first = getitem(heap, 0)
    heap[0] = item
    return sunk(heap, 0), first


def heappushpop(heap: Any, item: Any) -> Any:
    found = item
    if len(heap) > 0 and less(getitem(heap, 0), item):
        found = getitem(heap, 0)
        heap[0] = item
        heap = sunk(heap, 0)
    return heap, found


def heapify(heap: Any) -> Any:
    for i in range(len(heap) // 2):
        heap = sunk(heap, len(heap) // 2 - 1 - i)
    return heap, None


def nsmallest(n: Any, iterable: Any) -> Any:
    return sorted(iterable)[:n]


def nlargest(n: Any, iterable: Any) -> Any:
    return sorted(iterable, reverse=True)[:n]


def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        if less(getitem(a, middle), x):
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        if less(x, getitem(a, middle)):
            high = middle
        else:
            low = middle + 1
    return low


def inserted(a: Any, x: Any, place: Any) -> Any:
    """The list with an item put in at a place."""
    a.append(x)
    last = len(a) - 1
    for i in range(last - place):
        a[last - i] = getitem(a, last - i - 1)
    a[place] = x
    return a


def insort_left(a: Any, x: Any) -> Any:
    return inserted(a, x, bisect_left(a, x)), None


def insort_right(a: Any, x: Any) -> Any:
    return inserted(a, x, bisect_right(a, x)), None
