"""``td.experimental.numpy.random``: random numbers as NumPy calls them, of the streams of
``td.random``."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.ops.random import distributions, families
from treadle.ops.random.state import set_seed

__all__ = [
    "poisson", "rand", "randint", "randn", "random", "seed", "standard_normal", "uniform",
]  # fmt: skip


def _shape(size: Any) -> Any:
    return () if size is None else size if hasattr(size, "__len__") else (size,)


def rand(*size: int) -> Tensor:
    """Uniform in [0, 1), float64, of the shape `size`."""
    return distributions.uniform(size, dtype=dtypes.float64)


def random(size: Any = None) -> Tensor:
    """Uniform in [0, 1), float64."""
    return distributions.uniform(_shape(size), dtype=dtypes.float64)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    """Uniform in [low, high), float64, for scalar limits."""
    return distributions.uniform(_shape(size), low, high, dtypes.float64)


def randn(*args: int) -> Tensor:
    """Normal numbers, float64, of the shape `args`."""
    return distributions.normal(args, dtype=dtypes.float64)


def standard_normal(size: Any = None) -> Tensor:
    """Normal numbers, float64."""
    return distributions.normal(_shape(size), dtype=dtypes.float64)


def randint(
    low: int, high: int | None = None, size: Any = None, dtype: Any = dtypes.int64
) -> Tensor:
    """Integers in [low, high), or in [0, low) without `high`."""
    first, end = (0, low) if high is None else (low, high)
    return distributions.uniform(_shape(size), first, end, dtypes.as_dtype(dtype))


def poisson(lam: Any = 1.0, size: Any = None) -> Tensor:
    """Numbers of the Poisson distribution with the scalar mean `lam`, int64."""
    return families.poisson(_shape(size), lam, dtypes.int64)


def seed(s: int) -> None:
    """`td.random.set_seed`."""
    set_seed(s)
