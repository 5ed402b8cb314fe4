"""Lists and dicts that are one object after one branch and another after the other.

    if x > 0: a = b                 a is b, or what it was: a `ChosenItems` of both
    a[0] = 5                        goes to the one that the run has chosen
    return b[0]                     and is seen there

Reading it gives the items of the one that the run has chosen, as they are then. A loop that gives
a variable other lists leaves it a copy of the items (`FrozenItems`), which is right until it or one
of these changes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from treadle.core.origin import at, user_origin
from treadle.jitted.aliases import Known, either
from treadle.jitted.arrays import Indirect, is_traced
from treadle.jitted.errors import NotStaged
from treadle.jitted.left import is_left, leave
from treadle.jitted.optional_values import MaybeNone
from treadle.jitted.storage import scopes

KINDS = (list, dict)
_READING: dict[type, frozenset[str]] = {
    list: frozenset({"copy", "count", "index"}),
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
}


class Option(NamedTuple):
    """A list or dict that a variable may be.

    Attributes:
        chosen: whether it is this one.
    """

    chosen: Known
    items: Any


class ChosenItems(Indirect):
    """A list, or dict, that is one of several of one length, or with the same keys.

    Args:
        options: the lists or dicts; it is the last one where it is none of the others.
        choose: ``choose(test, a, b)`` gives one of two items.

    Attributes:
        kind: list or dict.
    """

    __slots__ = ("_choose", "_place", "_scope", "kind", "options")

    def __init__(self, options: Sequence[Option], choose: Callable[..., Any]) -> None:
        self.options, self._choose = list(options), choose
        self._place, self._scope = at(user_origin()), scopes.innermost
        self.kind = type(options[0].items)

    def holders(self) -> list[Any]:
        """The lists or dicts.

        Raises:
            NotStaged: one of them has another length or other keys by now.
        """
        found = [option.items for option in self.options]
        shapes = [() if is_left(f) else keys_of(f) for f in found]
        if any(s != shapes[0] for s in shapes) or any(map(is_left, found)):
            raise self.refusal("one of them has another length or other keys by now")
        return found

    def refusal(self, why: str) -> NotStaged:
        name = self.kind.__name__
        return NotStaged(
            f"A variable is one of several {name}s, by a branch or loop that depends on array "
            f"values{self._place}\nand {why}: give it a copy, {name}(x), or use arrays"
            f"{at(user_origin())}"
        )

    def chosen(self, parts: Sequence[Any]) -> Any:
        """The one that the run has chosen of some values, one for each option."""
        found = parts[-1]
        for option, part in zip(self.options[-2::-1], parts[-2::-1], strict=True):
            found = self._choose(option.chosen, part, found)
        return found

    def get(self, *key: Any) -> Any:
        """A list or dict of Python's with the items that it has now; ``self.get(key, default)`` of
        a dict."""
        found = self.holders()
        items = [self.chosen([held[key] for held in found]) for key in keys_of(found[0])]
        made: Any = dict(zip(found[0], items, strict=True)) if self.kind is dict else items
        return made.get(*key) if key else made

    def item(self, key: Any, read: Callable[[Any, Any], Any]) -> Any:
        """``self[key]``, by ``read(items, key)``."""
        return self.chosen([read(held, key) for held in self.holders()])

    def set(
        self, key: Any, value: Any, read: Callable[[Any, Any], Any], write: Callable[..., Any]
    ) -> None:
        """``self[key] = value``, by ``write(items, key, value)``."""
        others: Known = False
        holders = self.holders()
        if self.kind is dict and (is_traced(key) or key not in holders[0]):
            raise self.refusal("gets another key")
        for option, held in zip(self.options[:-1], holders[:-1], strict=True):
            write(held, key, self._choose(option.chosen, value, read(held, key)))
            others = either(others, option.chosen)
        write(holders[-1], key, self._choose(others, read(holders[-1], key), value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.kind, name):
            raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}")
        return getattr(self.get() if name in _READING[self.kind] else self.own(name), name)

    def own(self, name: str) -> Any:
        """The list or dict that it is from now on, whose length may change. The others cannot be
        used any more: the program would have to change the length of one of them.

        Raises:
            NotStaged: the method is called in another branch or loop.
        """
        found = self.get()
        if self._scope is not scopes.innermost:
            raise self.refusal(f"{name}() may change its length or order")
        for option in self.options:
            leave(option.items, why=f"may be one that {name}() changed{at(user_origin())}")
        self.options = [Option(True, found)]
        return found

    def __getitem__(self, key: Any) -> Any:
        return self.get()[key] if isinstance(key, slice) else self.item(key, operator.getitem)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.set(key, value, operator.getitem, operator.setitem)

    def __iadd__(self, other: Any) -> Any:
        own = self.own("+=")
        own += other
        return own

    def __len__(self) -> int:
        return len(self.holders()[0])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def __contains__(self, item: Any) -> bool:
        return item in self.get()

    def __eq__(self, other: object) -> Any:
        return self.get() == other

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        return self.get() + other

    def __radd__(self, other: Any) -> Any:
        return other + self.get()

    def __mul__(self, times: Any) -> Any:
        return self.get() * times

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"<one of {len(self.options)} {self.kind.__name__}s>"


class FrozenItems(ChosenItems):
    """A list or dict that a loop made one of several in each iteration: a copy of the items.

    Args:
        items: the copy.
        sources: what it may be.
    """

    __slots__ = ("_seen",)

    def __init__(self, items: Any, sources: Iterable[Any], choose: Callable[..., Any]) -> None:
        super().__init__([Option(True, items)], choose)
        self._seen = [(source, items_of(source)) for source in sources]

    def holders(self) -> list[Any]:
        if not all(same_items(seen, items_of(source)) for source, seen in self._seen):
            raise self.refusal("one of them has changed since")
        return super().holders()

    def set(self, *args: Any) -> None:
        raise self.refusal("its items change")


def alone(value: Any) -> Any:
    """The list or dict that a variable has for itself, where it was one of several before."""
    if isinstance(value, ChosenItems) and not isinstance(value, FrozenItems):
        return value.options[0].items if len(value.options) == 1 else value
    return value


def is_chosen(value: Any) -> bool:
    return isinstance(value, ChosenItems)


def is_items(value: Any) -> bool:
    """Whether a value is a list or dict of Python's, or one of several."""
    return type(value) in KINDS or is_chosen(value)


def keys_of(items: Any) -> list[Any]:
    """The positions of a list's items, or the keys of a dict."""
    return list(items if isinstance(items, dict) else range(len(items)))


def items_of(holder: Any) -> list[Any]:
    """The items of a list, dict or set, with their positions or keys."""
    return list(holder.items() if isinstance(holder, dict) else enumerate(holder))


def same_items(before: list[Any], after: list[Any]) -> bool:
    """Whether the items are the same objects."""
    return len(before) == len(after) and all(
        k == key and v is value for (k, v), (key, value) in zip(before, after, strict=True)
    )


def holders_in(values: Iterable[Any]) -> Iterator[Any]:
    """The lists and dicts in some values, however deep, and those that one of these may be."""
    for value in values:
        if isinstance(value, ChosenItems):
            yield from holders_in(option.items for option in value.options)
        elif isinstance(value, MaybeNone):
            yield from holders_in([value.value])
        elif type(value) in KINDS or type(value) is tuple:
            if type(value) is not tuple:
                yield value
            yield from holders_in(value.values() if isinstance(value, dict) else value)
