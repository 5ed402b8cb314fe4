"""The random numbers that a layer of images draws for one call."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras.random import SeedGenerator


class Draws:
    """Random numbers from td's generators, or from a seed that is a tensor.

    Args:
        seed: an int or None, for td's generators, whose numbers differ from call to call; or two
            ints as a tensor or from a `SeedGenerator`, from which the same numbers come each time.
    """

    def __init__(self, seed: Any) -> None:
        given = seed.next() if isinstance(seed, SeedGenerator) else seed
        self._fixed = given is not None and not isinstance(given, int)
        self._seed: Any = td.cast(given, td.int32) if self._fixed else given
        self._count = 0

    def _next(self) -> td.Tensor:
        self._count += 1
        return td.random.fold_in(self._seed, self._count)

    def uniform(self, shape: Any, low: Any, high: Any, dtype: Any = "float32") -> td.Tensor:
        """Numbers from `low` to below `high`; `shape` may have tensors among its sizes."""
        sizes: Any = td.stack(shape) if shape else []
        if self._fixed:
            return td.random.stateless_uniform(sizes, self._next(), low, high, dtype)
        return td.random.uniform(sizes, low, high, dtype, self._seed)

    def normal(self, shape: Any, dtype: Any = "float32") -> td.Tensor:
        """Normally distributed numbers of mean 0 and deviation 1."""
        if self._fixed:
            return td.random.stateless_normal(td.stack(shape), self._next(), dtype=dtype)
        return td.random.normal(td.stack(shape), dtype=dtype, seed=self._seed)

    def gamma(self, shape: Any, alpha: Any, dtype: Any = "float32") -> td.Tensor:
        """Gamma distributed numbers of that shape parameter."""
        sizes = td.stack(shape)
        if self._fixed:
            return td.random.stateless_gamma(sizes, self._next(), alpha=alpha, dtype=dtype)
        return td.random.gamma(sizes, alpha, dtype=dtype, seed=self._seed)

    def order(self, count: Any) -> td.Tensor:
        """The numbers from 0 to below `count` in another order."""
        if self._fixed:
            return td.argsort(td.random.stateless_uniform(td.stack([count]), self._next()))
        return td.random.shuffle(td.range(count), seed=self._seed)

    def signs(self, shape: Any) -> td.Tensor:
        """1 or -1, either as likely."""
        return td.where(self.uniform(shape, 0.0, 1.0) > 0.5, -1.0, 1.0)
