"""Comprehensions as loops of the graph that write each element into a row of an array.

Elements that are unlike each other are made one by one, in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import dtypes, nest
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import (
    Array,
    CopiedStorage,
    check_kept,
    is_traced,
    unwrapped_bound,
)
from treadle.jitted.effects import left_alone
from treadle.jitted.errors import NotStaged
from treadle.jitted.forms import form_of
from treadle.jitted.iteration import Counted
from treadle.jitted.listed_ints import note
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.statements import UNSTAGED, if_exp, staged_for
from treadle.jitted.storage import Storage, scope, scopes
from treadle.ops.numbers.python_numbers import SymbolicNumber, extreme, symbolic_number
from treadle.ops.shaping.creation import zeros

_FEWEST = 16  # elements that a loop of the graph makes; fewer are written out
_MOST = 2000  # elements that are written out


def collected(element: Callable[[Any], Any], counted: Counted) -> Any:
    """``[element(item) for item in counted]``: stacked where it is long and the elements, which
    only the run knows, are alike; else a list of Python's."""
    found: list[Any] = []
    if counted.size is None:
        example = _example(element, counted)
    else:
        # Values known while tracing stay Python's: look at the first elements.
        for index in range(counted.size):
            found.append(element(counted.item(index)))
            if is_traced(found[-1]) or index >= _FEWEST:
                break
        rest = counted.size - len(found)
        if not found or rest < _FEWEST or not is_traced(found[-1]):
            return found + [element(counted.item(len(found) + i)) for i in range(rest)]
        example = _Example(found[-1])
    try:
        return _Stacking(element, counted, found, example).made()
    except UNSTAGED:
        if counted.size is None or counted.size > _MOST:
            raise
    return found + [element(counted.item(i)) for i in range(len(found), counted.size)]


def stacked_if(
    element: Callable[[Any], Any], counted: Counted, holds: Callable[[Any], Any]
) -> StackedList:
    """``[element(item) for item in counted if holds(item)]``, of a length that the run knows."""
    stacking = _Stacking(element, counted, [], _example(element, counted))

    def body(index: Any, count: Any) -> Any:
        item = counted.item(index)

        def taken() -> Any:
            stacking.put(count, element(item))
            return count + 1

        return if_exp(holds(item), taken, lambda: count)

    with left_alone(element):
        count = staged_for(Counted(counted.length, lambda i: i), body, 0)
    made = stacking.finished()
    return made if type(count) is int and count == counted.size else made[:count]


class _Example:
    """The structure and forms of an element.

    Attributes:
        structure: with None for every leaf.
        forms, dims: of the leaves.

    Raises:
        NotStaged: it holds something that is no number and no array.
    """

    def __init__(self, value: Any) -> None:
        leaves = nest.flatten(value)
        forms = [form_of(leaf) for leaf in leaves]
        self.forms = [f for f in forms if f is not None]
        if not leaves or len(self.forms) < len(leaves):
            raise NotStaged(f"a list of {value!r} cannot be an array{at(user_origin())}")
        self.structure = nest.map_structure(lambda _: None, value)
        self.dims = [leaf.dims if isinstance(leaf, Array) else () for leaf in leaves]

    def is_like(self, other: _Example) -> bool:
        """Whether elements like both can be in one list."""
        try:
            nest.assert_same_structure(self.structure, other.structure)
        except (TypeError, ValueError):
            return False
        return self.forms == other.forms and self.dims == other.dims


def _example(element: Callable[[Any], Any], counted: Counted) -> _Example:
    """The form of an element, found by tracing one in a region that is thrown away."""
    builder: Any = context.recorder
    found: list[_Example] = []

    def run(position: Tensor) -> list[Any]:
        with taping(()):
            index = symbolic_number(position, (0, _FARTHEST))
            found.append(_Example(element(counted.item(index))))
        return []

    with left_alone(element), scope():
        builder.trace_region(run, [TensorSpec((), dtypes.int64)])
    return found[0]


class _Stacking:
    """Makes a list by a loop that writes its elements into the rows of arrays.

    Args:
        found: the first elements, which are made already.
        example: the form of an element.
    """

    def __init__(
        self, element: Callable[[Any], Any], counted: Counted, found: list[Any], example: _Example
    ) -> None:
        self.element, self.counted, self.found, self.example = element, counted, found, example
        self.sources: set[Storage] = set()  # that elements are parts of
        size: Any = counted.size
        if size is None:
            size = extreme(max, 0, counted.length)
        self.columns = [
            Array(Storage(zeros([unwrapped_bound(size), *dims], form.dtype)))
            for form, dims in zip(example.forms, example.dims, strict=True)
        ]

    def made(self) -> StackedList:
        start = len(self.found)
        for i, value in enumerate(self.found):
            self.put(i, value)

        def body(index: Any) -> None:
            place = index + start
            self.put(place, self.element(self.counted.item(place)))

        with left_alone(self.element):
            staged_for(Counted(self.counted.length - start, lambda i: i), body)
        return self.finished()

    def finished(self) -> StackedList:
        """The list, once the rows are written."""
        columns = [self.column(c) for c in self.columns]
        return StackedList(self.example.structure, self.example.forms, columns)

    def put(self, index: Any, value: Any) -> None:
        """Write an element into row `index`.

        Raises:
            NotStaged: it is not like the example.
        """
        if not self.example.is_like(_Example(value)):
            raise NotStaged(
                "the elements of a list differ in their structure, dtypes or shapes"
                f"{at(user_origin())}"
            )
        inside, leaves = scopes.innermost, nest.flatten(value)
        check_kept(leaves)
        for column, leaf in zip(self.columns, leaves, strict=True):
            if isinstance(leaf, Array) and inside is not None and leaf.storage.home is not inside:
                self.sources.update(leaf.storage.roots())
            column[unwrapped_bound(index)] = leaf
            if type(leaf) is SymbolicNumber:
                note(column.storage.held)

    def column(self, column: Array) -> Array:
        """The rows; where they are parts of other arrays, they are right until these change."""
        if not self.sources:
            return column
        size = self.counted.size
        if size is not None and size <= _MOST_PARTS:
            raise NotStaged("the elements are parts of arrays, which few names can follow")
        return Array(CopiedStorage(column.tensor, list(self.sources)))


_FARTHEST = 2**62
_MOST_PARTS = 100  # parts of other arrays that a list of Python's holds
