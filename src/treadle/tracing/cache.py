"""The traces of one function, by signature; a bounded number of them.

When there are too many, the one whose last use lies furthest back goes. Calls through plans only
set a flag, which is looked at when a trace has to go: which of the traces used since the last
eviction was used last is not known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.signature import Arguments
from treadle.tracing.static_values import ObjectKey


class Entry:
    """A trace in the cache.

    Attributes:
        concrete: the trace.
        arguments: the signature it was made for, without values.
        objects: for each of its keys, the objects in it that may die.
        symbols: captured tensors of another trace.
    """

    __slots__ = ("arguments", "concrete", "last_use", "objects", "symbols")

    def __init__(self, concrete: ConcreteFunction, arguments: Arguments, now: int) -> None:
        self.concrete = concrete
        self.arguments = arguments
        self.objects: list[list[ObjectKey]] = []
        captures: list[Any] = concrete.graph.captures
        self.symbols = [c for c in captures if getattr(c, "is_symbolic", False)]
        self.last_use = now

    @property
    def is_mortal(self) -> bool:
        """Whether it may get out of reach."""
        return bool(self.symbols) or all(self.objects)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no call can have one of its keys again: an object in them has died, or the trace
        around it, whose tensors it captured, has ended."""
        if any(map(_is_over, self.symbols)):
            return True
        return all(any(k.is_dead for k in objects) for objects in self.objects)


class TraceCache:
    """Entries by key. Whoever changes it holds the function's lock; `get` needs none."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, Entry] = {}
        self._open: list[Entry] = []  # traces that serve several types
        self._mortal: dict[Entry, None] = {}
        self._clock = itertools.count(1)

    def get(self, key: Hashable) -> Entry | None:
        """The trace for a key."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.last_use = next(self._clock)
        return entry

    def open_entry(self, arguments: Arguments) -> Entry | None:
        """A trace for more general types that serves these arguments."""
        return next((e for e in self._open if e.arguments.accepts(arguments)), None)

    def add(self, key: Hashable, concrete: ConcreteFunction, arguments: Arguments) -> Entry:
        """A new trace under its key."""
        entry = Entry(concrete, arguments.without_values(), next(self._clock))
        self.add_key(key, entry)
        if entry.arguments.is_general:
            self._open.append(entry)
        return entry

    def add_key(self, key: Hashable, entry: Entry) -> None:
        """One more key for a trace."""
        self._entries[key] = entry
        entry.objects.append(list(_objects(key)))
        if entry.is_mortal:
            self._mortal[entry] = None
        else:
            self._mortal.pop(entry, None)

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """All traces, oldest first."""
        return list(dict.fromkeys(e.concrete for e in list(self._entries.values())))

    def __len__(self) -> int:
        return len(self.concrete_functions)

    def out_of_reach(self) -> list[ConcreteFunction]:
        """Traces that no call can have any more."""
        return [e.concrete for e in self._mortal if e.is_out_of_reach]

    def excess(
        self, most: int, newest: Entry, was_called: Callable[[ConcreteFunction], bool]
    ) -> list[ConcreteFunction]:
        """Those not used for longest, which must go for at most `most` to be left.

        Args:
            newest: is about to be used.
            was_called: whether plans have called a trace since the last time.
        """
        entries = list(dict.fromkeys(self._entries.values()))
        if len(entries) <= most:
            return []
        for entry in sorted(entries, key=_last_use):
            if was_called(entry.concrete):
                entry.last_use = next(self._clock)
        newest.last_use = next(self._clock)
        return [e.concrete for e in sorted(entries, key=_last_use)[: len(entries) - most]]

    def remove(self, gone: Collection[ConcreteFunction]) -> None:
        """Drop traces."""
        removed = set(gone)
        for key, entry in list(self._entries.items()):
            if entry.concrete in removed:
                del self._entries[key]
        self._open = [e for e in self._open if e.concrete not in removed]
        self._mortal = {e: None for e in self._mortal if e.concrete not in removed}


def _last_use(entry: Entry) -> int:
    return entry.last_use


def _is_over(capture: Any) -> bool:
    builder = capture.recorder
    while builder.parent is not None:
        builder = builder.parent
    return bool(builder.finished)


def _objects(key: Any) -> Iterator[ObjectKey]:
    if isinstance(key, ObjectKey):
        yield key
    elif type(key) in (tuple, frozenset):
        for part in key:
            yield from _objects(part)
