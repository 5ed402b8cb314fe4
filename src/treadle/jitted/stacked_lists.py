"""Lists whose elements are alike, as arrays: what long comprehensions make in a jitted function.

``[f(x) for x in xs]`` over an array, a range or a long list becomes a loop of the graph that writes
each element into row i of an array; a tuple or list of numbers becomes one array for each of its
parts. Such a `StackedList` is read by position, which may be one that only the run knows, counted,
iterated, joined, and taken as an array by NumPy's functions. What changes its length makes it a
list of Python's again. Elements that are unlike each other are made one by one, in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    CopiedStorage,
    TracedSequence,
    is_traced,
    number_of,
    unwrapped_bound,
)
from treadle.jitted.effects import left_alone
from treadle.jitted.forms import ARRAY, NUMBER, Form, NotStaged, form_of
from treadle.jitted.iteration import Counted
from treadle.jitted.statements import UNSTAGED, if_exp, staged_for
from treadle.jitted.storage import Storage, scope, scopes
from treadle.ops.creation import zeros
from treadle.ops.joining import concat, stack
from treadle.ops.numpy_dtypes import promoted
from treadle.ops.python_numbers import symbolic_number

_FEWEST = 16  # elements that a loop of the graph makes; fewer are written out
_MOST = 2000  # elements that are taken apart into a list of Python's


class StackedList(TracedSequence):
    """A list whose elements have one structure, with the numbers and arrays in it stacked.

    Attributes:
        element: the structure of an element, with None for every leaf.
        forms: what the leaves of an element are.
        columns: for each leaf the array of all elements'.
        scope: the branch or loop body in which it was made.
    """

    __slots__ = ("columns", "element", "forms", "items", "scope")

    def __init__(self, element: Any, forms: Sequence[Form], columns: Sequence[Array]) -> None:
        self.element, self.forms, self.columns = element, tuple(forms), list(columns)
        self.items: list[Any] | None = None  # once it is a list of Python's again
        self.scope = scopes.innermost

    # -- reading -----------------------------------------------------------------------------

    @property
    def length(self) -> Any:
        """The number of elements, a Python int or a symbolic one."""
        if self.items is not None:
            return len(self.items)
        return number_of(self.columns[0].dims[0])

    def at(self, index: Any) -> Any:
        """The element at a position."""
        if self.items is not None:
            return self.items[index]
        index = unwrapped_bound(index)
        leaves = [
            column[index] if form.kind == ARRAY else form.value(column[index].tensor)
            for form, column in zip(self.forms, self.columns, strict=True)
        ]
        return nest.pack(self.element, leaves)

    def __getitem__(self, key: Any) -> Any:
        if self.items is not None:
            return self.items[key]
        if isinstance(key, slice):
            copies = [Array(Storage(column[key].tensor)) for column in self.columns]
            return StackedList(self.element, self.forms, copies)
        return self.at(key)

    def __len__(self) -> int:
        length = self.length
        if type(length) is not int:
            raise ConcreteValueError(
                "the length of this list is only known when the program runs: it is asked for "
                f"outside of converted code{at(user_origin())}"
            )
        return length

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items) if self.items is not None else self.counted().items()

    def counted(self) -> Counted:
        """The elements by position."""
        return Counted(self.length, self.at)

    def array(self) -> Array:
        """``np.array`` of the list."""
        if self.items is not None:
            from treadle.jitted.making import array

            made: Array = array(self.items)
            return made
        return _array(self.element, self.columns)

    def __repr__(self) -> str:
        return f"<traced list of {self.columns[0].dims[0]} elements>"

    # -- changes -----------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        simple = self.items is None and not isinstance(index, slice)
        if simple and self._fits(value):
            for column, leaf in zip(self.columns, nest.flatten(value), strict=True):
                column[unwrapped_bound(index)] = leaf
            return
        self.unstacked()[index] = value

    def _fits(self, value: Any) -> bool:
        """Whether a value is a number, or a structure of such, as the elements are."""
        try:
            nest.assert_same_structure(self.element, nest.map_structure(lambda _: None, value))
        except (TypeError, ValueError):
            return False
        found = map(form_of, nest.flatten(value))
        return all(a == b and a.kind != ARRAY for a, b in zip(self.forms, found, strict=True))

    def unstacked(self) -> list[Any]:
        """The elements as a list of Python's, which this one is from now on.

        Raises:
            ConcreteValueError: there are too many, or only the run knows how many.
        """
        found: list[Any] | None = self.items
        if found is None:
            size = len(self)
            if size > _MOST:
                raise ConcreteValueError(
                    f"a list of {size} elements that a comprehension made changes its length or "
                    f"takes another kind of element: make it an array{at(user_origin())}"
                )
            if self.scope is not scopes.innermost:
                raise ConcreteValueError(
                    "a list that a comprehension made changes in a branch or loop that depends on "
                    f"array values: make it an array{at(user_origin())}"
                )
            found = self.items = list(self.counted().items())
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(list, name):
            raise AttributeError(f"'list' object has no attribute {name!r}")
        return getattr(self.unstacked(), name)

    def copy(self) -> Any:
        """A list with the same elements."""
        return list(self.items) if self.items is not None else self[:]

    def __add__(self, other: Any) -> Any:
        return joined(self, other)

    def __radd__(self, other: Any) -> Any:
        return joined(other, self)

    def __iadd__(self, other: Any) -> Any:
        self.unstacked().extend(other)
        return self

    def __mul__(self, times: Any) -> Any:
        return list(self) * times

    __rmul__ = __mul__

    def __eq__(self, other: object) -> Any:
        return list(self) == other

    __hash__ = None  # type: ignore[assignment]


def _array(element: Any, columns: Sequence[Array], depth: int = 0) -> Array:
    """The elements of a structure's leaves as one array, its parts along axis depth + 1."""
    if isinstance(element, StackedList):
        return _array(element.element, columns, depth + 1)
    if not isinstance(element, list | tuple):
        return columns[0]
    parts, rest = [], list(columns)
    for part in element:
        count = _leaves(part)
        parts.append(_array(part, rest[:count], depth).tensor)
        del rest[:count]
    return Array(Storage(stack(promoted(parts), depth + 1)))


