"""Lists in lists and dicts whose lengths only the run knows: ``neighbours[a].append(b)``.

All lists that one list or dict holds are rows of a `Pool`: their elements lie one behind the other
in a list of the graph, each row with room for more. What the list or dict holds, and what variables
have, is the number of a row (`Row`). So a row is one list whatever names it has; and the lists of a
pool are storages, as the elements of arrays are: branches and loops carry them on their own.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treadle.core import dtypes, nest
from treadle.core.context import context, recording
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.jitted import pool_functions
from treadle.jitted.arrays import Array, ConcreteValueError, TracedSequence, as_number
from treadle.jitted.becoming import BecomesOther, is_kept
from treadle.jitted.effects import found_by_name
from treadle.jitted.errors import NotStaged
from treadle.jitted.forms import ListPart
from treadle.jitted.grown_lists import GrownList, Template, equal, unequal
from treadle.jitted.handed_out import put_in
from treadle.jitted.iteration import Counted
from treadle.jitted.later import later
from treadle.jitted.left import current
from treadle.jitted.opened import in_python, statements_around
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.storage import Storage, scopes
from treadle.jitted.written import put_in_order, traced
from treadle.ops.collections import lists


class Pool:
    """Rows of elements.

    Attributes:
        begins, sizes, rooms: for each row where its first element lies, how many it has, and how
            many it has room for.
        columns: for each leaf of an element the list of all; none until the first one comes.
        template: the form of the elements, once there is one.
        is_read_only: whether it is a copy of lists of Python's that are found by name.
    """

    is_read_only = False

    def __init__(self) -> None:
        self.recorder, self.home = context.recorder, scopes.innermost
        ints = TensorSpec((), dtypes.int64)
        self.begins, self.sizes, self.rooms = (Storage(lists.list_new(ints)) for _ in range(3))
        self.columns: list[Storage] = []
        self.template: Template | None = None

    def is_around(self) -> bool:
        """Whether it was made where the trace is, or around it, and not in a body that is over."""
        recorder: Any = context.recorder
        while recorder is not None and recorder is not self.recorder:
            recorder = getattr(recorder, "parent", None)
        return recorder is not None

    def take(self, template: Template) -> None:
        """Be for elements of a form, where none has come yet."""
        if self.template is not None:
            return
        self.template = template
        with recording(self.recorder):
            specs = zip(template.forms, template.dims, strict=True)
            self.columns = [Storage(lists.list_new(TensorSpec(d, f.dtype))) for f, d in specs]
        for column in self.columns:
            column.home = self.home

    def new(self, values: Any = ()) -> Row:
        """A new row with elements."""
        held = [_ints(s) for s in (self.begins, self.sizes, self.rooms)]
        row = Row(self, held[0].length)
        for storage, ints in zip((self.begins, self.sizes, self.rooms), held, strict=True):
            ints.append(0)
            storage.write(ints.parts[0].tensor)
        row.extend(values)
        return row

    def row_of(self, values: Any) -> Any:
        """A list as a row, which is a copy; any other value itself."""
        values = current(values)
        if not is_list(values) or (isinstance(values, Row) and values.pool is self):
            return values
        put_in(values)
        return self.new(values)

    def parts(self) -> list[GrownList]:
        """The begins, sizes and rooms of rows, and the elements, as lists of the graph."""
        held = [_ints(s) for s in (self.begins, self.sizes, self.rooms)]
        if self.template is None:
            raise NotStaged(
                "a list in a list or dict of the run is read before any has got an element"
                f"{at(user_origin())}"
            )
        return [*held, GrownList(self.template, [ListPart(c.tensor) for c in self.columns])]

    def write(self, parts: Sequence[GrownList]) -> None:
        if self.is_read_only:
            raise NotStaged(
                "a list in a list or dict changes under another name, in a branch or loop: change "
                f"it as an item of that list or dict{at(user_origin())}"
            )
        storages = [self.begins, self.sizes, self.rooms, *self.columns]
        made = [part.tensor for held in parts for part in held.parts]
        for storage, tensor in zip(storages, made, strict=True):
            if storage.held is not tensor:
                storage.write(tensor)

    def read(self, rows: GrownList) -> RowsRead:
        """A list of rows as a part of a result."""
        return self.read_numbers(StackedList(None, rows.template.forms, rows.stacked().columns))

    def read_numbers(self, numbers: Any) -> RowsRead:
        """The rows of some numbers, or of one, as a part of a result."""
        held = [_ints(s).stacked() for s in (self.begins, self.sizes)]
        data = [] if self.template is None else [self.parts()[-1].stacked()]
        return RowsRead([numbers, *held, *data])


def _ints(storage: Storage) -> GrownList:
    return GrownList(Template.of_positions(), [ListPart(storage.tensor)])


class Row(TracedSequence):
    """A list that is in another list or a dict.

    Attributes:
        pool: holds its elements.
        number: which row of these it is.
    """

    __slots__ = ("number", "pool")

    def __init__(self, pool: Pool, number: Any) -> None:
        self.pool, self.number = pool, number

    # -- reading -----------------------------------------------------------------------------

    @property
    def length(self) -> Any:
        return _ints(self.pool.sizes).at(self.number)

    def at(self, index: Any) -> Any:
        begins, sizes, _, data = self.pool.parts()
        return traced(pool_functions.item, begins, sizes, data, self.number, as_number(index))

    def listed(self) -> Any:
        """The elements by position, as they are now."""
        return _Elements(self)

    def stacked(self) -> StackedList:
        """The elements as a list of their own."""
        begins, sizes, _, data = self.pool.parts()
        begin, size = begins.at(self.number), sizes.at(self.number)
        made: StackedList = data.stacked()[begin : begin + size]
        return made

    def __getitem__(self, key: Any) -> Any:
        return GrownList.of_stacked(self.stacked()[key]) if isinstance(key, slice) else self.at(key)

    def __len__(self) -> int:
        raise ConcreteValueError(
            "the length of a list in a list or dict is only known when the program runs: it is "
            f"asked for outside of converted code{at(user_origin())}"
        )

    def __iter__(self) -> Iterator[Any]:
        return Counted(self.length, self.listed().at).items()

    def array(self) -> Array:
        return self.stacked().array()

    def __eq__(self, other: object) -> Any:
        return True if other is self else equal(self, other)

    def __ne__(self, other: object) -> Any:
        return unequal(self, other)

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Any:
        return GrownList.of_stacked(self.stacked())

    def readable(self) -> Any:
        return self.pool.read_numbers(self.number)

    def __repr__(self) -> str:
        return "<traced list in a list or dict>"

    # -- changes -----------------------------------------------------------------------------

    def append(self, value: Any) -> None:
        self.pool.take(Template(value))
        self._changed(pool_functions.appended, self._element(value))

    def extend(self, values: Any) -> None:
        values = current(values)
        if isinstance(values, Array):
            self.pool.take(Template(values[0]))
        elif isinstance(values, TracedSequence):
            template = getattr(values, "template", None) or _template_of(values)
            self.pool.take(template)
        else:
            for value in values:
                self.append(value)
            return
        self._changed(pool_functions.extended, values)

    def pop(self, *index: Any) -> Any:
        place = as_number(index[0]) if index else -1
        *parts, found = traced(pool_functions.popped, *self._own(), self.number, place)
        self.pool.write(parts)
        return found

    def insert(self, index: Any, value: Any) -> None:
        self.pool.take(Template(value))
        self._changed(pool_functions.inserted, as_number(index), self._element(value))

    def clear(self) -> None:
        self._changed(pool_functions.emptied)

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        ordered = self.copy()
        put_in_order(ordered, key, reverse)
        self._changed(pool_functions.refilled, ordered)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            raise NotStaged(
                "a part of a list in a list or dict of the run is assigned: assign its items one "
                f"by one{at(user_origin())}"
            )
        self._changed(pool_functions.replaced, as_number(index), self._element(value))

    def __iadd__(self, values: Any) -> Row:
        self.extend(values)
        return self

    def __add__(self, values: Any) -> Any:
        return self.copy() + values

    def _element(self, value: Any) -> Any:
        """
        Raises:
            NotStaged: it is unlike the other elements.
        """
        if self.pool.template is not None:
            self.pool.template.tensors(value)
        return value

    def _own(self) -> list[GrownList]:
        return [part.copy() for part in self.pool.parts()]

    def _changed(self, function: Callable[..., Any], *args: Any) -> None:
        self.pool.write(traced(function, *self._own(), self.number, *args))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(list, name):
            raise AttributeError(f"'list' object has no attribute {name!r}")
        raise NotStaged(f"{name}() of a list in a list or dict of the run{at(user_origin())}")


class _Elements(TracedSequence):
    """The elements that a row has when it is iterated."""

    __slots__ = ("begin", "data", "row", "size")

    def __init__(self, row: Row) -> None:
        self.row = row
        begins, sizes, _, self.data = row.pool.parts()
        self.begin, self.size = begins.at(row.number), sizes.at(row.number)

    @property
    def length(self) -> Any:
        return self.size

    def at(self, index: Any) -> Any:
        return self.data.at(self.begin + index)

    def copy(self) -> Any:
        return self.row.copy()

    def array(self) -> Array:
        return self.row.array()


nest.register_node(
    Row,
    lambda row: [row.number],
    lambda like, parts: Row(like.pool, parts[0]),
    lambda row: id(row.pool),
    composite=False,
)


def _template_of(values: Any) -> Template:
    if isinstance(values, StackedList) and values.items is None:
        return Template.of_stacked(values)
    if isinstance(values, Row):
        values.pool.parts()  # or NotStaged
        assert values.pool.template is not None
        return values.pool.template
    return Template(values.at(0))


def is_list(value: Any) -> bool:
    """Whether a value is a list that a container of the graph holds as a row."""
    return type(value) is list or isinstance(value, GrownList | StackedList | Row)


class NeedsPool(BecomesOther):
    """A list of lists of several lengths is read at a position that only the run knows."""

    may_stay = True

    def __init__(self, owner: list[Any]) -> None:
        super().__init__(
            "A list of lists has an item at a position that only the run knows, in a branch or "
            f"loop in which it is no variable of the function{at(user_origin())}"
        )
        self.owner = owner

    def made(self) -> GrownList:
        pool = Pool()
        known: dict[int, Row] = {}
        for values in self.owner:
            if id(values) not in known:
                known[id(values)] = pool.new(values)
        rows = [known[id(values)] for values in self.owner]
        return GrownList.of(rows, Template(Row(pool, 0)))


class NeedsRow(BecomesOther):
    """A list grows in a branch that finds it by name, in an attribute or a function of the user's:
    it becomes a row of its own pool, which all its names mean.

    Args:
        owner: the list.
        template: the form of its elements.
        why: what is told of it where it cannot.
    """

    def __init__(self, owner: list[Any], template: Template, why: str) -> None:
        super().__init__(why)
        self.owner, self.template = owner, template

    def made(self) -> Row:
        pool = Pool()
        pool.take(self.template)
        return pool.new(self.owner)

    def is_here(self, args: Sequence[Any], begun: int) -> bool:
        if in_python.count != begun or not _finds(args, self.owner):
            return False
        # In a body that is traced only for a list that this body makes: a row from outside of it
        # would be another one in each trace of the body.
        return not any(_finds(around, self.owner) for around in statements_around())

    def put(self, args: Sequence[Any], made: Any) -> tuple[Any, ...]:
        return tuple(args)  # the list is not among them


def _finds(args: Sequence[Any], owner: list[Any]) -> bool:
    """Whether a statement finds a list by name, or in a dict of Python's that it finds or has as a
    variable."""
    for found in found_by_name(*args):
        inner = found.values() if isinstance(found, dict) else ()
        if found is owner or any(value is owner for value in inner):
            return True
    return False


def is_ragged(values: Sequence[Any]) -> bool:
    """Whether the items are lists of several lengths, or none of more than one element, to which
    others will be added."""
    lengths = {len(v) for v in values if type(v) is list}
    return len(lengths) > 1 or (bool(lengths) and max(lengths) <= 1)


def needs_pool(values: Any) -> bool:
    """Whether all items are lists, of numbers or structures, that a pool could hold."""
    if not len(values) or is_kept(values) or not all(type(v) is list for v in values):
        return False
    templates = [Template(item) for v in values for item in v if not isinstance(item, list)]
    try:
        functools.reduce(Template.joined, templates) if templates else None
    except NotStaged:
        return False
    return len(templates) == sum(map(len, values))


class RowsRead:
    """Rows in a result: lists in a list or dict."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts


def _built(like: RowsRead, parts: Sequence[Any]) -> Any:
    if not parts or not isinstance(parts[1], list):
        return RowsRead(parts)
    numbers, begins, sizes, *data = parts
    rows = numbers if isinstance(numbers, list) else [numbers]
    found = [data[0][begins[n] : begins[n] + sizes[n]] if data else [] for n in rows]
    return found if isinstance(numbers, list) else found[0]


nest.register_node(
    RowsRead, lambda value: list(value.parts), _built, lambda value: len(value.parts),
    composite=False,
)  # fmt: skip

ANY: Any = object()  # stands for a pool that is made later


def any_row() -> Row:
    return Row(ANY, 0)


later.pools = sys.modules[__name__]
