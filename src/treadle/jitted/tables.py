"""Dicts and sets with keys that only the run knows: ``count[x] = count.get(x, 0) + 1`` in a loop.

A dict or set of Python's becomes a `Table` before the outermost branch or loop that gives it such a
key. Its entries are lists of the graph, with a table of hashes beside them (`table_functions`).
Keys are numbers, or tuples of numbers; values are what lists of the graph hold.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.jitted import table_functions
from treadle.jitted.arrays import Array, TracedSequence, is_traced
from treadle.jitted.becoming import BecomesOther
from treadle.jitted.errors import NotStaged
from treadle.jitted.forms import Form, ListPart
from treadle.jitted.grown_lists import GrownList, Template, templates
from treadle.jitted.iteration import Counted
from treadle.jitted.key_hashes import hash_of, hashes_of
from treadle.jitted.left import current, leave
from treadle.jitted.opened import is_from_outside, is_outermost
from treadle.jitted.run_texts import RunText, run_text
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.storage import scopes
from treadle.jitted.written import traced
from treadle.ops.collections import lists
from treadle.ops.conversion import convert_to_tensor

_FEWEST_SLOTS = 8


class Table(TracedSequence):
    """A dict, or a set, whose keys only the run knows.

    Attributes:
        keys_, values_: the entries in the order in which they came; a set has bools as values.
        alive: for each entry whether it is there still.
        hashes: of the keys.
        slots: positions of entries by their hash, or -1.
        count: the number of entries that are there.
        is_set: whether it is a set.
        default: the value that a key begins with, of a `defaultdict` or `Counter`; else None.
        is_counter: whether it is a `Counter`, which has 0 for a key that is not there.
        origin: the table that it is, for the one that a variable is in an iteration of a loop.
        latest: of an origin, what branches and loops have made of it (`left`).
        scope: the branch or body in which this object was made, and may change.
        missed: of an origin, says where a key may have been missed.
    """

    __slots__ = (
        "alive", "count", "default", "hashes", "is_counter", "is_set", "keys_", "latest",
        "missed", "origin", "scope", "slots", "values_",
    )  # fmt: skip

    def __init__(self, is_set: bool, parts: Sequence[Any], origin: Table | None = None) -> None:
        self.is_set, self.origin, self.latest = is_set, origin or self, self
        self.scope, self.missed = scopes.innermost, ""
        self.default: Any = None if origin is None else origin.default
        self.is_counter: bool = origin is not None and origin.is_counter
        self._take(parts)

    @classmethod
    def of(cls, entries: Iterable[Any], key: Any, value: Any, is_set: bool) -> Table:
        """A table with entries, of such keys and values.

        Args:
            entries: pairs of keys and values.
            key, value: templates.
        """
        entries = list(entries)
        if entries and not is_traced([part for entry in entries for part in entry]):
            return cls._known(entries, key, value, is_set)
        ints, bools = Template.of_positions(), Template(True)
        slots = GrownList.of([-1] * _FEWEST_SLOTS, ints)
        empty = [GrownList.of([], t) for t in (key, value, bools)]
        made = cls(is_set, [*empty, slots, GrownList.of([], ints), 0])
        for one, held in entries:
            made[one] = held
        return made

    @classmethod
    def _known(cls, entries: Sequence[Any], key: Template, value: Template, is_set: bool) -> Table:
        """A table with entries that are known while the function is traced: constants."""
        keys = _columns([one for one, _ in entries], key)
        hashes = hashes_of(keys)
        slots = np.full(max(_FEWEST_SLOTS, 1 << (2 * len(entries)).bit_length()), -1)
        for entry, hashed in enumerate(hashes):
            place = hashed % len(slots)
            while slots[place] >= 0:
                place = (place + 1) % len(slots)
            slots[place] = entry
        ints, bools = Template.of_positions(), Template(True)
        columns = [
            (key, keys), (value, _columns([held for _, held in entries], value)),
            (bools, [np.full(len(entries), True)]), (ints, [slots]), (ints, [hashes]),
        ]  # fmt: skip
        parts = [GrownList(template, [_list_of(c) for c in made]) for template, made in columns]
        return cls(is_set, [*parts, len(entries)])

    def _take(self, parts: Sequence[Any]) -> None:
        self.keys_, self.values_, self.alive, self.slots, self.hashes, self.count = parts

    def parts(self) -> list[Any]:
        return [self.keys_, self.values_, self.alive, self.slots, self.hashes, self.count]

    @property
    def length(self) -> Any:
        self._check_missed()
        return self.count

    def note_missed(self) -> None:
        """A ``defaultdict(list)`` was read where it cannot get the key, as Python's would: asking
        which keys it has would be wrong from now on."""
        self.origin.missed = at(user_origin())

    def _check_missed(self) -> None:
        if self.origin.missed:
            raise NotStaged(
                "The keys of a defaultdict(list) are asked for, which may have got one where it "
                f"was read, in a branch or loop that does not change it{self.origin.missed}: read "
                f"it with .get(key, []) there{at(user_origin())}"
            )

    def copy(self) -> Table:
        made = Table(self.is_set, self._copies())
        made.default, made.is_counter = self.default, self.is_counter
        return made

    def may_be(self, others: Sequence[Any]) -> None:
        """
        Raises:
            NotStaged: the dict or set is one of several.
        """
        if len({id(o) for o in others}) > 1:
            raise NotStaged(
                "A variable is one of several dicts or sets with keys that only the run knows: "
                f"give it a copy{at(user_origin())}"
            )

    def own_copy(self) -> Table:
        return Table(self.is_set, self._copies(), self.origin)

    def _copies(self) -> list[Any]:
        return [p.copy() if isinstance(p, GrownList) else p for p in self.parts()]

    def __repr__(self) -> str:
        return f"<traced {'set' if self.is_set else 'dict'} of entries that only the run knows>"

    # -- reading ---------------------------------------------------------------------------------

    def _key(self, key: Any) -> tuple[Any, Any]:
        """A key in the form of the table's keys, and its hash.

        Raises:
            NeedsTable: the table has another kind of keys.
        """
        form = self.keys_.template
        leaves = _as_elements(form, key)
        if leaves is None:
            raise NeedsTable(self, key, None)
        found = nest.pack(form.element, leaves)
        return found, hash_of(leaves)

    def holds(self, key: Any) -> Any:
        """``key in table``."""
        self._check_missed()
        own, hashed = self._key(key)
        return traced(table_functions.found, self.keys_, self.alive, self.slots, own, hashed) >= 0

    def old(self, key: Any) -> Any:
        """The value of a key that is to be updated."""
        return self[key] if self.default is None else self.get(key, self.default)

    def __getitem__(self, key: Any) -> Any:
        if self.is_counter:
            return self.get(key, 0)
        own, hashed = self._key(key)
        parts = self.keys_, self.values_, self.alive, self.slots
        return traced(table_functions.value_of, *parts, own, hashed)

    def get(self, key: Any, default: Any = None) -> Any:
        own, hashed = self._key(key)
        default = self.values_.template.fitted(default)
        parts = self.keys_, self.values_, self.alive, self.slots
        return traced(table_functions.value_or, *parts, own, hashed, default)

    def _living(self, values: GrownList) -> Any:
        """The entries of a list that are there."""
        self._check_missed()
        empty = GrownList.of([], values.template)
        return traced(table_functions.living, values, self.alive, empty)

    def at(self, index: Any) -> Any:
        return self.keys().at(index)

    def listed(self) -> Any:
        return self.keys()

    def readable(self) -> Any:
        keys = self.keys().stacked()
        lists = [keys] if self.is_set else [keys, self.values().readable()]
        return DictOf(lists, self.is_counter)

    def array(self) -> Array:
        made: Array = self.keys().array()
        return made

    def keys(self) -> Any:
        return self._living(self.keys_)

    def values(self) -> Any:
        return self._living(self.values_)

    def items(self) -> Counted:
        keys, values = self.keys(), self.values()
        return Counted(keys.length, lambda i: (keys.at(i), values.at(i)))

    # -- changes ---------------------------------------------------------------------------------

    def __setitem__(self, key: Any, value: Any) -> None:
        own, hashed = self._key(key)
        value = self.values_.template.fitted(value)
        held = _as_elements(self.values_.template, value)
        if held is None:
            raise NeedsTable(self, key, value)
        given = nest.pack(self.values_.template.element, held)
        self._take(_with_entry(self.parts(), own, given, hashed))

    def add(self, key: Any) -> None:
        self[key] = True

    def setdefault(self, key: Any, default: Any = None) -> Any:
        found = self.get(key, default)
        self[key] = found
        return found

    def update(self, other: Any) -> None:
        if self.is_set:
            self._take((self | other).parts())
            return
        for key, value in other.items():
            self[key] = value

    def _remove(self, key: Any, must: bool) -> None:
        own, hashed = self._key(key)
        parts = self.keys_, self.alive, self.slots, self.count
        self.alive, self.count = traced(table_functions.without_entry, *parts, own, hashed, must)

    def __delitem__(self, key: Any) -> None:
        self._remove(key, True)

    def remove(self, key: Any) -> None:
        self._remove(key, True)

    def discard(self, key: Any) -> None:
        self._remove(key, False)

    def pop(self, *args: Any) -> Any:
        if not args:
            return self.popitem()[0]
        key, *default = args
        found = self.get(key, *default) if default else self[key]
        self._remove(key, False)
        return found

    def popitem(self) -> Any:
        entry = traced(table_functions.last_entry, self.alive)
        key, value = self.keys_.at(entry), self.values_.at(entry)
        self._remove(key, False)
        return key, value

    def clear(self) -> None:
        key, value = self.keys_.template, self.values_.template
        self._take(Table.of([], key, value, self.is_set).parts())

    def __or__(self, other: Any) -> Any:
        if self.is_counter:
            return self._counted(table_functions.counts_united, other)
        if not self.is_set:
            made = self.copy()
            made.update(other)
            return made
        return traced(table_functions.united, self, other)

    def __and__(self, other: Any) -> Any:
        if self.is_counter:
            return self._counted(table_functions.counts_common, other)
        self._check_set("&")
        return traced(table_functions.common, self, other)

    def __sub__(self, other: Any) -> Any:
        if self.is_counter:
            return self._counted(table_functions.counts_added, other, -1)
        self._check_set("-")
        return traced(table_functions.difference, self, other)

    def __add__(self, other: Any) -> Any:
        if not self.is_counter:
            raise self._unsupported("+")
        return self._counted(table_functions.counts_added, other, 1)

    def __xor__(self, other: Any) -> Any:
        self._check_set("^")
        return (self - other) | (_as_set(other) - self)

    def __eq__(self, other: object) -> Any:
        other = current(other)
        if isinstance(other, set | frozenset if self.is_set else dict):
            if not other:
                return self.length == 0
            other = _of_python(other)
        if not isinstance(other, Table) or other.is_set is not self.is_set:
            return False
        same = table_functions.same_keys if self.is_set else table_functions.same_entries
        return traced(same, self, other)

    def __ne__(self, other: object) -> Any:
        found = self == other
        return not found if type(found) is bool else found == False  # noqa: E712

    __hash__ = None  # type: ignore[assignment]

    def __ror__(self, other: Any) -> Any:
        return self._from(other) | self

    def __rand__(self, other: Any) -> Any:
        return self._from(other) & self

    def __rsub__(self, other: Any) -> Any:
        return self._from(other) - self

    def __rxor__(self, other: Any) -> Any:
        return self._from(other) ^ self

    def _from(self, other: Any) -> Table:
        """A set of Python's, on the left of an operator that may be to change it, as one of the
        graph.

        Raises:
            NeedsTable: it is one from before a branch or loop.
        """
        if not isinstance(other, set | frozenset):
            raise self._unsupported("a set operator")
        problem = NeedsTable(other, self.keys_.template, True)
        if is_from_outside(other):
            raise problem
        return problem.made()

    def __ior__(self, other: Any) -> Table:
        return self._becomes(self | other)

    def __iand__(self, other: Any) -> Table:
        return self._becomes(self & other)

    def __isub__(self, other: Any) -> Table:
        return self._becomes(self - other)

    def __ixor__(self, other: Any) -> Table:
        return self._becomes(self ^ other)

    def __iadd__(self, other: Any) -> Table:
        return self._becomes(self + other)

    def _becomes(self, made: Table) -> Table:
        """The same set or `Counter` with other entries."""
        self._take(made.parts())
        return self

    def _check_set(self, symbol: str) -> None:
        if not self.is_set:
            raise self._unsupported(symbol)

    def _unsupported(self, symbol: str) -> TypeError:
        kind = "set" if self.is_set else "dict"
        return TypeError(f"unsupported operand type(s) for {symbol}: {kind!r}{at(user_origin())}")

    def _counted(self, function: Callable[..., Any], other: Any, *args: Any) -> Table:
        made: Table = traced(function, self, other, *args)
        made.default, made.is_counter = 0, True
        return made

    def union(self, other: Any) -> Any:
        return self | other

    def intersection(self, other: Any) -> Any:
        return self & _as_set(other)

    def difference(self, other: Any) -> Any:
        return self - other

    def symmetric_difference(self, other: Any) -> Any:
        return self ^ other

    def intersection_update(self, other: Any) -> None:
        self._take(self.intersection(other).parts())

    def difference_update(self, other: Any) -> None:
        self._take((self - other).parts())

    def symmetric_difference_update(self, other: Any) -> None:
        self._take((self ^ other).parts())

    def issubset(self, other: Any) -> Any:
        return traced(table_functions.is_subset, self, _as_set(other))

    def issuperset(self, other: Any) -> Any:
        return traced(table_functions.is_subset, other, self)

    def isdisjoint(self, other: Any) -> Any:
        return traced(table_functions.are_disjoint, self, _as_set(other))

    def most_common(self, n: Any = None) -> Any:
        """Of a `Counter`."""
        return traced(table_functions.most_common, self, n)

    def total(self) -> Any:
        return traced(sum, self.values())

    def __getattr__(self, name: str) -> Any:
        kind = set if self.is_set else dict
        if name.startswith("__") or not hasattr(kind, name):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        raise NotStaged(
            f"{name}() of a {kind.__name__} with keys that only the run knows{at(user_origin())}"
        )


def _with_entry(parts: Sequence[Any], key: Any, value: Any, hashed: Any) -> Any:
    keys, values, alive, slots, hashes, count = (
        p.copy() if isinstance(p, GrownList) else p for p in parts
    )
    return traced(
        table_functions.with_entry, keys, values, alive, slots, hashes, count, key, value, hashed
    )


def _as_elements(form: Template, value: Any) -> list[Any] | None:
    """The leaves of a value as those of a list's elements; None where it is not like them."""
    try:
        given = Template(value)
        wide = form.joined(given)
    except NotStaged:
        return None
    pairs = zip(form.forms, wide.forms, strict=True)
    if any(own.dtype is not w.dtype for own, w in pairs):
        return None
    leaves = nest.flatten(value)
    return [_in_form(f, leaf) for f, leaf in zip(form.forms, leaves, strict=True)]


