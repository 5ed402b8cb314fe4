"""Choices that won when candidates were tried out on this processor, by class: what is on disk.

There is one object for each model of processor. A process reads it once: what is found out while
it runs is for later ones. So all parts of a program agree on a routine's division. Programs on disk
say which winners they were made with, and are made anew where there are others (`are_current`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from treadle.core import locks
from treadle.core.digests import digest
from treadle.core.interrupts import during, is_mode
from treadle.core.object_cache import default_cache
from treadle.core.plain_data import DamagedError, from_bytes, to_bytes
from treadle.core.sources import sources
from treadle.runtime.cpu.measured import is_wanted
from treadle.runtime.cpu.target import Target, processor, this_machine

KIND = "winners"  # of objects on disk
MOST_SEEN = 10_000  # classes that a process remembers

Numbers: TypeAlias = tuple[int, ...]  # of a choice

seen: dict[str, None] = {}  # the classes of routines that programs of this process call


class _Local(threading.local):
    given: Mapping[str, Numbers] | None = None


_local = is_mode(_Local())


def using(given: Mapping[str, Numbers]) -> during:
    """``with using({...}):`` the winners, by class, for programs that this thread makes."""
    return during(_local, "given", given)


def note(text: str) -> None:
    """Remember a class."""
    if len(seen) < MOST_SEEN:
        seen[text] = None


def known() -> Mapping[str, Numbers]:
    """The winners by class: those of `using`, else those on disk when this process asked first."""
    if _local.given is not None:
        return _local.given
    place = _place() if is_wanted() else None
    return {} if place is None else _kept(place)


def keep(text: str, numbers: Sequence[int]) -> None:
    """Keep the winner of a class for later processes."""
    place = _place()
    if place is not None:
        found = {**_read(place), text: tuple(numbers)}
        default_cache().store(KIND, place, to_bytes(found))


def are_current(choices: Mapping[str, str], target: Target) -> bool:
    """Whether a program that was made with these choices would be made with them now. Its classes
    are those of this process, too."""
    winners = known() if target is this_machine() else {}
    for text in choices:
        note(text)
    return all(numbers_text(winners.get(text, ())) == made for text, made in choices.items())


def numbers_text(numbers: Sequence[int]) -> str:
    """A choice in a program on disk, empty for that of a rule."""
    return " ".join(map(str, numbers))


@locks.made_once
def _kept(place: str) -> dict[str, Numbers]:
    return _read(place)


def _read(place: str) -> dict[str, Numbers]:
    data = default_cache().load(KIND, place)
    try:
        found = {} if data is None else from_bytes(data)
        return {str(text): tuple(map(int, numbers)) for text, numbers in found.items()}
    except (DamagedError, AttributeError, TypeError, ValueError):
        return {}


def _place() -> str | None:
    """Names the object on disk for this processor, and for this form of the library."""
    name = processor()
    if name is None:
        return None
    return digest(f"{KIND}\n{name}\n{sources('runtime')}")
