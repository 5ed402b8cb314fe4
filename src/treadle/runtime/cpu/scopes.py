"""Alias scopes: they tell LLVM which arrays of a program do not overlap.

Addresses come out of tables, so LLVM cannot see that a store into one array leaves the others as
they are, and does not move loads out of loops. Each piece of memory has an alias scope, and each
access says which scope it belongs to and that it touches none of the others.

Accesses of loops whose iterations are independent (`vector_iterations`) form a group.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable

from treadle.core.records import record
from treadle.runtime.memory.plan import MemoryPlan, rounded
from treadle.runtime.schedule.steps import Place

STATE = "state"  # the state table and the cells of variables
_FIRST = 10  # number of the first metadata node


@record(frozen=True)
class Group:
    """The accesses of a loop whose iterations are independent.

    access: the metadata at the end of each of its loads and stores.
    loop: the metadata at the end of the branch to the next iteration.
    """

    access: str
    loop: str


class Scopes:
    """The alias scopes of one program."""

    def __init__(self, plan: MemoryPlan) -> None:
        self._plan = plan
        self._shared = _overlapping(plan)
        self._scopes: dict[Hashable, int] = {}  # memory -> its node
        self._accesses: dict[tuple[Hashable, ...], int] = {}  # what one may touch -> its nodes
        self._nodes = itertools.count(_FIRST + 1)
        self._groups: list[str] = []

    def of(self, place: Place | str) -> str:
        """The metadata at the end of a load or store of an element of the place."""
        touched = self.memory(place)
        if not touched:
            return ""
        for memory in touched:
            if memory not in self._scopes:
                self._scopes[memory] = next(self._nodes)
        if touched not in self._accesses:
            self._accesses[touched] = next(self._nodes)
            next(self._nodes)
        node = self._accesses[touched]
        return f", !alias.scope !{node}, !noalias !{node + 1}"

    def group(self) -> Group:
        """A new group, for one loop."""
        accesses, property_, loop = (next(self._nodes) for _ in range(3))
        self._groups += [
            f"!{accesses} = distinct !{{}}",
            f'!{property_} = !{{!"llvm.loop.parallel_accesses", !{accesses}}}',
            f"!{loop} = distinct !{{!{loop}, !{property_}}}",
        ]
        return Group(f", !llvm.access.group !{accesses}", f", !llvm.loop !{loop}")

    def memory(self, place: Place | str) -> tuple[Hashable, ...]:
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
            return tuple(dict.fromkeys(m for half in place.parts for m in self.memory(half)))
        return ()

    def lines(self) -> list[str]:
        """The metadata of the module."""
        if not self._accesses:
            return self._groups
        lines = [f'!{_FIRST} = distinct !{{!{_FIRST}, !"memory"}}']
        lines += [f"!{node} = distinct !{{!{node}, !{_FIRST}}}" for node in self._scopes.values()]
        for touched, number in self._accesses.items():
            own = [f"!{node}" for memory, node in self._scopes.items() if memory in touched]
            others = [f"!{node}" for memory, node in self._scopes.items() if memory not in touched]
            lines.append(f"!{number} = !{{{', '.join(own)}}}")
            lines.append(f"!{number + 1} = !{{{', '.join(others)}}}")
        return lines + self._groups


def _overlapping(plan: MemoryPlan) -> dict[Place, Hashable]:
    """A key for each temporary array of known size, the same key for those that share memory."""
    found: dict[Place, Hashable] = {}
    end, number = 0, 0
    for place, offset in sorted(plan.offsets.items(), key=lambda item: item[1]):
        if offset >= end:
            number += 1
        end = max(end, offset + max(1, rounded(place.room)))
        found[place] = ("workspace", number)
    return found
