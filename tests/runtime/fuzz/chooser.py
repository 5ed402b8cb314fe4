"""Picks operands for random steps out of the values there are, or asks for new inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
WIDE = ("float32", "float64")
INTS = ("int32", "int64")


class NoChoice(Exception):
    """No value there fits; another step may."""


@dataclass
class Chooser:
    """What may be chosen from.

    Attributes:
        arrays: the values in scope, as they come out eagerly.
        fresh: makes an input from an array and gives its number.
        floats: the floating dtypes that new values may have.
        trips: the iterations of the innermost loop, if a step is inside one.
        counter: the number of that loop's counter.
    """

    rng: np.random.Generator
    arrays: dict[int, Any]
    fresh: Callable[[Any], int]
    exact: bool
    dims: Sequence[int]
    floats: Sequence[str]
    trips: int | None = None
    counter: int | None = None

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, options: Sequence[Any]) -> Any:
        if not options:
            raise NoChoice
        return options[int(self.rng.integers(len(options)))]

    def value(
        self,
        dtypes: Sequence[str] = (*FLOATS, *INTS),
        low: int = 0,
        high: int = 4,
        test: Callable[[Any], bool] = lambda array: True,
    ) -> int:
        """A value of one of the dtypes and of a rank from low to high; late ones are likelier."""
        fits = [
            v
            for v, a in self.arrays.items()
            if a.dtype.name in dtypes and low <= a.ndim <= high and a.size and test(a)
        ]
        if not fits:
            raise NoChoice
        return self.pick(fits[-4:] if self.chance(0.5) else fits)

    def shape(self, value: int) -> tuple[int, ...]:
        return tuple(self.arrays[value].shape)

    def dtype(self, value: int) -> str:
        return str(self.arrays[value].dtype.name)

    def axis(self, value: int) -> int:
        """An axis, counted from either end."""
        rank = self.arrays[value].ndim
        return self.integer(-rank, rank - 1)

    def axes(self, value: int) -> Any:
        """Some axes: None, one, or several in order."""
        rank = self.arrays[value].ndim
        if rank == 0 or self.chance(0.25):
            return None
        if self.chance(0.5):
            return self.axis(value)
        count = self.integer(1, rank)
        return sorted(int(a) for a in self.rng.choice(rank, count, replace=False))

    def partner(self, value: int, dtypes: Sequence[str] | None = None) -> int:
        """A value of the same dtype that broadcasts with `value` to no more than 4 axes."""
        array = self.arrays[value]
        wanted = (array.dtype.name,) if dtypes is None else dtypes

        def fits(other: Any) -> bool:
            try:
                size = int(np.prod(np.broadcast_shapes(array.shape, other.shape)))
            except ValueError:
                return False
            return size <= 4 * max(array.size, other.size)

        if self.chance(0.85):
            try:
                return self.value(wanted, test=fits)
            except NoChoice:
                pass
        return self.new(self.broadcastable(array.shape), self.pick(wanted))

    def alike(self, value: int, test: Callable[[Any], bool]) -> int:
        """Another value of the dtype of `value`, or an input of its very shape."""
        try:
            return self.value((self.dtype(value),), test=test)
        except NoChoice:
            return self.new(self.shape(value), self.dtype(value))

    def broadcastable(self, shape: Sequence[int]) -> tuple[int, ...]:
        kept = [d if self.chance(0.6) else 1 for d in shape]
        return tuple(kept[self.integer(0, len(kept)) :]) if self.chance(0.5) else tuple(kept)

    def new(self, shape: Sequence[int], dtype: str) -> int:
        """A new input of the program."""
        return self.fresh(self.data(tuple(shape), dtype))

    def positions(self, shape: Sequence[int], limit: int) -> int:
        """A new input of positions below a limit."""
        dtype = self.pick(INTS)
        return self.fresh(self.rng.integers(0, limit, tuple(shape)).astype(dtype))

    def data(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Small whole numbers where results are to be exact, otherwise normally distributed."""
        from treadle.core.dtypes import as_dtype

        if dtype == "bool":
            return self.rng.random(shape) < 0.5
        if self.exact or dtype in INTS:
            numbers = self.rng.integers(-3, 4, shape)
        else:
            numbers = self.rng.standard_normal(shape)
        return np.asarray(numbers).astype(as_dtype(dtype).np_dtype)
