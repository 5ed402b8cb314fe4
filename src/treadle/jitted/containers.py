"""Lists, dicts, sets and dataclasses among the arguments: the function changes copies, and then the
caller's hold what the copies hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from treadle.jitted.chosen_lists import items_of, same_items
from treadle.jitted.left import current, is_left

Path = tuple[Any, ...]


class Contents:
    """What the lists, dicts and sets among some arguments hold at the beginning.

    Args:
        arguments: args and kwargs, as the traced function gets them.
    """

    def __init__(self, arguments: Any) -> None:
        self.held = [(p, c, items_of(c)) for p, c in _holders(arguments, ())]

    def changed(self) -> list[tuple[Path, Any]]:
        """Those that hold something else now, with their paths in the arguments."""
        return [
            (path, current(c)) for path, c, before in self.held
            if is_left(c) or not same_items(before, items_of(c))
        ]  # fmt: skip


def _holders(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The lists, dicts and sets in a structure, what is inside first: a list that is changed may
    hold others."""
    if dataclasses.is_dataclass(value) and hasattr(value, "__dict__"):
        yield from _holders(vars(value), (*path, _FIELDS))
    elif type(value) is set:
        yield path, value
    elif type(value) in (list, tuple, dict):
        for key, part in items_of(value):
            yield from _holders(part, (*path, key))
        if type(value) is not tuple:
            yield path, value


def have_two_places(arguments: Any) -> bool:
    """Whether a list, dict or set is among the arguments twice. What a function changes at one
    place it sees at the other one, too, which a program, with copies of both, does not."""
    found = [id(holder) for _, holder in _holders(arguments, ()) if type(holder) is not tuple]
    return len(set(found)) < len(found)


def received(arguments: Any, paths: Sequence[Sequence[Any]], made: Any) -> Any:
    """What a function returns, of what its program makes: where there are `paths` that is a pair
    with the contents of the caller's lists and dicts there, which then hold them."""
    if not paths:
        return made
    result, contents = made
    put(arguments, paths, contents)
    return result


def put(arguments: Any, paths: Sequence[Sequence[Any]], contents: Sequence[Any]) -> None:
    """Have the caller's lists and dicts at `paths` hold the contents."""
    targets = [_at(arguments, path) for path in paths]
    for target, content in zip(targets, contents, strict=True):
        if isinstance(target, dict):
            target.clear()
            dict.update(target, content)  # a Counter's own adds
        elif isinstance(target, set):
            target.clear()
            target.update(content)
        else:
            target[:] = map(_kept, target, content) if len(target) == len(content) else content


def _kept(old: Any, new: Any) -> Any:
    """A list in a list, which has got its items already where it is the one that was there."""
    return old if type(old) is list and type(new) is list and old == new else new


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = vars(value) if key is _FIELDS else value[key]
    return value


_FIELDS: Any = dataclasses  # in a path: the fields of a dataclass, by name
