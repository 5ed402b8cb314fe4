"""Lists and dicts that are elements of lists and dicts of the graph: who reads one gets a copy, and
what is added is one.

``rows[i][j] = v`` changes the element itself (`items.set_item` puts the changed copy back). A
change under a name of its own (``row = rows[i]; row[j] = v``, or ``rows.append(row); row[j] = v``)
would be lost, so the trace ends with an error.
"""

from __future__ import annotations

import threading
from typing import Any

from treadle.core.context import context
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.graph.ir import Region
from treadle.jitted.chosen_lists import items_of, same_items
from treadle.jitted.errors import NotStaged
from treadle.jitted.left import is_left


class _Copies(threading.local):
    """The copies of the function that is traced, by id; None outside of one."""

    made: dict[int, Copy] | None = None


_copies = is_mode(_Copies())


class Copy:
    """A copy of an element.

    Attributes:
        held: the copy, as the user has it.
        items: what it held when it was read.
        region: the branch, body or graph that was traced then.
    """

    def __init__(self, held: Any, region: Region) -> None:
        self.held, self.items, self.region = held, items_of(held), region
        self.origin = user_origin()

    def is_changed(self) -> bool:
        return not is_left(self.held) and not same_items(self.items, items_of(self.held))


def copies() -> during:
    """While a function is traced: keep the copies."""
    return during(_copies, "made", {})


def handed_out(element: Any) -> Any:
    """An element that is read; notes the lists and dicts in it."""
    if _copies.made is not None and isinstance(element, list | dict | tuple):
        builder: Any = context.recorder
        for held in _holders(element):
            _copies.made[id(held)] = Copy(held, builder.region)
    return element


def put_in(element: Any) -> None:
    """An element is added; notes the lists and dicts in it, too."""
    handed_out(element)


def taken(element: Any) -> Any:
    """An element that is no longer in its list: the user's own."""
    for held in _holders(element) if _copies.made else ():
        _copies.made.pop(id(held), None)  # type: ignore[union-attr]
    return element


def is_copy(value: Any) -> bool:
    """Whether a list or dict is a copy of an element."""
    return type(value) in (list, dict) and id(value) in (_copies.made or ())


def check_copies() -> None:
    """Called at the end of a trace.

    Raises:
        NotStaged: a copy was changed.
    """
    changed = [c for c in (_copies.made or {}).values() if c.is_changed()]
    if not changed:
        return
    builder: Any = context.recorder
    graph: Region = builder.region
    regions = {id(graph), *(id(r) for node in graph.walk() for r in node.regions)}
    for one in changed:
        if id(one.region) in regions:  # else of a trace that was given up
            raise NotStaged(
                "A list or dict that is an element of a list or dict which only the run knows is "
                "changed under a name of its own: change it as an item, rows[i][j] = value, or "
                f"put it back, rows[i] = row{at(one.origin)}"
            )


def _holders(value: Any) -> list[Any]:
    """The lists and dicts in a structure."""
    if type(value) is tuple:
        return [held for part in value for held in _holders(part)]
    if type(value) not in (list, dict):
        return []
    parts = value.values() if isinstance(value, dict) else value
    return [value, *(held for part in parts for held in _holders(part))]
