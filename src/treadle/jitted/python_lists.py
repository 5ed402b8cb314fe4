"""Methods of Python's lists with values that only the run knows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.jitted.arrays import Array, TracedSequence, direct, is_traced
from treadle.jitted.becoming import NeedsList
from treadle.jitted.grown_lists import GrownList, Template
from treadle.jitted.left import current, leave
from treadle.jitted.opened import is_outermost
from treadle.jitted.sorting import is_of_run, sort
from treadle.jitted.storage import scopes
from treadle.jitted.written import converted

_POSITIONS = {"insert": 1, "pop": 1}  # methods -> how many arguments are positions
_SEARCHING = frozenset({"count", "index", "remove"})


def list_method(owner: list[Any], name: str, python: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a list that may be given what only the run knows."""

    def call(*args: Any, **options: Any) -> Any:
        now = current(owner)
        if now is not owner:
            return getattr(now, name)(*args, **options)
        if name == "sort":
            key = converted(options.get("key"))
            if is_of_run(owner, key):
                return sort(owner, key, options.get("reverse", False))
            return python(*args, **(options if key is None else options | {"key": key}))
        added = _added(name, args)
        positions = is_traced(list(args[: _POSITIONS.get(name, 0)]))
        searched = name in _SEARCHING and is_traced([*args, *owner])
        if added is None and not positions and not searched:
            return python(*args, **options)
        found = [Template(v) for v in owner]
        found += [added] if added is not None else []
        if not found:
            return python(*args, **options)
        template = functools.reduce(Template.joined, found)
        if scopes.open or not is_outermost(owner):
            raise NeedsList(owner, template)
        grown = GrownList.of(owner, template)
        result = getattr(grown, name)(*args, **options)
        if name not in ("count", "index"):
            leave(owner, grown)
        return result

    return call


def _added(name: str, args: Any) -> Template | None:
    """The form of elements of which only the run knows how many are added."""
    values = direct(args[0]) if name == "extend" and args else None
    if isinstance(values, Array) and values.ndim and type(values.dims[0]) is not int:
        return Template(values[0])
    if isinstance(values, TracedSequence) and type(values.length) is not int:
        return values.template if isinstance(values, GrownList) else Template(values.at(0))
    return None


def tuple_method(owner: tuple[Any, ...], name: str, python: Any) -> Callable[..., Any]:
    """``count`` and ``index`` of a tuple, whose values only the run may know."""

    def call(*args: Any) -> Any:
        if name not in ("count", "index") or not is_traced([*args, *owner]):
            return python(*args)
        forms = map(Template, owner)
        return getattr(GrownList.of(owner, functools.reduce(Template.joined, forms)), name)(*args)

    return call
