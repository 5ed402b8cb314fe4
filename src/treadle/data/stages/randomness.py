"""Random numbers of pipelines: a stream for each pass."""

from __future__ import annotations

import numpy as np

from treadle.modes import lock


class Randomness:
    """The streams of random numbers of a stage, one for each pass.

    Every iterator over a dataset has a stage of its own, whose passes (a `repeat` makes several) do
    not depend on other iterators: `fork` gives it the next number of the dataset.

    Args:
        seeds: two numbers that decide all streams.
        again: each pass has a stream of its own; otherwise all have the same.
        iterator: the number of the iterator that this belongs to; 0 for the dataset itself.
        restarts: every iterator has the same streams.
    """

    def __init__(
        self, seeds: tuple[int, int], again: bool = False, iterator: int = 0,
        restarts: bool = False,
    ) -> None:  # fmt: skip
        self.seeds, self.again, self.iterator = seeds, again, iterator
        self.restarts = restarts
        self._lock, self._count = lock(), 0

    def _next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def fork(self) -> Randomness:
        """The streams of a new iterator."""
        number = 0 if self.restarts else self._next()
        return Randomness(self.seeds, self.again, number, self.restarts)

    def generator(self) -> np.random.Generator:
        """The stream of the next pass."""
        key = np.array([s % (1 << 64) for s in self.seeds], np.uint64)
        place = (self._next(), self.iterator) if self.again else (0, 0)
        counter = np.array([0, 0, *place], np.uint64)
        return np.random.Generator(np.random.Philox(counter=counter, key=key))

    def skip(self, passes: int) -> None:
        """Leave out the streams of some passes."""
        with self._lock:
            self._count += passes

    def state(self) -> list[int]:
        """What `restored` makes the streams of an iterator of that has not begun."""
        return [*self.seeds, self.iterator]

    def restored(self, state: list[int]) -> Randomness:
        first, second, iterator = state
        return Randomness((first, second), self.again, iterator, self.restarts)
