"""What a NumPy program of the benchmark is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """A kernel as people write it for NumPy or Numba, run unchanged by all of them.

    Attributes:
        function: the kernel.
        arguments: ``arguments(size)`` gives what it is called with.
        size: the size that is measured.
        small: a size for tests.
    """

    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    size: int
    small: int

    @property
    def name(self) -> str:
        return self.function.__name__


def rng(size: int) -> np.random.Generator:
    """The same numbers for every run."""
    return np.random.default_rng(size)


def positive_definite(n: int) -> Any:
    """A symmetric matrix that can be factorised."""
    a = rng(n).normal(size=(n, n))
    return a @ a.T + n * np.eye(n)