def _leaves(structure: Any) -> int:
    return len(nest.flatten(structure))


def joined(first: Any, second: Any) -> Any:
    """``first + second`` of two lists, of which one is stacked."""
    kinds = StackedList, list
    if not isinstance(first, kinds) or not isinstance(second, kinds):
        return NotImplemented
    if isinstance(first, StackedList) and isinstance(second, StackedList):
        same = first.items is None and second.items is None and first.forms == second.forms
        if same and _same_rows(first, second):
            pairs = zip(first.columns, second.columns, strict=True)
            columns = [Array(Storage(concat([a.tensor, b.tensor], 0))) for a, b in pairs]
            return StackedList(first.element, first.forms, columns)
    return [*first, *second]


def _same_rows(first: StackedList, second: StackedList) -> bool:
    try:
        nest.assert_same_structure(first.element, second.element)
    except (TypeError, ValueError):
        return False
    pairs = zip(first.columns, second.columns, strict=True)
    return all(a.dims[1:] == b.dims[1:] for a, b in pairs)


# -- made of comprehensions ----------------------------------------------------------------------


def collected(element: Callable[[Any], Any], counted: Counted) -> Any:
    """``[element(item) for item in counted]``: stacked where it is long and the elements, which
    only the run knows, are alike; else a list of Python's."""
    found: list[Any] = []
    if counted.size is None:
        example = _example(element, counted)
    else:
        # What is known while tracing stays Python's own: see what the first elements are.
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
    """What an element is like.

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
    """What an element is like, found by tracing one in a region that is thrown away."""
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
        example: what an element is like.
    """

    def __init__(
        self, element: Callable[[Any], Any], counted: Counted, found: list[Any], example: _Example
    ) -> None:
        self.element, self.counted, self.found, self.example = element, counted, found, example
        self.sources: set[Storage] = set()  # of which elements are parts
        size: Any = counted.length if counted.size is None else counted.size
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
        inside = scopes.innermost
        for column, leaf in zip(self.columns, nest.flatten(value), strict=True):
            if isinstance(leaf, Array) and inside is not None and leaf.storage.home is not inside:
                self.sources.update(leaf.storage.roots())
            column[unwrapped_bound(index)] = leaf

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


# -- structures ----------------------------------------------------------------------------------


def _built(like: StackedList, columns: list[Any]) -> Any:
    """A list like another one with other columns; a list of Python's of a program's results."""
    if like.items is not None:
        return columns
    if columns and isinstance(columns[0], np.ndarray):
        rows = [
            column.tolist() if form.kind == NUMBER else list(column)
            for form, column in zip(like.forms, columns, strict=True)
        ]
        return [nest.pack(like.element, list(leaves)) for leaves in zip(*rows, strict=True)]
    made = StackedList(like.element, like.forms, columns)
    made.scope = like.scope
    return made


def _static(value: StackedList) -> Any:
    return None if value.items is not None else (_key(value.element), value.forms)


def _key(element: Any) -> Any:
    if isinstance(element, StackedList):
        return "stacked", _key(element.element), element.forms
    inner = nest.children(element)
    return inner and (type(element), tuple((key, _key(part)) for key, part in inner))


nest.register_node(
    StackedList,
    lambda value: value.columns if value.items is None else value.items,
    _built,
    _static,
)