def _in_form(form: Form, leaf: Any) -> Any:
    return leaf if isinstance(leaf, Array) else form.value(form.tensor(leaf))


def _list_of(column: np.ndarray[Any, Any]) -> ListPart:
    return ListPart(lists.list_unstack(convert_to_tensor(column)))


def _columns(values: Sequence[Any], template: Template) -> list[np.ndarray[Any, Any]]:
    """The leaves of values that are alike, an array for each."""
    rows = zip(*map(nest.flatten, values), strict=True)
    return [
        np.array(row, form.dtype.np_dtype) for row, form in zip(rows, template.forms, strict=True)
    ]


nest.register_node(
    Table,
    Table.parts,
    lambda like, parts: Table(like.is_set, parts, like.origin),  # which has the default
    lambda value: value.is_set,
    composite=False,
)


# -- dicts and sets of Python's that become tables -----------------------------------------------


def _of_fixed_size(key: Any) -> Any:
    """A key, or an element of a set.

    Raises:
        NotStaged: it is a text, or has one, whose characters only the run knows, and how many.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, RunText) for part in parts):
        raise NotStaged(
            "A text that only the run knows is a key of a dict or an element of a set: take the "
            f"number that the text is made of{at(user_origin())}"
        )
    return key


class NeedsTable(BecomesOther):
    """A dict or set gets a key, or a table an entry of another kind, that only the run knows.

    Attributes:
        owner: the dict, set or table.
        key, value: of the new entry, as far as there is one.
    """

    def __init__(self, owner: Any, key: Any, value: Any) -> None:
        super().__init__(
            f"A {type(owner).__name__} is used with a key that only the run knows, {key!r}, which "
            "it takes only in a branch or loop in which it is a variable of the function"
            f"{at(user_origin())}"
        )
        self.owner = owner.origin if isinstance(owner, Table) else owner
        # Here: outside of the branch or loop nothing can be computed of what is known inside.
        self.key = key if isinstance(key, Template) else Template(_of_fixed_size(key))
        self.value = None if value is None else Template(value)

    def made(self) -> Table:
        """A table with the entries of the owner, which takes the new one.

        Raises:
            NotStaged: there is none.
        """
        if isinstance(self.owner, Table):
            key, value = self.owner.keys_.template, self.owner.values_.template
            key = key.joined(self.key)
            value = value if self.value is None else value.joined(self.value)
            made = Table.of([], key, value, self.owner.is_set)
            filled: Table = traced(
                table_functions.filled, made, self.owner.keys(), self.owner.values()
            )
            filled.default, filled.is_counter = self.owner.default, self.owner.is_counter
            return filled
        is_set = isinstance(self.owner, set | frozenset)
        pairs = [(k, True) for k in self.owner] if is_set else list(self.owner.items())
        key = functools.reduce(Template.joined, (Template(k) for k, _ in pairs), self.key)
        held = [] if self.value is None else [self.value]
        default = default_of(self.owner)
        held += [] if default is None else [Template(default)]
        held += templates([v for _, v in pairs], held)
        value = functools.reduce(Template.joined, held).settled()
        made = Table.of([(k, value.fitted(v)) for k, v in pairs], key, value, is_set)
        made.default, made.is_counter = default, isinstance(self.owner, collections.Counter)
        return made


def _of_python(owner: Any) -> Table:
    """A set or dict of Python's, to be compared: single characters are those of the run."""
    chars = [run_text(k) if type(k) is str and len(k) == 1 else k for k in owner]
    if isinstance(owner, set | frozenset):
        return set_of(chars)
    key = functools.reduce(Template.joined, map(Template, chars))
    value = functools.reduce(Template.joined, templates(list(owner.values())))
    return Table.of(zip(chars, owner.values(), strict=True), key, value, False)


