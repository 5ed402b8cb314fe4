"""Everything that improves programs and can be left out by name: one list for all of it.

Passes over graphs and mechanisms of the compiler and of calls declare a name here. Results do not
need any of them, so switching a name off shows its contribution, or whether it is at fault:

    with disabled("fusion", "common"): ...      TREADLE_DISABLE_PASSES=fusion,common

(``all`` for everything). A program that exists keeps the passes that it was compiled with.
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

from treadle.core.interrupts import during, is_mode


class Switch(NamedTuple):
    """Something that can be left out.

    Attributes:
        stage: "graph" for passes over graphs, "target" for those that prepare a graph for its
            target, "tracing", "program" for mechanisms of the compiler, "calls".
        does: what it does, and for passes why it stands where it stands.
        required: programs are wrong without it: it is listed, and cannot be left out.
    """

    name: str
    stage: str
    does: str
    required: bool = False


_STAGES = ("graph", "target", "program", "tracing", "calls")
_known: dict[str, Switch] = {}


class _Local(threading.local):
    disabled: frozenset[str] = frozenset()


_local = is_mode(_Local())


def declare(name: str, stage: str, does: str, required: bool = False) -> Switch:
    """Add a switch to the list.

    Raises:
        ValueError: the name is taken.
    """
    if name in _known or name == "all":
        raise ValueError(f"there is a switch {name!r} already")
    found = _known[name] = Switch(name, stage, does, required)
    return found


def switches() -> tuple[Switch, ...]:
    """All of them, passes first."""
    return tuple(sorted(_known.values(), key=lambda s: _STAGES.index(s.stage)))


def disabled(*names: str) -> during:
    """Switch passes or mechanisms off in this thread, by name ("all": every one).

    Raises:
        ValueError: there is none of that name, or programs are wrong without it.
    """
    known = {*_known, "all"}
    unknown = sorted(set(names) - known)
    if unknown:
        raise ValueError(f"no pass is called {', '.join(unknown)}; there are {sorted(known)}")
    needed = [name for name in names if name in _known and _known[name].required]
    if needed:
        raise ValueError(f"{', '.join(needed)} cannot be switched off: programs need it")
    return during(_local, "disabled", _local.disabled | set(names))


_everywhere: list[frozenset[str]] = [frozenset()]


def switch_off_everywhere(names: frozenset[str]) -> bool:
    """Switch exactly these off in all threads, where that can be; gives whether it is a change."""
    before, _everywhere[0] = _everywhere[0], names
    return before != names


def disabled_names() -> frozenset[str]:
    """The names switched off here, by `disabled`, for all threads, or by the environment."""
    listed = os.environ.get("TREADLE_DISABLE_PASSES", "")
    names = {n.strip() for n in listed.split(",") if n.strip()} if listed else ()
    return _local.disabled.union(names, _everywhere[0])


def may_be_off() -> bool:
    """Whether something is switched off here by `disabled`, or for all threads: what the
    environment says is asked where programs are made, this at every use of them."""
    return bool(_local.disabled or _everywhere[0])


def is_on(name: str) -> bool:
    """Whether the pass or mechanism may work here."""
    assert name in _known, name
    off = disabled_names()
    return not off or not ({name, "all"} & off) or _known[name].required
