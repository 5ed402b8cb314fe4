"""The items of rolled loops, by position: ranges, lists, arrays, and ``enumerate``, ``zip`` and
``reversed`` of these.

Nothing is taken from an iterator while it is looked at: the items that are left in one of Python's
own iterators are read from its state for pickle.
"""

from __future__ import annotations

import builtins
import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.autograph.operators.rolled_numbers import Counting, Iterations
from treadle.core import nest
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.ops.numbers.python_numbers import ValueNeededError
from treadle.ops.numbers.tabulated import TabulatedArray, value_at
from treadle.ops.shaping.joining import stack
from treadle.ops.state import Variable

_CONTAINERS: tuple[Any, ...] = (
    list, tuple, dict, set, frozenset, collections.deque, type({}.keys()), type({}.values()),
    type({}.items()),
)  # fmt: skip
_ITERATORS: tuple[Any, ...] = (
    enumerate, zip, reversed, type(iter([])), type(iter(())), type(iter(range(0))),
    type(iter(range(2**70))), type(reversed([])), type(iter(np.zeros(1))),
)  # fmt: skip


class Items:
    """The items of a `for` loop.

    Attributes:
        size: how many there are.
        stacked: whether tensors are put together for it, which costs a copy of them.
    """

    size: int
    stacked = False
    is_open = False  # whether `size` is more than there are

    def counting(self, taken: int) -> Counting:
        """The loop's counter, once `taken` items are gone."""
        return Counting(taken, self.size, 1)

    def prepare(self) -> None:
        """Called before the loop is traced."""

    def forget(self) -> None:
        """Called where it was for nothing."""

    def item(self, iterations: Iterations) -> tuple[Any, ...]:
        """The values that the body gets in an iteration."""
        return (self.at(iterations),)

    def at(self, iterations: Iterations) -> Any:
        """The item of an iteration; the loop counts positions.

        Raises:
            ValueNeededError: the items are not alike.
        """
        raise NotImplementedError


class Numbers(Items):
    """A range."""

    def __init__(self, numbers: range) -> None:
        self.numbers, self.size = numbers, len(numbers)

    def at(self, iterations: Iterations) -> Any:
        return self.numbers.start + iterations.counter * self.numbers.step


class Range(Numbers):
    """A range that is the loop's own counter."""

    def counting(self, taken: int) -> Counting:
        left = self.numbers[taken:]
        return Counting(left.start, left.stop, left.step)

    def at(self, iterations: Iterations) -> Any:
        return iterations.counter


class SymbolicRange(Range):
    """A range with bounds that only the running program knows."""

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.bounds = start, stop, step

    def counting(self, taken: int) -> Counting:
        return Counting(*self.bounds)


