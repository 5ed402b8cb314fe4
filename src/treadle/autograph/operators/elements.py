"""Loops of the graph over datasets and their iterators, which have no positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.autograph.operators.logical import and_
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.ops.collections.iterators import GraphElements, GraphIterable


class Elements:
    """Elements that a `for` pulls out of an iterator, one after another.

    Attributes:
        more: whether there is another element: a bool tensor.
        item: the next element, for the (symbolic) number of it.
        close: called after the loop.
    """

    def __init__(
        self, more: Callable[[], Any], item: Callable[[Any], Any], close: Callable[[], None]
    ) -> None:
        self.more, self.item, self.close = more, item, close


class Enumerated:
    """``enumerate`` of elements."""

    def __init__(self, source: Any, start: Any) -> None:
        self.source, self.start = source, start

    def elements(self) -> Elements:
        inner = elements_of(self.source)
        return Elements(inner.more, lambda i: (i + self.start, inner.item(i)), inner.close)


class Zipped:
    """``zip`` of elements."""

    def __init__(self, sources: tuple[Any, ...]) -> None:
        self.sources = sources

    def elements(self) -> Elements:
        parts = [elements_of(s) for s in self.sources]

        def more(first: int = 0) -> Any:
            if first == len(parts) - 1:
                return parts[first].more()
            return and_(parts[first].more, lambda: more(first + 1))

        def close() -> None:
            for part in parts:
                part.close()

        return Elements(more, lambda i: tuple(p.item(i) for p in parts), close)


def is_pulled(iterable: Any) -> bool:
    """Whether a loop of the graph pulls elements out of `iterable`."""
    if isinstance(iterable, Enumerated | Zipped):
        return True
    return context.recorder is not None and isinstance(iterable, GraphIterable)


def elements_of(iterable: Any) -> Elements:
    if isinstance(iterable, Enumerated | Zipped):
        return iterable.elements()
    found: GraphElements = iterable.in_graph()
    return Elements(found.has_next, lambda _: found.get_next(), found.close)


def length_of(iterable: Any) -> Any:
    """``len`` of a dataset; TypeError for objects that have none in Python either."""
    if isinstance(iterable, GraphIterable):
        return iterable.graph_length()
    raise TypeError(f"{type(iterable).__name__} has no len(){at(user_origin())}")


def zipped(iterables: tuple[Any, ...], strict: bool) -> Zipped:
    """``zip`` where a dataset or iterator is among the arguments."""
    for other in iterables:
        if not is_pulled(other):
            raise TypeError(
                f"zip: a dataset cannot be zipped with {type(other).__name__} in the graph; make "
                f"a dataset of it (Dataset.from_tensor_slices), or count{at(user_origin())}"
            )
    if strict:
        raise NotImplementedError(
            f"zip(strict=True) of datasets: their lengths are not known{at(user_origin())}"
        )
    return Zipped(iterables)
