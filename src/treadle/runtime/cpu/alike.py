"""Calls of routines that are alike: what is the best form of one of them is that of all."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from treadle.runtime.cpu.library_text import SLOTS
from treadle.runtime.cpu.target import Target

MOST = 10  # candidates that are worth trying out

Form: TypeAlias = Any  # a record of integers, of a class for each kind of routine


class Alike(ABC):
    """A class of calls, given by one of known sizes that stands for it."""

    @property
    @abstractmethod
    def element(self) -> str:
        """The type of its operands' elements."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Names the class: the kind of routine, then whatever the time of a call depends on."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The call, for people to read."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of the operands and of the result."""

    @abstractmethod
    def rule(self, target: Target) -> Form:
        """The form that is chosen without trying."""

    @abstractmethod
    def forms(self, target: Target, threads: int) -> set[Form]:
        """Everything that may be chosen, the rule's form among it; empty where nothing can be."""

    @abstractmethod
    def form(self, numbers: Sequence[int]) -> Form:
        """The form with these numbers.

        Raises:
            TypeError: so many numbers make no form.
        """

    @abstractmethod
    def cost(self, form: Form, target: Target, threads: int) -> float:
        """About how many cycles the thread takes that has most to do: for a call, or for as much
        as calls are counted by. It is an order among forms, not a prediction."""

    def candidates(self, target: Target, threads: int) -> list[Form]:
        """The rule's form, then others, those first that the cost model takes for the fastest."""
        every = self.forms(target, threads)
        if not every:
            return []
        first = self.rule(target)
        ranked = sorted(every - {first}, key=lambda f: (self.cost(f, target, threads), str(f)))
        return [first, *ranked[: MOST - 1]]


def text_of(alike: Alike, threads: int) -> str:
    """Names a class of calls that so many threads share."""
    return f"{alike.name} threads={threads}"


def slot_of(text: str) -> int:
    """Where the calls of a class are counted. Classes may share a slot."""
    return zlib.crc32(text.encode()) % SLOTS
