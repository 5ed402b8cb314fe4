"""Trying out candidates: calls on scratch operands, in rounds of which each runs all of them."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from treadle.core.tensor import NDArray
from treadle.runtime.cpu.alike import Alike, Form
from treadle.runtime.cpu.company import Company
from treadle.runtime.cpu.convolution.classes import Convolutions
from treadle.runtime.cpu.library import Routine, convolution_routine, product_share
from treadle.runtime.cpu.library_code import routine_address, table_of_caller
from treadle.runtime.cpu.library_text import WHOLE_BYTES
from treadle.runtime.cpu.matmul.classes import Products
from treadle.runtime.cpu.target import Target

ROUNDS = 9
ENOUGH = 0.0005  # seconds of a run of one candidate
COMPANY_ENOUGH = 0.002  # ... beside others, which take a part of that to begin
MOST_COMPANY = 7  # threads: so many keep any last-level cache busy
WORTH = 1.04  # times as fast as the rule's choice: what gains less may be noise
MOST_PLACES = 32  # operands of small calls stay in the caches of most programs, too
HOPELESS = 0.85  # as fast after two rounds: others are tried instead

_DTYPES: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64,
    **dict.fromkeys(WHOLE_BYTES, np.int8),
}  # fmt: skip
_LINE = 64  # bytes


class Scratch:
    """Operands and a result that nobody needs. They begin at cache lines, as those of programs do:
    vectors that do not are two loads, or stores, each, and some candidates do more of these."""

    def __init__(self, alike: Alike) -> None:
        dtype = _DTYPES[alike.element]
        self.arrays: list[NDArray] = [
            _ones(-(-size // dtype().itemsize), dtype) for size in alike.sizes
        ]
        if isinstance(alike, Products) and alike.product.pairs:
            for array in self.arrays:
                array.view(np.int32)[:] = 0x3F803F80


def _ones(count: int, dtype: Any) -> NDArray:
    """So many ones, from the beginning of a cache line."""
    lanes = _LINE // dtype().itemsize
    found = np.ones(count + lanes, dtype)
    first = -found.ctypes.data % _LINE // dtype().itemsize
    return found[first : first + count]


def routine_of(
    alike: Alike, form: Form, workers: int, worker: int
) -> tuple[Routine, tuple[int, ...]]:
    """The routine with which one of the threads of a call computes its share, and what it gets
    beside the usual arguments: the share of a product, nothing for convolutions, whose threads have
    images of their own."""
    if isinstance(alike, Products):
        routine, units = product_share(alike.product, form)
        return routine, (units * worker // workers, units * (worker + 1) // workers)
    assert isinstance(alike, Convolutions)
    return convolution_routine(alike.op, alike.geometry, form), ()


class Trial:
    """One candidate, which can be run: what one thread of a call does, on the caller. So pools stay
    free.

    Args:
        scratch: operands and results, which runs take in turn.
        workers: threads that share a call.
        worker: which of them this is, by default the last, which has most to do.
    """

    def __init__(
        self, alike: Alike, form: Form, scratch: Sequence[Scratch], workers: int,
        worker: int | None = None,
    ) -> None:  # fmt: skip
        self.form, self._scratch = form, scratch
        worker = workers - 1 if worker is None else worker
        routine, share = routine_of(alike, form, workers, worker)
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * len(share))
        self._routine = kind(routine_address(routine.symbol))
        size = routine.workspace(1)
        assert isinstance(size, int)
        self._numbers = np.array(routine.numbers, np.int64)
        self.space = np.zeros(size + _LINE, np.uint8)
        pointers = [[*(array.ctypes.data for array in one.arrays), 0, 0] for one in scratch]
        self._operands = np.array(pointers, np.int64)
        begin = -(-self.space.ctypes.data // _LINE) * _LINE
        self._arguments = itertools.cycle(
            (table_of_caller(), row.ctypes.data, self._numbers.ctypes.data, begin, *share)
            for row in self._operands
        )

    def run(self) -> None:
        """Compute it once."""
        self._routine(*next(self._arguments))


class Contest:
    """Candidates for a class of calls, tried out in steps; the best one has to win twice.

    Attributes:
        alike, target, workers: what is computed, on which machine, by how many threads.
        forms: the candidates, that of the rule first.
        seconds: the best time of each candidate.
        gains: how many times as fast as the rule's each of them was: in the middle of the rounds,
            or by the best times, whichever is less; 1 at most where it was slower in more than a
            quarter of the rounds.
    """

    def __init__(
        self, alike: Alike, target: Target, workers: int,
        clock: Callable[[], float] = time.thread_time, rounds: int = ROUNDS,
    ) -> None:  # fmt: skip
        self.alike, self.target, self.workers = alike, target, workers
        self.forms = alike.candidates(target, workers)
        self.seconds: dict[Form, float] = {}
        self.gains: dict[Form, float] = {}
        self._company: dict[Form, list[Callable[[], None]]] = {form: [] for form in self.forms}
        self._clock, self._rounds = clock, rounds

    def steps(self) -> Iterator[None]:
        """Steps of a candidate's compilation or of its runs in a round.

        Raises:
            MemoryError: there is no memory for the operands.
        """
        if len(self.forms) < 2:
            return
        scratch = [Scratch(self.alike)]
        yield from self._compared(self.forms, scratch)
        if self.winner != self.forms[0]:
            # In a program operands come from farther away or not, where they lie decides which of
            # their lines collide in a cache, and other threads work at the same call: the best form
            # has to win once more, in company, in other memory, of which the second-level cache
            # does not hold all.
            first = self.gains
            count = 2 * self.target.tuning.near // sum(self.alike.sizes) + 1
            scratch += [Scratch(self.alike) for _ in range(min(count, MOST_PLACES))]
            others = min(self.workers - 1, MOST_COMPANY)
            yield from self._compared([self.forms[0], self.winner], scratch[1:], others)
            self.gains = {form: min(gain, first[form]) for form, gain in self.gains.items()}

    def _compared(
        self, forms: list[Form], scratch: Sequence[Scratch], others: int = 0
    ) -> Iterator[None]:
        """Rounds over some forms, the rule's first, for their `seconds` and `gains`.

        Args:
            others: threads that compute other shares at the same time.
        """
        trials, self.gains = [], {}
        own = [self._scratch_of_other(scratch) for _ in range(others)]
        for form in forms:
            self.seconds.pop(form, None)
            trials.append(Trial(self.alike, form, scratch, self.workers))
            self._company[form] = [
                Trial(self.alike, form, places, self.workers, other).run
                for other, places in enumerate(own)
            ]
            trials[-1].run()
            yield
        ratios: dict[Form, list[float]] = {form: [] for form in forms}
        for number in range(self._rounds):
            first = 0.0
            for trial in list(trials):
                taken = self._time(trial)
                first = first or taken
                form = trial.form
                self.seconds[form] = min(taken, self.seconds.get(form, taken))
                ratios[form].append(first / taken)
                if number == 1 and max(ratios[form]) < HOPELESS:
                    trials.remove(trial)
                yield
        best = self.seconds[forms[0]]
        for form, found in ratios.items():
            gain = min(float(np.median(found)), best / self.seconds[form])
            often = sum(ratio > 1 for ratio in found) * 4 >= len(found) * 3
            self.gains[form] = gain if often else min(gain, 1.0)

    @property
    def winner(self) -> Form:
        """The fastest, or the rule's form where none is worth a change."""
        best = max(self.gains, key=lambda form: self.gains[form], default=None)
        return best if best is not None and self.gains[best] >= WORTH else self.forms[0]

    def _scratch_of_other(self, scratch: Sequence[Scratch]) -> Sequence[Scratch]:
        """What another thread works on: the same product, or images of its own."""
        return scratch if isinstance(self.alike, Products) else [Scratch(self.alike)]

    def _time(self, trial: Trial) -> float:
        """Seconds a run."""
        company = self._company[trial.form]
        enough = COMPANY_ENOUGH if company else ENOUGH
        with Company(company):
            start, runs = self._clock(), 0
            while True:
                trial.run()
                runs += 1
                taken = self._clock() - start
                if taken >= enough:
                    return taken / runs
