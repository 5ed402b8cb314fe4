"""Lists that grow in a loop or branch of the graph, such as ``found.append(x)`` under an ``if``.

Only the run knows the length of such a list. Each number or array in its elements is kept in a list
value of the graph (`ops/collections/lists.py`). An array in it has the elements that it had when it
was added: changing it afterwards is refused, as is changing it through the list.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treadle.core import dtypes, nest
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.jitted import list_functions
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    CopiedStorage,
    TracedSequence,
    as_number,
    check_kept,
    unwrapped_bound,
)
from treadle.jitted.chosen_lists import ChosenItems, items_of, same_items
from treadle.jitted.errors import NoForm, NotStaged
from treadle.jitted.forms import ARRAY, NUMBER, Form, ListPart, form_of, joined
from treadle.jitted.handed_out import handed_out, put_in, taken
from treadle.jitted.iteration import Counted
from treadle.jitted.later import later
from treadle.jitted.left import current
from treadle.jitted.listed_ints import note
from treadle.jitted.optional_values import MaybeNone
from treadle.jitted.stacked_lists import StackedList, structure_key
from treadle.jitted.storage import Storage, listed
from treadle.jitted.written import put_in_order, traced
from treadle.ops.collections import lists
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.python_numbers import select, symbolic_number


class Template:
    """The form of the elements of a list.

    Attributes:
        element: their structure, with None for every leaf.
        forms, dims: of the leaves.
        are_positions: whether they are ints of this package's, which say where others lie.

    Raises:
        NotStaged: they hold something that is no number and no array, or sizes that only the run
            knows.
    """

    are_positions = False

    def __init__(self, value: Any) -> None:
        if _wants_row(value):
            value = later.pools.any_row()
        leaves = nest.flatten(value)
        forms = [form_of(leaf) for leaf in leaves]
        self.forms = tuple(f for f in forms if f is not None)
        if not leaves or len(self.forms) < len(leaves):
            raise NotStaged(
                f"A list grows in a loop or branch that depends on array values by {value!r}, "
                f"which is no number and no array{at(user_origin())}"
            )
        self.element = nest.map_structure(lambda _: None, value)
        self.dims: list[tuple[Dim, ...]] = [
            leaf.dims if isinstance(leaf, Array) else () for leaf in leaves
        ]
        if not all(isinstance(d, int) for dims in self.dims for d in dims):
            raise NotStaged(
                "A list grows in a loop or branch that depends on array values by arrays of sizes "
                f"that only the run knows{at(user_origin())}"
            )

    @property
    def pool(self) -> Any:
        """What holds the elements, where they are rows (`pools`); else None."""
        return getattr(self.element, "pool", None)

    def settled(self) -> Template:
        """The form, with a pool of its own where elements are to be rows of one."""
        if self.pool is None or (self.pool is not later.pools.ANY and self.pool.is_around()):
            return self
        return Template(later.pools.Row(later.pools.Pool(), 0))

    @classmethod
    def of_positions(cls) -> Template:
        """The form of positions and sizes, which no user's list holds."""
        made = cls(0)
        made.are_positions = True
        return made

    @classmethod
    def of_stacked(cls, values: StackedList) -> Template:
        """The form of the elements of a list that a comprehension made."""
        made = cls.__new__(cls)
        made.element, made.forms = values.element, values.forms
        made.dims = [column.dims[1:] for column in values.columns]
        return made

    def tensors(self, value: Any) -> list[Tensor]:
        """The leaves of an element as tensors.

        Raises:
            NotStaged: it is not like the others.
        """
        value = self.fitted(value)
        leaves = nest.flatten(value)
        wide = self.joined(Template(value))
        if any(f.dtype is not w.dtype for f, w in zip(self.forms, wide.forms, strict=True)):
            raise self.unlike(value)
        check_kept(leaves)
        put_in(value)
        for leaf in leaves:
            if isinstance(leaf, Array):
                listed.storages.update(leaf.storage.roots())
        made = [form.tensor(leaf) for form, leaf in zip(self.forms, leaves, strict=True)]
        for form, tensor in zip(self.forms, made, strict=True):
            if form.kind == NUMBER and not self.are_positions:
                note(tensor)
        return made

    def fitted(self, value: Any) -> Any:
        """An element, which is a row where the others are (`pools`)."""
        return value if self.pool is None else self.pool.row_of(value)

    def joined(self, other: Template) -> Template:
        """A form that fits the elements of both.

        Raises:
            NotStaged: nothing is.
        """
        if later.pools and later.pools.ANY in (self.pool, other.pool):
            found = self if other.pool is later.pools.ANY else other
            if self.pool is None or other.pool is None:
                raise self.unlike(other.element)
            return found
        if structure_key(self.element) != structure_key(other.element) or self.dims != other.dims:
            raise self.unlike(other.element)
        made = copy.copy(self)
        try:
            made.forms = tuple(map(joined, self.forms, other.forms))
        except NoForm:
            raise self.unlike(other.element) from None
        return made

    def unlike(self, value: Any) -> NotStaged:
        return NotStaged(
            "The elements of a list that grows in a loop or branch differ in their structure, "
            f"dtypes or shapes: {value!r}{at(user_origin())}"
        )