def default_of(owner: Any) -> Any:
    """The value that a key of a `defaultdict` or `Counter` begins with; None for other dicts."""
    if isinstance(owner, collections.Counter):
        return 0
    factory = getattr(owner, "default_factory", None)
    return None if factory is None else factory()


def old_value(owner: Any, key: Any) -> Any:
    """The value of a key of a dict that is to be updated."""
    if isinstance(owner, Table):
        return owner.old(key)
    table, default = as_table(owner, key), default_of(owner)
    if table is None and default is not None:
        return default
    return table_for(owner, key)[key] if table is None else table.old(key)


def set_of(keys: Any) -> Table:
    """``set(keys)`` of an array or list of which only the run knows the elements."""
    if isinstance(keys, Table):
        keys = keys.listed()
    if isinstance(keys, Array):
        template = Template(keys.dtype.type(0))
    elif isinstance(keys, GrownList):
        template = keys.template
    elif isinstance(keys, StackedList) and keys.items is None:
        template = Template.of_stacked(keys)
    else:
        template = functools.reduce(Template.joined, map(Template, keys))
        keys = GrownList.of(list(keys), template)
    table = Table.of([], template, Template(True), True)
    collected: Table = traced(table_functions.collected, table, keys)
    return collected


def set_display(*elements: Any) -> Any:
    """``{a, b}``."""
    return set_of(list(elements)) if is_traced(list(elements)) else set(elements)


