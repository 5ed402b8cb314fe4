"""Iteration without positions: generator expressions, comprehensions, ``filter``.

A stream passes on the items of its source, changed or left out. Over a tensor of the graph it can
only be iterated by a loop of the graph: a converted ``for``, ``sum``, ``list`` and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from treadle.autograph.errors import StagingTypeError
from treadle.autograph.operators.conditionals import if_stmt
from treadle.autograph.operators.iteration import is_graph_iterable
from treadle.autograph.operators.values import GraphIteration, is_staged
from treadle.core.origin import at, user_origin

State = tuple[Any, ...]
Repeat = Callable[..., Any]


class Stream(GraphIteration):
    """The items of `source` for which all `conditions` hold, with `element` applied.

    Args:
        element: makes an element from an item.
        source: a Python iterable, a tensor, or another object that a `for` iterates.
        conditions: functions of an item; later ones run only where the earlier ones hold.
        flat: `element` gives iterables, whose items are the stream's.
    """

    def __init__(
        self,
        element: Callable[[Any], Any],
        source: Any,
        conditions: tuple[Callable[[Any], Any], ...] = (),
        flat: bool = False,
    ) -> None:
        self.element = element
        self.source = source if is_graph_iterable(source) else iter(source)
        self.conditions = conditions
        self.flat = flat
        self._values: Iterator[Any] | None = None
        self._used = False

    @property
    def in_graph(self) -> bool:
        """Whether only a loop of the graph can iterate it."""
        source = self.source
        return source.in_graph if isinstance(source, Stream) else is_graph_iterable(source)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self.in_graph else self

    def __next__(self) -> Any:
        if self._values is None:
            self._values = self._iterate()
        return next(self._values)

    def _iterate(self) -> Iterator[Any]:
        for item in self.source:
            if all(_python_bool(condition(item)) for condition in self.conditions):
                made = self.element(item)
                yield from made if self.flat else (made,)

    def use(self) -> None:
        """Note that a loop iterates it; like Python's generators it gives its elements once."""
        if self._used and self.in_graph:
            raise StagingTypeError(
                "A generator over a tensor is iterated a second time, when Python's would be at "
                f"its end: make it again, or a list of it{at(user_origin())}"
            )
        self._used = True

    def reset(self) -> None:
        """Forget that it was iterated, which was a trial."""
        self._used = False
        if isinstance(self.source, Stream):
            self.source.reset()

    def loop(
        self, repeat: Repeat, body: Any, state: State, until: Any, places: Any, options: Any
    ) -> Any:
        """``for_stmt``, which `repeat` is, over the elements."""
        self.use()
        visit = _Visitor(self, repeat, body, until, places)
        return repeat(self.source, visit, *state, until=until, places=places, options=options)


class _Visitor:
    """The body of a loop over the source: runs `body` for each of the stream's elements.

    The loop reads its variables' names from `__code__`.
    """

    def __init__(
        self, stream: Stream, repeat: Repeat, body: Any, until: Any, places: Any
    ) -> None:
        self.stream = stream
        self.repeat = repeat
        self.body = body
        self.until = until
        self.places = places
        self.__code__ = body.__code__

    def __call__(self, item: Any, *state: Any) -> Any:
        return self.visit(item, state, self.stream.conditions)

    def visit(self, item: Any, state: State, conditions: Sequence[Any]) -> Any:
        if conditions:
            return if_stmt(
                conditions[0](item),
                lambda: self.visit(item, state, conditions[1:]),
                lambda: unchanged(state),
                places=self.places,
            )
        made = self.stream.element(item)
        if not self.stream.flat:
            return self.body(made, *state)
        return self.repeat(made, self.body, *state, until=self.until, places=self.places)


class Numbered(GraphIteration):
    """``enumerate`` of a stream over a tensor."""

    def __init__(self, stream: Stream, start: Any) -> None:
        self.stream = stream
        self.start = start

    def loop(
        self, repeat: Repeat, body: Any, state: State, until: Any, places: Any, options: Any
    ) -> Any:
        """``for_stmt``, which `repeat` is, over pairs of number and element."""
        numbered = _Counting(body)
        stop = until and (lambda number, *state: until(*state))
        result = self.stream.loop(repeat, numbered, (self.start, *state), stop, places, options)
        return unchanged(result[1:]) if state else None


class _Counting:
    """A loop's body with the number as the first of its variables."""

    def __init__(self, body: Any) -> None:
        self.body = body
        code = body.__code__
        names = ("item", "the number", *code.co_varnames[1 : code.co_argcount])
        self.__code__ = SimpleNamespace(co_varnames=names, co_argcount=len(names))

    def __call__(self, item: Any, number: Any, *state: Any) -> Any:
        after = self.body((number, item), *state)
        if not state:
            return number + 1
        return (number + 1, *(after if len(state) > 1 else (after,)))


def unchanged(state: State) -> Any:
    """The state as a loop's body returns it."""
    if not state:
        return None
    return state[0] if len(state) == 1 else state


def _python_bool(value: Any) -> Any:
    if is_staged(value):
        raise StagingTypeError(
            "A condition in this comprehension is a tensor, and what iterates it needs to know "
            "its length before the graph runs: use a list comprehension, a for loop or td.where"
            f"{at(user_origin())}"
        )
    return value
