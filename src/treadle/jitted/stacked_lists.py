"""Lists whose elements are alike, as arrays: the results of long comprehensions.

A `StackedList` holds element i in row i of an array; tuples or lists of numbers are one array for
each of their parts. It is read by position, which may be one that only the run knows, counted,
iterated, joined, and taken as an array by NumPy's functions. An operation that changes its length
makes it a list of Python's again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from treadle.autograph.operators.undefined import Undefined
from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.jitted import making
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    TracedSequence,
    number_of,
    unwrapped_bound,
)
from treadle.jitted.errors import ChangesLength, NotStaged
from treadle.jitted.forms import ARRAY, NUMBER, Form, form_of
from treadle.jitted.handed_out import handed_out, taken
from treadle.jitted.iteration import Counted
from treadle.jitted.listed_ints import note
from treadle.jitted.storage import Storage, scopes
from treadle.jitted.written import put_in_order
from treadle.numpy_staging.dtypes import promoted
from treadle.ops.shaping.joining import concat, stack

_MOST = 2000  # elements that are taken apart into a list of Python's


class StackedList(TracedSequence):
    """A list whose elements have one structure, with the numbers and arrays in it stacked.

    Attributes:
        element: the structure of an element, with None for every leaf.
        forms: the forms of the leaves of an element.
        columns: for each leaf the array of all elements'.
        scope: the branch or loop body in which it was made.
        is_part: whether its columns are parts of another list's, which has it as an element.
        is_shared: whether it has, or is one of, lists of which one has two places (``[[0] * 3] *
            2``): each place has elements of its own here, so they are only read.
        origin: the list that this one was made again from, where a loop or branch carries its
            columns; itself where there is none.
        made_for: why a list of Python's became this one (`rows.NeedsRows`); None for others.
    """

    __slots__ = (
        "columns", "element", "forms", "is_part", "is_shared", "items", "made_for", "origin",
        "scope",
    )  # fmt: skip

    def __init__(self, element: Any, forms: Sequence[Form], columns: Sequence[Array]) -> None:
        self.element, self.forms, self.columns = element, tuple(forms), list(columns)
        self.items: list[Any] | None = None  # once it is a list of Python's again
        self.is_part = self.is_shared = False
        self.made_for: Any = None
        self.scope = scopes.innermost
        self.origin: StackedList = self

    # -- reading -----------------------------------------------------------------------------

    @property
    def length(self) -> Any:
        """The number of elements, a Python int or a symbolic one."""
        if self.items is not None:
            if self.items and isinstance(self.items[0], Undefined):  # another list by now
                self.items[0].fail()
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
        return handed_out(nest.pack(self.element, leaves))

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
            made: Array = making.array(self.items)
            return made
        return _array(self.element, self.columns)

    def __repr__(self) -> str:
        return f"<traced list of {self.columns[0].dims[0]} elements>"

    # -- changes -----------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.is_shared:
            raise ConcreteValueError(
                "a list that is in another one at two places, as in [[0] * 3] * 2, changes at a "
                "position that only the run knows: make the rows one by one, or use an array"
                f"{at(user_origin())}"
            )
        simple = self.items is None and not isinstance(index, slice)
        if simple and self._fits(value):
            leaves = nest.flatten(value)
            for form, column, leaf in zip(self.forms, self.columns, leaves, strict=True):
                column[unwrapped_bound(index)] = leaf
                if form.kind == NUMBER:
                    note(column.storage.held)
            return
        if self.made_for is not None and self.items is None and not isinstance(index, slice):
            self.made_for.widen(value)
        self.unstacked()[index] = value

    def _fits(self, value: Any) -> bool:
        """Whether a value is a number, or a structure of numbers, as the elements are."""
        try:
            nest.assert_same_structure(self.element, nest.map_structure(lambda _: None, value))
        except (TypeError, ValueError):
            return False
        found = map(form_of, nest.flatten(value))
        return all(a == b and a.kind != ARRAY for a, b in zip(self.forms, found, strict=True))

    def unstacked(self) -> list[Any]:
        """The elements as a list of Python's, which this one is from now on.

        Raises:
            ConcreteValueError: there are too many.
            ChangesLength: only the run knows how many, or which they are after a branch or loop.
        """
        found: list[Any] | None = self.items
        if self.is_part:
            raise NotStaged(
                "a list in a list that became an array changes its length, or takes another kind "
                f"of number: make it an array{at(user_origin())}"
            )
        if found is None:
            size = self.length
            if type(size) is not int:
                raise ChangesLength(
                    self.origin,
                    "a list that a comprehension made, of a length that only the run knows, "
                    f"changes its length outside of a loop: make it an array{at(user_origin())}",
                )
            if size > _MOST:
                raise ConcreteValueError(
                    f"a list of {size} elements that a comprehension made changes its length or "
                    f"takes another kind of element: make it an array{at(user_origin())}"
                )
            if self.scope is not scopes.innermost:
                raise ChangesLength(
                    self.origin,
                    "a list that a comprehension made changes in a branch or loop that depends on "
                    f"array values: make it an array{at(user_origin())}",
                )
            found = self.items = [taken(element) for element in self.counted().items()]
        return found

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        put_in_order(self, key, reverse)

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
    """``first + second`` of two lists; one of them is stacked."""
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
        return _rows(like.element, rows)
    made = StackedList(like.element, like.forms, columns)
    made.scope, made.origin, made.is_part = like.scope, like.origin, like.is_part
    made.is_shared, made.made_for = like.is_shared, like.made_for
    return made


def _rows(element: Any, columns: Sequence[list[Any]]) -> list[Any]:
    """Elements of one structure, made of the columns of their leaves."""
    if not nest.is_nested(element):
        return columns[0]
    rows = zip(*columns, strict=True)
    if type(element) is tuple and not any(map(nest.is_nested, element)):
        return list(rows)
    return [nest.pack(element, list(leaves)) for leaves in rows]


def _static(value: StackedList) -> Any:
    return None if value.items is not None else (structure_key(value.element), value.forms)


def structure_key(element: Any) -> Any:
    """Equal for elements of one structure."""
    if isinstance(element, StackedList):
        return "stacked", structure_key(element.element), element.forms
    inner = nest.children(element)
    own = type(element), id(getattr(element, "pool", None))  # rows of one pool are alike
    return inner and (own, tuple((key, structure_key(part)) for key, part in inner))


nest.register_node(
    StackedList,
    lambda value: value.columns if value.items is None else value.items,
    _built,
    _static,
    composite=False,
)
