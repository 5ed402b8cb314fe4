"""Comprehensions and generator expressions over values that only the run may know.

A generator expression over an array or range is one by position (`Generated`), whose elements are
made where they are used: ``sum(x * x for x in v)`` is a loop of the graph. With conditions, or two
`for`, its elements have no positions known before (`Selected`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from treadle.autograph import operators as python_operators
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted import table_functions
from treadle.jitted.arrays import ConcreteValueError, TracedSequence, is_traced
from treadle.jitted.errors import NotStaged
from treadle.jitted.iteration import Counted, as_counted, by_position, python_counted
from treadle.jitted.stacking import collected, stacked_if
from treadle.jitted.statements import UNSTAGED, and_, truth
from treadle.jitted.written import traced

Element = Callable[[Any], Any]


class Generated(Counted):
    """A generator expression by position; it gives its elements once."""

    def __init__(self, length: Any, item: Element) -> None:
        super().__init__(length, item)
        self._left: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._left is None:
            self._left = super().items()
        return next(self._left)


class Selected:
    """A generator expression with conditions, over a source with positions.

    Args:
        element, conditions: functions of an item.
    """

    def __init__(self, element: Element, source: Counted, conditions: tuple[Element, ...]) -> None:
        self.element, self.source, self.conditions = element, source, conditions
        self._left: Iterator[Any] | None = None

    def holds(self, item: Any) -> Any:
        """Whether an item is one of those that are taken."""
        return and_(lambda: True, *(_asked(c, item) for c in self.conditions))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._left is None:
            self._left = self._taken()
        return next(self._left)

    def _taken(self) -> Iterator[Any]:
        for item in self.source.items():
            if all(known(condition(item)) for condition in self.conditions):
                yield self.element(item)


def _asked(condition: Element, item: Any) -> Callable[[], Any]:
    return lambda: condition(item)


def generator(element: Element, source: Any, *conditions: Element, flat: bool = False) -> Any:
    """``(element(x) for x in source if condition(x))``; with `flat` of all that the elements
    hold."""
    counted = as_counted(source)
    if counted is None:
        return python_operators.generator(element, source, *conditions, flat=flat)
    if flat:
        return _flattened(element, counted, conditions)
    if conditions:
        return Selected(element, counted, conditions)
    return Generated(counted.length, lambda i: element(counted.item(i)))


def _product(element: Element, counted: Counted) -> Counted | None:
    """The elements of generator expressions by position, one after the other, where all of them are
    of one length; None where they are not known to be."""
    if not counted.size:
        return None
    first = element(counted.item(0))
    size = first.size if isinstance(first, Generated) else None
    if not size:
        return None

    def item(index: Any) -> Any:
        inner = element(counted.item(index // size))
        if not isinstance(inner, Generated) or inner.size != size:
            raise NotStaged(f"the inner loops differ in their length{at(user_origin())}")
        return inner.item(index % size)

    return Counted(counted.size * size, item)


def _selected_product(
    element: Element, counted: Counted, conditions: tuple[Element, ...]
) -> Selected | None:
    """The elements of generator expressions with conditions, one after the other, by the position
    among all that may be taken; None where the inner ones are not known to be of one length."""
    if not counted.size:
        return None
    size = _inner(element(counted.item(0))).size
    if not size:
        return None

    def parts(index: Any) -> tuple[Any, Any, Any]:
        outer = counted.item(index // size)
        inner = element(outer)
        source = _inner(inner)
        if source.size != size:
            raise NotStaged(f"the inner loops differ in their length{at(user_origin())}")
        return outer, inner, source.item(index % size)

    def made(index: Any) -> Any:
        _, inner, item = parts(index)
        return inner.element(item) if isinstance(inner, Selected) else item

    def holds(index: Any) -> Any:
        outer, inner, item = parts(index)
        own = (lambda: inner.holds(item),) if isinstance(inner, Selected) else ()
        return and_(lambda: True, *(_asked(c, outer) for c in conditions), *own)

    return Selected(made, Counted(counted.size * size, lambda i: i), (holds,))


def _inner(generated: Any) -> Counted:
    """The source of an inner generator expression; one without a size for anything else."""
    if isinstance(generated, Selected):
        return generated.source
    return generated if isinstance(generated, Generated) else Counted(None, lambda i: i)


def _flattened(element: Element, counted: Counted, conditions: tuple[Element, ...]) -> Any:
    for item in counted.items():
        if all(known(condition(item)) for condition in conditions):
            yield from _iterable(element(item))


def list_comp(element: Element, source: Any, *conditions: Element, flat: bool = False) -> Any:
    """``[element(x) for x in source if condition(x)]``; with `flat` of all that the elements
    hold."""
    counted = as_counted(source)
    if counted is None and not flat and not conditions:
        counted = python_counted(source)
    if counted is not None and not flat:
        if not conditions:
            return collected(element, counted)
        return selected(Selected(element, counted, conditions))
    if counted is not None and not conditions and (product := _product(element, counted)):
        try:
            return collected(lambda item: item, product)
        except UNSTAGED:
            if product.length > _MOST_WRITTEN_OUT:
                raise
    elif counted is not None and (choice := _selected_product(element, counted, conditions)):
        return selected(choice)
    found: list[Any] = []
    for one in _iterable(source):
        if all(known(c(one)) for c in conditions):
            made = element(one)
            found.extend(_iterable(made)) if flat else found.append(made)
    return found


def dict_comp(key: Element, value: Element, source: Any, *conditions: Element) -> Any:
    """``{key(x): value(x) for x in source if condition(x)}``."""
    counted = _of_run(key, source, conditions)
    if counted is not None:
        return traced(table_functions.dict_of, counted, key, value, _holding(conditions))
    items = (x for x in _iterable(source) if all(known(c(x)) for c in conditions))
    return {key(x): value(x) for x in items}


def set_comp(element: Element, source: Any, *conditions: Element) -> Any:
    """``{element(x) for x in source if condition(x)}``."""
    counted = _of_run(element, source, conditions)
    if counted is not None:
        return traced(table_functions.set_of, counted, element, _holding(conditions))
    return {element(x) for x in _iterable(source) if all(known(c(x)) for c in conditions)}


def _of_run(key: Element, source: Any, conditions: tuple[Element, ...]) -> Counted | None:
    """A source by position, where only the run knows the keys, or which of them there are."""
    counted = as_counted(source)
    if counted is None:
        if not isinstance(source, list | tuple) or not source or not is_traced(source):
            return None
        counted = by_position(source)
    if counted is None or counted.size is None:
        return counted
    if not counted.size:
        return None
    first = counted.item(0)
    return counted if is_traced([key(first), *(c(first) for c in conditions)]) else None


def _holding(conditions: tuple[Element, ...]) -> Element:
    return lambda item: and_(lambda: True, *(_asked(c, item) for c in conditions))


def list_of(iterable: Any) -> Any:
    """``list(iterable)``."""
    if isinstance(iterable, TracedSequence):
        return iterable.copy()
    if isinstance(iterable, Selected):
        return selected(iterable)
    counted = as_counted(iterable)
    if counted is not None:
        return collected(lambda item: item, counted)
    return list(iterable)


def selected(source: Selected) -> Any:
    """``[element(item) for item in source if condition(item)]``.

    Where only the run knows which items are taken, the elements are written one behind the other
    into arrays that have room for all of them.
    """
    try:
        return list(source)
    except ConcreteValueError:
        pass
    return stacked_if(source.element, source.source, source.holds)


_MOST_WRITTEN_OUT = 2000


def _iterable(value: Any) -> Any:
    counted = as_counted(value)
    return value if counted is None else counted.items()


def known(value: Any) -> Any:
    found = truth(value)
    if isinstance(found, Tensor):
        raise ConcreteValueError(
            f"the length of a list would depend on array values{at(user_origin())}"
        )
    return found
