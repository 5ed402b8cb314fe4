"""One interrupt: a scene is begun, interrupted, and must then work, as must a fresh one."""

from __future__ import annotations

import random
import time
import traceback
from dataclasses import dataclass
from typing import Any

from tests.runtime.interrupts.inject import at_place, by_signal, count_places
from tests.runtime.interrupts.left import Baseline
from tests.runtime.interrupts.scenes import SCENES, check


@dataclass
class Fault:
    """What was wrong after the interrupt of a seed."""

    seed: int
    scene: str
    where: str
    what: str


class Storm:
    """Interrupts one seed after the other in this process.

    Attributes:
        hits: how many interrupts there were; the other scenes were done before.
    """

    def __init__(self) -> None:
        self.baseline = Baseline()
        self.places: dict[tuple[str, bool], int] = {}
        self.seconds: dict[str, float] = {}
        self.hits = 0
        self._constants = iter(range(10**9))

    def constant(self) -> float:
        """One that no earlier function has: it is compiled anew."""
        return 1.0 + next(self._constants) % 2**20 / 2**20

    def measure(self, name: str) -> None:
        """How long a scene is, in places and seconds, when what a process does once is done."""
        for _run in range(2):
            begin, _ = SCENES[name](self.constant())
            start = time.perf_counter()
            begin()
            self.seconds[name] = time.perf_counter() - start
        begin, _ = SCENES[name](self.constant())
        self.places[name, False], self.places[name, True] = count_places(begin)

    def interrupt(self, seed: int, times: int) -> list[Fault]:
        """Interrupt a scene so many times, one after the other, and see that everything works."""
        chance = random.Random(seed)
        self._constants = iter(range(8 * seed, 8 * seed + 8))
        name = chance.choice(list(SCENES))
        if name not in self.seconds:
            self.measure(name)
        begin, wanted = SCENES[name](self.constant())
        places, faults = [], []
        for _ in range(times):
            if chance.random() < 0.6:
                delicate = chance.random() < 0.5
                number = chance.randrange(self.places[name, delicate])
                where = at_place(begin, number, delicate)
            else:
                where = by_signal(begin, chance.uniform(1e-4, self.seconds[name]))
            if not where:
                break  # it has come to its end
            places.append(where)
            self.hits += 1
            faults += [f"left at {where}: {text}" for text in self._left()]
        faults += filter(None, [self._works(begin, wanted)])
        if chance.random() < 0.2:
            faults += filter(None, [self._works(*SCENES[name](self.constant()))])
        faults += [f"left later: {text}" for text in self._left()]
        return [Fault(seed, name, "; ".join(places), text) for text in faults]

    def _left(self) -> list[str]:
        found = self.baseline.differences()
        if found:
            self.baseline = Baseline()  # told once
        return found

    def _works(self, begin: Any, wanted: Any) -> str:
        """What is wrong with what a scene computes, or ""."""
        try:
            return check(begin(), wanted)
        except BaseException:
            return traceback.format_exc(limit=-8)
