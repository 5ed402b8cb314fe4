"""Python's own objects that the body of a loop, or a branch, changes.

A loop of the graph is traced once, or a few times, for any number of iterations, and of a branch
both sides are. Changes of lists, sets, dicts and attributes that they find by name would happen as
often as they are traced. The content of these objects is noted before the trace and put back after
it; a loop that changes them is left to Python, a branch has lists and dicts among its variables.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from treadle.autograph import config
from treadle.core.origin import at, user_origin
from treadle.jitted.errors import NotStaged
from treadle.jitted.namespace import Globals

_CONTAINERS = (list, dict, set, bytearray, collections.deque)


class ChangesOutside(NotStaged):
    """A loop's body or a branch changes objects of Python's that it finds by name.

    Attributes:
        changed: the objects.
        holders: those among them that may be variables: lists and dicts.
    """

    def __init__(self, what: str, changed: Sequence[Any], attributes: Container[int]) -> None:
        super().__init__(
            f"A {what} changes a {type(changed[0]).__name__} of Python's that is no variable of "
            f"it, which happens once for each time that the {what} is traced{at(user_origin())}"
        )
        self.changed = changed
        self.holders = [
            c for c in changed if type(c) in (list, dict) and id(c) not in attributes
        ]


class left_alone:
    """Trace a loop's body, or a branch, that changes no object of Python's which it finds by name.

    Args:
        function: the body.
        known: objects that it may change.
        what: what users call it.
        others: its variables, of which it may change no attributes.

    Raises:
        ChangesOutside: it changes one; all of them have their earlier content again.
    """

    def __init__(
        self, function: Any, known: Iterable[Any] = (), what: str = "loop",
        others: Iterable[Any] = (),
    ) -> None:  # fmt: skip
        self._what = what
        search, may = _Search(), {id(k) for k in known}
        for value in others:
            if not isinstance(value, _CONTAINERS):
                search.value(value, 1)
        found = [f for f in search.objects(function) if id(f) not in may]
        self._kept, self._attributes = [(f, _content(f)) for f in found], search.attributes

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, *error: object) -> None:
        changed = [found for found, before in self._kept if _restore(found, before)]
        if kind is None and changed:
            raise ChangesOutside(self._what, changed, self._attributes)


def found_by_name(*values: Any) -> list[Any]:
    """The containers that functions find by name, and those in attributes of other values."""
    search = _Search()
    for value in values:
        if isinstance(value, types.FunctionType):
            search.function(value)
        else:
            search.value(value, 1)
    return list(search.found.values())


def _content(value: Any) -> list[Any]:
    return list(value.items()) if isinstance(value, dict) else list(value)


def _restore(value: Any, before: list[Any]) -> bool:
    """Put the earlier content of a container back; whether it had changed."""
    now = _content(value)
    flat = [x for pair in (before, now) for x in pair]
    if isinstance(value, dict):
        flat = [x for pair in flat for x in pair]
    half = len(flat) // 2
    same_size = len(now) == len(before)
    if same_size and all(a is b for a, b in zip(flat[:half], flat[half:], strict=True)):
        return False
    if isinstance(value, dict):
        value.clear()
        dict.update(value, before)  # a Counter's own adds
    elif isinstance(value, set):
        value.clear()
        value.update(before)
    elif isinstance(value, collections.deque):
        value.clear()
        value.extend(before)
    else:
        value[:] = before
    return True


class _Search:
    """The containers that a function finds by name, in its own code and in the user's functions
    that it names."""

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}
        self.attributes: set[int] = set()  # those of objects
        self.seen: set[Any] = set()

    def objects(self, function: Any) -> list[Any]:
        self.function(function)
        return list(self.found.values())

    def function(self, function: types.FunctionType) -> None:
        if function in self.seen:
            return
        self.seen.add(function)
        names = function.__globals__
        known = names.real if isinstance(names, Globals) else names
        for name in _names(function.__code__):
            if name in known:
                self.value(known[name], 1)
        for cell in function.__closure__ or ():
            try:
                self.value(cell.cell_contents, 1)
            except ValueError:  # not assigned yet
                continue

    def value(self, value: Any, depth: int) -> None:
        if isinstance(value, _CONTAINERS):
            self.found[id(value)] = value
        elif type(value) is tuple:
            for part in value:
                self.value(part, 0)
        elif isinstance(value, types.FunctionType):
            if not config.is_library_object(value):
                self.function(value)
        elif depth and not isinstance(value, type | types.ModuleType):
            attributes = getattr(value, "__dict__", None)
            if type(attributes) is dict and not config.is_library_object(type(value)):
                self.found[id(attributes)] = attributes
                self.attributes.add(id(attributes))
                for inner in attributes.values():
                    self.value(inner, depth - 1)
                for method in vars(type(value)).values():
                    self.value(method, 0)


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names in a function's code and in functions inside of it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
