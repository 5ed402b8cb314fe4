"""Random numbers of pipelines: a stream for each pass."""

from __future__ import annotations

import threading

import numpy as np


class Passes:
    """Counts the passes over a dataset, by any iterators of it."""

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 0

    def next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count


def generator_for(seeds: tuple[int, int], number: int = 0) -> np.random.Generator:
    """The stream number `number` for two seeds."""
    key = np.array([s % (1 << 64) for s in seeds], np.uint64)
    counter = np.array([0, 0, 0, number], np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=key))