class Values(Items):
    """A list of values of one structure; tensors among them are stacked before the loop."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values, self.size = values, len(values)
        self.columns: list[Any] | None = None
        self.made: list[Tensor] = []

    def prepare(self) -> None:
        if self.columns is not None:
            return
        first = self.values[0]
        try:
            for value in self.values[1:]:
                nest.assert_same_structure(first, value)
        except (TypeError, ValueError):
            raise ValueNeededError("its items differ in their structure") from None
        columns = zip(*map(nest.flatten, self.values), strict=True)
        self.columns = [self.column(c) for c in columns]
        self.stacked = bool(self.made)

    def column(self, values: Sequence[Any]) -> Any:
        first = values[0]
        if not isinstance(first, Tensor | Variable) or all(v is first for v in values):
            return values
        if any(not isinstance(v, Tensor) or v.spec != first.spec for v in values):
            kind = "are variables" if isinstance(first, Variable) else "are tensors of two types"
            raise ValueNeededError(f"its items {kind}")
        self.made.append(stack(values))
        return self.made[-1]

    def forget(self) -> None:
        for tensor in self.made:
            if isinstance(tensor, SymbolicTensor) and tensor.value.node is not None:
                node = tensor.value.node
                if node.region is not None and node in node.region.nodes:
                    node.region.nodes.remove(node)
        self.made, self.columns = [], None

    def at(self, iterations: Iterations) -> Any:
        assert self.columns is not None
        leaves = [_of_column(column, iterations) for column in self.columns]
        return nest.pack(self.values[0], leaves)


def _of_column(column: Any, iterations: Iterations) -> Any:
    if isinstance(column, Tensor):
        return column[iterations.counter]
    return value_at(_left(column, iterations), iterations)


class Rows(Items):
    """The rows of an array or eager tensor."""

    def __init__(self, whole: Any) -> None:
        self.whole, self.size = whole, len(whole)

    def at(self, iterations: Iterations) -> Any:
        if isinstance(self.whole, Tensor):
            return self.whole[iterations.counter]
        return TabulatedArray(_left(self.whole, iterations), iterations)


class Unknown(Items):
    """The items of a `while` loop: none, as it ends by a condition on Python numbers."""

    is_open = True

    def __init__(self, most: int) -> None:
        self.size = most

    def item(self, iterations: Iterations) -> tuple[Any, ...]:
        return ()


class Together(Items):
    """``zip`` of several, or ``enumerate`` of one."""

    def __init__(self, parts: Sequence[Items]) -> None:
        self.parts, self.size = parts, min(p.size for p in parts)

    def prepare(self) -> None:
        for part in self.parts:
            part.prepare()
        self.stacked = any(p.stacked for p in self.parts)

    def forget(self) -> None:
        for part in self.parts:
            part.forget()

    def at(self, iterations: Iterations) -> Any:
        return tuple(part.at(iterations) for part in self.parts)


def _left(values: Any, iterations: Iterations) -> Any:
    """The values of the iterations that the loop makes."""
    return values[iterations.counting.start :][: iterations.size]


# -- iterables with positions ------------------------------------------------------------


def items_of(iterable: Any) -> Items | None:
    """The items that are left in `iterable`; None where only Python can iterate it."""
    if type(iterable) is range:
        return Range(iterable)
    return _items(iterable, set())


def _items(iterable: Any, seen: set[int]) -> Items | None:
    kind = type(iterable)
    if kind is range:
        return Numbers(iterable)
    if kind in _ITERATORS:
        if id(iterable) in seen:  # one iterator for two: they take turns
            return None
        seen.add(id(iterable))
        return _of_iterator(iterable.__reduce__(), seen)
    if isinstance(iterable, _CONTAINERS) and kind.__iter__ in _PLAIN_ITERATION:
        return Values(iterable if isinstance(iterable, list | tuple) else list(iterable))
    if kind is np.ndarray and iterable.ndim:
        return Values(list(iterable)) if iterable.ndim == 1 else Rows(iterable)
    if isinstance(iterable, Tensor) and not iterable.is_symbolic and iterable.ndim:
        return Rows(iterable)
    return None


_PLAIN_ITERATION = {kind.__iter__ for kind in _CONTAINERS}


def _of_iterator(made: Any, seen: set[int]) -> Items | None:
    """By how pickle would make it again: a function, its arguments, and a position."""
    function, arguments, *state = made
    if function is zip:
        return _zipped([_items(a, seen) for a in arguments], bool(state))
    if function is enumerate:
        inner, first = arguments[0], arguments[1] if len(arguments) > 1 else 0
        found = _items(inner, seen)
        if found is None or type(first) is not int:
            return None
        return Together([Numbers(range(first, first + found.size)), found])
    position = state[0] if state else None
    if function is builtins.iter and len(arguments) == 1:
        return _items(_sliced(arguments[0], slice(position, None)), seen)
    if function is builtins.reversed and len(arguments) == 1 and position is not None:
        left = slice(position, None, -1) if position >= 0 else slice(0, 0)
        return _items(_sliced(arguments[0], left), seen)
    return None


def _sliced(sequence: Any, part: slice) -> Any:
    known = isinstance(sequence, list | tuple | range | np.ndarray)
    return sequence[part] if known else None


def _zipped(parts: list[Items | None], strict: bool) -> Items | None:
    found = [p for p in parts if p is not None]
    if len(found) < len(parts) or not found or (strict and len({p.size for p in found}) > 1):
        return None
    return Together(found)


def use_up(iterable: Any, count: int | None) -> None:
    """Take the items that a loop has used from an iterator: `count` of them, all for None."""
    if iter(iterable) is not iterable:
        return
    if count is None:
        collections.deque(iterable, maxlen=0)
        return
    for _ in range(count):
        next(iterable)
