"""Notes for reports: which loops over Python values a trace rolled, and why not the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from treadle.core.origin import Origin

SHORT = "it is short"


class Refused(Exception):
    """The loop is left to Python."""


class Peel(Exception):
    """The next iteration is left to Python: its changes differ from those of later ones."""


@dataclass
class LoopNote:
    """Whether a loop over Python values was rolled, and why not.

    Attributes:
        origin: where it is.
        trips: how many iterations it has; None where only the running program knows.
        rolled: whether it is a loop of the graph.
        reason: why not.
        times: how often the loop was met.
    """

    origin: Origin | None
    trips: int | None
    rolled: bool
    reason: str = ""
    times: int = 1

    def __str__(self) -> str:
        place = "a loop" if self.origin is None else f"the loop in line {self.origin.line}"
        often = "" if self.times == 1 else f", {self.times} times"
        count = "" if self.trips is None else f" ({self.trips} iterations{often})"
        if self.rolled:
            return f"{place} is rolled{count}"
        return f"{place} is unrolled{count}: {self.reason}"


@dataclass
class Known:
    """The notes about the loops of one graph."""

    notes: dict[Any, LoopNote] = field(default_factory=dict)
    failures: dict[Any, int] = field(default_factory=dict)

    def note(self, code: Any, note: LoopNote) -> None:
        """Add a note about the loop with a body's code, counting equal ones."""
        key = code, note.rolled, note.reason
        before = self.notes.pop(key, None)
        if before is not None:
            note.times = before.times + 1
        self.notes[key] = note


_graphs: WeakKeyDictionary[Any, Known] = WeakKeyDictionary()


def known_of(graph: Any) -> Known:
    """The notes about the loops of a graph that is being traced."""
    return _graphs.setdefault(graph, Known())


def loop_notes(graph: Any) -> list[LoopNote]:
    """The loops over Python values that were met while a graph was traced, by their lines."""
    found = _graphs.get(graph)
    notes = [] if found is None else list(found.notes.values())
    return sorted(notes, key=lambda n: (0 if n.origin is None else n.origin.line, not n.rolled))