def _wants_row(value: Any) -> bool:
    """Whether an element is a list whose length may be another one than that of others: none of a
    few numbers that make a record."""
    if type(value) is list:
        return len(value) <= 1
    if isinstance(value, StackedList):
        return type(value.length) is not int
    return isinstance(value, GrownList)


def templates(values: Sequence[Any], others: Sequence[Template] = ()) -> list[Template]:
    """The forms of elements: lists of several lengths are rows."""
    lengths = {len(v) for v in values if type(v) is list}
    are_rows = len(lengths) > 1 or any(t.pool is not None for t in others)
    if are_rows and all(type(v) is list for v in values):
        return [Template([]) for _ in values]
    return [Template(v) for v in values]


class GrownList(TracedSequence):
    """A list of a length that only the run knows.

    Attributes:
        template: the form of its elements.
        parts: for each leaf of an element the list of all of them.
        origin: the list that it is, for the one that a variable is in an iteration of a loop.
        latest: of an origin, what branches and loops have made of it (`left`).
        others: of an origin, lists that it may be in Python, and the parts that they had when a
            branch or loop made it one of them: a change of one would be missed by the others.
        missed: of an origin, says where such a change was.
        copied: of an origin, lists of Python's that it may be, with their items: a copy, to be read
            until one changes.
    """

    __slots__ = ("_parts", "copied", "latest", "missed", "origin", "others", "template")

    def __init__(
        self, template: Template, parts: Sequence[ListPart], origin: GrownList | None = None
    ) -> None:
        self.template, self._parts = template, list(parts)
        self.origin, self.latest = self if origin is None else origin, self
        self.others: list[tuple[GrownList, list[ListPart]]] = []
        self.missed = ""
        self.copied: list[tuple[Any, list[Any]]] | None = None

    @property
    def parts(self) -> list[ListPart]:
        origin = self.origin
        if not all(same_items(seen, items_of(held)) for held, seen in origin.copied or ()):
            raise self._refused_copy()
        if origin.missed or any(o.latest._parts is not seen for o, seen in origin.others):
            raise NotStaged(
                "A list that grows in a loop or branch is used after another one changed, which it "
                f"may be: give the variable a copy, list(x){origin.missed}{at(user_origin())}"
            )
        return self._parts

    @parts.setter
    def parts(self, parts: list[ListPart]) -> None:
        if self.origin.copied is not None:
            raise self._refused_copy()
        self._parts = parts
        for other, _ in self.origin.others:
            other.missed = at(user_origin())

    def is_copy_of(self, holders: Sequence[Any]) -> None:
        """The list is a copy of one of some lists of Python's."""
        self.origin = self.latest = self
        own = [h for h in holders if isinstance(h, list | dict)]
        self.copied = [(held, items_of(held)) for held in own]

    def _refused_copy(self) -> NotStaged:
        return NotStaged(
            "A variable is one of several lists of several lengths, by a branch that depends on "
            "array values, and it or one of them changes: give the variable a copy, list(x)"
            f"{at(user_origin())}"
        )

    def may_be(self, others: Sequence[GrownList]) -> None:
        """The list is one of some others in Python: reading it is right until one changes."""
        self.others = [(o, o.latest._parts) for o in others if o is not self]

    @classmethod
    def of(cls, values: Sequence[Any], template: Template) -> GrownList:
        """A list with these elements."""
        template = template.settled()
        specs = zip(template.forms, template.dims, strict=True)
        parts = [ListPart(lists.list_new(TensorSpec(d, f.dtype))) for f, d in specs]
        made = cls(template, parts)
        made.extend(values)
        return made

    @classmethod
    def of_stacked(cls, values: StackedList) -> GrownList:
        """A list with the elements of one that a comprehension made."""
        template = Template.of_stacked(values)
        return cls(template, [ListPart(lists.list_unstack(c.tensor)) for c in values.columns])

    # -- reading ---------------------------------------------------------------------------------

    @property
    def length(self) -> Any:
        return symbolic_number(
            cast(lists.list_length(self.parts[0].tensor), dtypes.int64), (0, 2**31)
        )

    def at(self, index: Any) -> Any:
        position = self._position(index)
        leaves = [
            _element(form, lists.list_get(part.tensor, position))
            for form, part in zip(self.template.forms, self.parts, strict=True)
        ]
        return handed_out(nest.pack(self.template.element, leaves))

    def __getitem__(self, key: Any) -> Any:
        return self.stacked()[key] if isinstance(key, slice) else self.at(key)

    def __len__(self) -> int:
        raise ConcreteValueError(
            "The length of a list that grows in a loop or branch is only known when the program "
            f"runs: it is asked for outside of converted code{at(user_origin())}"
        )

    def __iter__(self) -> Iterator[Any]:
        return Counted(self.length, self.at).items()

    def stacked(self) -> StackedList:
        """The elements by position, for reading."""
        columns = [Array(CopiedStorage(lists.list_stack(p.tensor), ())) for p in self.parts]
        return StackedList(self.template.element, self.template.forms, columns)

    def array(self) -> Array:
        return Array(Storage(self.stacked().array().tensor))

    def __repr__(self) -> str:
        return "<traced list of a length that only the run knows>"

    # -- changes -----------------------------------------------------------------------------

    def append(self, value: Any) -> None:
        leaves = self.template.tensors(value)
        self.parts = [
            ListPart(lists.list_push(part.tensor, leaf))
            for part, leaf in zip(self.parts, leaves, strict=True)
        ]

    def extend(self, values: Any) -> None:
        if isinstance(values, TracedSequence) and type(values.length) is not int:
            self._changed(list_functions.extended, values)
            return
        for value in values:
            self.append(value)

    def pop(self, *index: Any) -> Any:
        if index and not (type(index[0]) is int and index[0] == -1):
            return taken(self._changed(list_functions.popped, *index))
        last = taken(self.at(-1))
        size = self.length - 1
        self.parts = [
            ListPart(lists.list_truncate(part.tensor, unwrapped_bound(size))) for part in self.parts
        ]
        return last

    def clear(self) -> None:
        self.parts = [ListPart(lists.list_truncate(part.tensor, 0)) for part in self.parts]

    def _changed(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of a function that changes the list."""
        changed, result = traced(function, self.copy(), *args)
        self.parts = changed.parts
        return result

    def insert(self, index: Any, value: Any) -> None:
        self._changed(list_functions.inserted, index, value)

    def remove(self, value: Any) -> None:
        self._changed(list_functions.removed, value)

    def reverse(self) -> None:
        self._changed(list_functions.turned)

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        put_in_order(self, key, reverse)

    def index(self, value: Any, start: Any = 0) -> Any:
        return traced(list_functions.index, self, value, start)

    def count(self, value: Any) -> Any:
        return traced(list_functions.count, self, value)

    def __delitem__(self, index: Any) -> None:
        self.pop(index)

    def _position(self, index: Any) -> Tensor:
        """A position from the begin; negative ones are from the end."""
        index = as_number(index)
        return convert_to_tensor(unwrapped_bound(select(index < 0, self.length + index, index)))

    def _splice(self, part: slice, items: Any) -> None:
        """``values[part] = items``.

        Raises:
            NotStaged: the part has gaps, or is from its end to its begin.
        """
        if part.step not in (None, 1):
            raise NotStaged(
                "a part of a list that grows in a loop or branch is assigned whose step is not 1: "
                f"assign its items one by one{at(user_origin())}"
            )
        items = items.copy() if isinstance(items, TracedSequence) else list(items)
        if isinstance(items, list):
            items = of_python(items) if items else GrownList.of([], self.template)
        bounds = [b if b is None else as_number(b) for b in (part.start, part.stop)]
        self._changed(list_functions.spliced, *bounds, items)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._splice(index, value)
            return
        position = self._position(index)
        leaves = self.template.tensors(value)
        self.parts = [
            ListPart(lists.list_set(part.tensor, position, leaf))
            for part, leaf in zip(self.parts, leaves, strict=True)
        ]

    def __iadd__(self, values: Any) -> GrownList:
        self.extend(values)
        return self

    def __add__(self, values: Any) -> GrownList:
        made = self.copy()
        made.extend(values)
        return made

    def __radd__(self, values: Any) -> GrownList:
        forms = map(Template, values)
        made = GrownList.of(values, functools.reduce(Template.joined, forms, self.template))
        made.extend(self)
        return made

    def __eq__(self, other: object) -> Any:
        return equal(self, other)

    def __ne__(self, other: object) -> Any:
        return unequal(self, other)

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> GrownList:
        return GrownList(self.template, self.parts)

    def own_copy(self) -> GrownList:
        return GrownList(self.template, self.parts, self.origin)

    def readable(self) -> Any:
        pool = self.template.pool
        return self.stacked() if pool is None else pool.read(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(list, name):
            raise AttributeError(f"'list' object has no attribute {name!r}")
        raise ConcreteValueError(
            f"{name}() of a list that grows in a loop or branch that depends on array values: make "
            f"it an array{at(user_origin())}"
        )


def equal(values: TracedSequence, other: Any) -> Any:
    """``values == other`` of a list of the graph.

    Raises:
        NotStaged: the other one is a list whose elements have no common form.
    """
    other = current(other)
    if type(other) is list:
        if not other:
            return values.length == 0
        other = of_python(other)
    if not isinstance(other, StackedList) and not hasattr(type(other), "append"):
        return NotImplemented if isinstance(other, Array) else False
    return traced(list_functions.equal, values, other)


def of_python(values: Sequence[Any]) -> GrownList:
    """A list of Python's with elements as one of the graph.

    Raises:
        NotStaged: its elements have no common form.
    """
    return GrownList.of(values, functools.reduce(Template.joined, map(Template, values)))


def unequal(values: TracedSequence, other: Any) -> Any:
    found = equal(values, other)
    if found is NotImplemented:
        return found
    return not found if type(found) is bool else found == False  # noqa: E712


def _element(form: Form, tensor: Tensor) -> Any:
    return Array(CopiedStorage(tensor, ())) if form.kind == ARRAY else form.value(tensor)


def template_of(before: Any, after: Any) -> Template | None:
    """The form of the elements of a list that is `before` before a loop's body or branch and
    `after` behind it; None where it does not grow."""
    if type(before) is not list:
        return None
    if isinstance(after, GrownList):
        return after.template
    if type(after) is not list or len(after) == len(before):
        return None
    longer = after if len(after) > len(before) else before
    return functools.reduce(Template.joined, templates(longer))


def grown_like(value: Any, other: Any) -> Any:
    """A list of Python's as one of the graph, or as a row (`pools`), where `other` is one."""
    if type(value) is list and isinstance(other, GrownList):
        return GrownList.of(value, other.template)
    if type(value) is list and later.pools and isinstance(other, later.pools.Row):
        return other.pool.row_of(value)
    return value


def own_copy(value: Any) -> Any:
    """The value of a variable for a branch: a list of its own, where it grows."""
    return value.own_copy() if isinstance(value, TracedSequence) else value


def readable(value: Any) -> Any:
    """A result, with lists of known elements in place of those that grew."""
    value = value.get() if isinstance(value, ChosenItems) else current(value)
    if isinstance(value, TracedSequence):
        return value.readable()
    if type(value) in (list, tuple):
        return type(value)(readable(v) for v in value)
    if type(value) is dict:
        return {k: readable(v) for k, v in value.items()}
    if isinstance(value, MaybeNone):
        return MaybeNone(value.present, readable(value.value))
    return value


nest.register_node(
    GrownList,
    lambda value: list(value._parts),
    lambda like, parts: GrownList(like.template, parts, like.origin),
    lambda value: (structure_key(value.template.element), value.template.forms),
    composite=False,
)