def _as_set(keys: Any) -> Any:
    return keys if isinstance(keys, Table | set | frozenset) else set_of(keys)


def with_entry(owner: dict[Any, Any], key: Any, value: Any) -> Table:
    """A dict of Python's as a table with a new entry, which its name stands for from now on.

    Raises:
        NeedsTable: a branch or loop has the dict among its variables.
    """
    problem = NeedsTable(owner, key, value)
    if scopes.open or not is_outermost(owner):
        raise problem
    table = problem.made()
    table[key] = value
    leave(owner, table)
    return table


def table_for(owner: Any, key: Any) -> Table:
    """A dict of Python's as a table, to be read at a key.

    Raises:
        NotStaged: it is empty.
    """
    table = as_table(owner, key)
    if table is None:
        raise NotStaged(
            f"an empty dict is read at a key that only the run knows, {key!r}{at(user_origin())}"
        )
    return table


def as_table(owner: Any, key: Any) -> Table | None:
    """A dict or set of Python's as a table, to be read at a key; None where it is empty."""
    if not owner:
        return None
    is_set = isinstance(owner, set | frozenset)
    return NeedsTable(owner, key, True if is_set else next(iter(owner.values()))).made()


def method_of(owner: Any, name: str, python: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a dict or set, whose first argument may be a key that only the run knows."""

    def call(*args: Any, **options: Any) -> Any:
        now = current(owner)
        if now is not owner:
            return getattr(now, name)(*args, **options)
        if type(owner) is set and name in _CHANGING and is_from_outside(owner):
            # A change of Python's would happen once for each time that the body is traced.
            if name not in _WITH_KEYS or not args:
                raise NotStaged(
                    f"{name}() of a set in a branch or loop that depends on array values"
                    f"{at(user_origin())}"
                )
            raise NeedsTable(owner, args[0], True)
        if not args or not is_traced(args[0]) or (name not in _WITH_KEYS):
            return python(*args, **options)
        if name == "add":
            raise NeedsTable(owner, args[0], True)
        if name == "setdefault":
            raise NeedsTable(owner, *args)
        table = as_table(owner, args[0])
        if name == "get":
            return (args[1:] or (None,))[0] if table is None else table.get(*args)
        if table is None:
            return _from_nothing(name, *args)
        first = next(iter(owner))
        raise NeedsTable(owner, args[0], True if isinstance(owner, set) else owner[first])

    return call


def _from_nothing(name: str, key: Any, *default: Any) -> Any:
    """What `pop`, `remove` and `discard` do where there is no entry at all.

    Raises:
        KeyError: the key has to be there.
        NotStaged: it has to be there, if the program comes here.
    """
    if name == "discard":
        return None
    if default:
        return default[0]
    if scopes.open:
        raise NotStaged(
            f"{name}() of an empty dict or set in a branch or loop that depends on array values"
            f"{at(user_origin())}"
        )
    raise KeyError(key)


_CHANGING = frozenset({"add", "clear", "discard", "pop", "remove", "update"})
_WITH_KEYS = frozenset({"add", "discard", "get", "pop", "remove", "setdefault"})


class DictOf:
    """A dict, `Counter` or set that a program gives: lists of its keys and, of a dict, of its
    values."""

    __slots__ = ("is_counter", "lists")

    def __init__(self, lists: Sequence[StackedList], is_counter: bool) -> None:
        self.lists, self.is_counter = lists, is_counter


def _built(like: DictOf, lists: Sequence[Any]) -> Any:
    if isinstance(lists[0], StackedList) or lists[0] is None:
        return DictOf(lists, like.is_counter)
    keys, *values = lists
    if not values:
        return set(keys)
    made: dict[Any, Any] = collections.Counter() if like.is_counter else {}
    dict.update(made, zip(keys, values[0], strict=True))  # a Counter's own adds
    return made


nest.register_node(
    DictOf, lambda value: list(value.lists), _built,
    lambda value: (len(value.lists), value.is_counter), composite=False,
)
