"""Names that the user's code does not use."""

from __future__ import annotations

import itertools


class Names:
    """Hands out names that clash with no identifier of the function."""

    def __init__(self, used: set[str]) -> None:
        self._user = frozenset(used)
        self._taken = set(used)
        self.given: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """A variable of its own: `wanted`, numbered if it was given out or is the user's."""
        name = self._first_free(wanted, self._taken)
        self._taken.add(name)
        self.given.add(name)
        return name

    def helper(self, wanted: str) -> str:
        """A name for a function that is used at once: reused, numbered only if the user has it."""
        return self._first_free(wanted, self._user)

    @staticmethod
    def _first_free(wanted: str, taken: frozenset[str] | set[str]) -> str:
        if wanted not in taken:
            return wanted
        return next(n for i in itertools.count(1) if (n := f"{wanted}_{i}") not in taken)
