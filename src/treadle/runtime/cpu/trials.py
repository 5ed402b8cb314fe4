"""Trying out candidates: products on scratch operands, in rounds of which each runs all of them."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treadle.core.tensor import NDArray
from treadle.runtime.cpu.library import product_share
from treadle.runtime.cpu.library_code import routine_address, table_address
from treadle.runtime.cpu.matmul.candidates import candidates
from treadle.runtime.cpu.matmul.classes import sizes
from treadle.runtime.cpu.matmul.tiling import Choice, Product
from treadle.runtime.cpu.target import Target

ROUNDS = 9
ENOUGH = 0.0005  # seconds of a run of one candidate
WORTH = 1.04  # times as fast as the rule's choice: what gains less may be noise
HOPELESS = 0.85  # as fast after two rounds: others are tried instead

_DTYPES: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
_LINE = 64  # bytes


class Scratch:
    """Operands and a result that nobody needs."""

    def __init__(self, product: Product) -> None:
        a, b, c = sizes(product)
        dtype = _DTYPES[product.element]
        self.arrays: list[NDArray] = [np.ones(-(-n // dtype().itemsize), dtype) for n in (a, b, c)]
        if product.pairs:
            self.arrays = [np.full(array.shape, 0x3F803F80, np.int32) for array in self.arrays]


class Trial:
    """One candidate for a product, which can be run: the share of the thread that has most to do,
    on the caller alone. So other threads and other programs hardly matter, and pools stay free.

    Args:
        workers: threads that share the product.
    """

    def __init__(self, product: Product, choice: Choice, scratch: Scratch, workers: int) -> None:
        self.choice = choice
        routine, units = product_share(product, choice)
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2)
        self._routine = kind(routine_address(routine.symbol))
        size = routine.workspace(1)
        assert isinstance(size, int)
        self._numbers = np.array(routine.numbers, np.int64)
        self.space = np.zeros(size + _LINE, np.uint8)
        pointers = [array.ctypes.data for array in scratch.arrays]
        self._operands = np.array([*pointers, 0, 0], np.int64)
        begin = -(-self.space.ctypes.data // _LINE) * _LINE
        self._arguments = (
            table_address(1), self._operands.ctypes.data, self._numbers.ctypes.data, begin
        )  # fmt: skip
        self._share = (units * (workers - 1) // workers, units)

    def run(self) -> None:
        """Compute the share once."""
        self._routine(*self._arguments, *self._share)


class Contest:
    """Candidates for a product, tried out in steps.

    Attributes:
        product, target, workers: what is computed, on which machine, by how many threads.
        seconds: the best time of each candidate.
        gains: how many times as fast as the rule's each of them was: in the middle of the rounds,
            or by the best times, whichever is less; 1 at most where it was slower in more than a
            quarter of the rounds.
    """

    def __init__(
        self, product: Product, target: Target, workers: int,
        clock: Callable[[], float] = time.thread_time, rounds: int = ROUNDS,
    ) -> None:  # fmt: skip
        self.product, self.target, self.workers = product, target, workers
        self.choices = candidates(product, target, workers)
        self.seconds: dict[Choice, float] = {}
        self.gains: dict[Choice, float] = {}
        self._clock, self._rounds = clock, rounds

    def steps(self) -> Iterator[None]:
        """Steps of a candidate's compilation or of its runs in a round.

        Raises:
            MemoryError: there is no memory for the operands.
        """
        if len(self.choices) < 2:
            return
        scratch, trials = Scratch(self.product), []
        for choice in self.choices:
            trials.append(Trial(self.product, choice, scratch, self.workers))
            trials[-1].run()
            yield
        ratios: dict[Choice, list[float]] = {choice: [] for choice in self.choices}
        for number in range(self._rounds):
            first = 0.0
            for trial in list(trials):
                taken = self._time(trial)
                first = first or taken
                choice = trial.choice
                self.seconds[choice] = min(taken, self.seconds.get(choice, taken))
                ratios[choice].append(first / taken)
                if number == 1 and max(ratios[choice]) < HOPELESS:
                    trials.remove(trial)
                yield
        best = self.seconds[self.choices[0]]
        for choice, found in ratios.items():
            gain = min(statistics.median(found), best / self.seconds[choice])
            often = sum(ratio > 1 for ratio in found) * 4 >= len(found) * 3
            self.gains[choice] = gain if often else min(gain, 1.0)

    @property
    def winner(self) -> Choice:
        """The fastest, or the rule's choice where none is worth a change."""
        best = max(self.gains, key=lambda c: self.gains[c], default=None)
        return best if best is not None and self.gains[best] >= WORTH else self.choices[0]

    def _time(self, trial: Trial) -> float:
        """Seconds a run."""
        start, runs = self._clock(), 0
        while True:
            trial.run()
            runs += 1
            taken = self._clock() - start
            if taken >= ENOUGH:
                return taken / runs
