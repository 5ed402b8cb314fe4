"""What LLVM may know of a program's memory: arrays that lie apart do not overlap.

Addresses come out of tables, so LLVM cannot see that a store into one array leaves the others as
they are; loads stay in loops that they could leave. Each piece of memory has an alias scope, and
each access says which one is its own and that it touches none of the others.
"""

from __future__ import annotations

from collections.abc import Hashable

from treadle.runtime.memory.plan import Plan, rounded
from treadle.runtime.schedule.steps import Place

STATE = "state"  # the state table and the cells of variables
_FIRST = 10  # number of the first metadata node


class Scopes:
    """The alias scopes of one program."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._shared = _overlapping(plan)
        self._scopes: dict[Hashable, int] = {}  # memory -> its number, in order of appearance
        self._accesses: dict[tuple[Hashable, ...], int] = {}  # the memory that one may touch

    def of(self, place: Place | str) -> str:
        """What a load or store of an element of the place ends with."""
        touched = self._memory(place)
        if not touched:
            return ""
        for memory in touched:
            self._scopes.setdefault(memory, len(self._scopes))
        number = self._accesses.setdefault(touched, len(self._accesses))
        return f", !alias.scope !{_FIRST + 1 + 2 * number}, !noalias !{_FIRST + 2 + 2 * number}"

    def _memory(self, place: Place | str) -> tuple[Hashable, ...]:
        """The pieces of memory that a place may be; none where that is not known."""
        if isinstance(place, str):
            return (place,)
        if place.kind in ("argument", "output", "constant", "variable"):
            return ((place.kind, place.number),)
        if place in self._shared:
            return (self._shared[place],)
        if place in self._plan.slots:
            return (("slot", self._plan.slots[place]),)
        if place.kind in ("pair", "pair'"):
            return tuple(dict.fromkeys(m for half in place.parts for m in self._memory(half)))
        return ()

    def lines(self) -> list[str]:
        """The metadata of the module."""
        if not self._accesses:
            return []
        first = _FIRST + 1 + 2 * len(self._accesses)
        lines = [f'!{_FIRST} = distinct !{{!{_FIRST}, !"memory"}}']
        nodes = range(first, first + len(self._scopes))
        lines += [f"!{node} = distinct !{{!{node}, !{_FIRST}}}" for node in nodes]
        for touched, number in self._accesses.items():
            own = [f"!{first + n}" for m, n in self._scopes.items() if m in touched]
            others = [f"!{first + n}" for m, n in self._scopes.items() if m not in touched]
            lines.append(f"!{_FIRST + 1 + 2 * number} = !{{{', '.join(own)}}}")
            lines.append(f"!{_FIRST + 2 + 2 * number} = !{{{', '.join(others)}}}")
        return lines


def _overlapping(plan: Plan) -> dict[Place, Hashable]:
    """The temporaries of known room, those that share memory under one key."""
    found: dict[Place, Hashable] = {}
    end, number = 0, 0
    for place, offset in sorted(plan.offsets.items(), key=lambda item: item[1]):
        if offset >= end:
            number += 1
        end = max(end, offset + max(1, rounded(place.room)))
        found[place] = ("workspace", number)
    return found
