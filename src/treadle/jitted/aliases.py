"""Which arrays share elements: known while tracing, or a bool of the graph.

A variable that a branch or loop gave one of several arrays has a `ChosenStorage`, with a bool of
the graph for each array. So whether two variables are one array may depend on the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, ChosenStorage, CopiedStorage
from treadle.jitted.storage import Storage
from treadle.jitted.views import View, same_views
from treadle.ops.elementwise.logic import logical_and, logical_or

Known = bool | Tensor  # a bool of the graph where only the run knows


class Place(NamedTuple):
    """A part of a storage that an array may be.

    Attributes:
        storage: holds the elements.
        views: the part; None where that is not known.
        chosen: whether the array is this part.
    """

    storage: Storage
    views: tuple[View, ...] | None
    chosen: Known


def coincide(a: Array, b: Array) -> Known:
    """Whether two arrays are one view of one storage."""
    if a.storage is b.storage:
        return same_views(a.views, b.views)
    if b.storage in a.storage.apart:
        return False
    found: Known = False
    for mine, other in _common(a, b):
        if _one_part(mine, other):
            found = either(found, both(mine.chosen, other.chosen))
    return found


def share_parts(a: Array, b: Array) -> bool:
    """Whether two arrays may share elements in another way than being one view of one storage."""
    if a.storage is b.storage:
        return not same_views(a.views, b.views)
    if b.storage in a.storage.apart:
        return False
    return not all(_one_part(mine, other) for mine, other in _common(a, b))


def _one_part(a: Place, b: Place) -> bool:
    """Whether two places of one storage are known to be the same part."""
    return a.views is not None and b.views is not None and same_views(a.views, b.views)


def reach(array: Array) -> set[Storage]:
    """All storages whose elements an array may show."""
    return {place.storage for place in _places(array)}


def _common(a: Array, b: Array) -> Iterator[tuple[Place, Place]]:
    """The places of two arrays that are of one storage."""
    known: dict[Storage, list[Place]] = {}
    for place in _places(a):
        known.setdefault(place.storage, []).append(place)
    for place in _places(b):
        for mine in known.get(place.storage, ()):
            yield mine, place


def _places(array: Array) -> Iterator[Place]:
    yield Place(array.storage, array.views, True)
    if isinstance(array.storage, ChosenStorage):
        yield Place(array.storage.own, array.views, True)
        for chosen, option in array.storage.options:
            yield Place(option.storage, (*option.views, *array.views), chosen)
    elif isinstance(array.storage, CopiedStorage):
        for source in array.storage.sources:
            yield Place(source, None, True)


def either(a: Known, b: Known) -> Known:
    if a is True or b is True:
        return True
    if a is False or b is False:
        return b if a is False else a
    return logical_or(a, b)


def both(a: Known, b: Known) -> Known:
    if a is False or b is False:
        return False
    if a is True or b is True:
        return b if a is True else a
    return logical_and(a, b)


def set_apart(a: Storage, b: Storage) -> None:
    """Note that the arrays with these storages share no elements."""
    a.apart.add(b)
    b.apart.add(a)
