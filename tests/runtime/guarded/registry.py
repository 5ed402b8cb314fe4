"""The table of calls that are tried: for each an op, and how its arguments are chosen.

A `Call` is a function of tensors with everything else chosen; it can be called on many arrays of
the same ranks and dtypes, good and bad ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

FLOATS = ("float32", "float32", "float64", "float16")
INTS = ("int32", "int64", "uint8", "int16")
REALS = (*FLOATS, *INTS)
ANY = (*REALS, "bool", "complex64")
DIMS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33)


@dataclass
class Input:
    """An array argument: its dtype, the shape that fits, and the integers that do (below `limit`).

    known: how many of its last dims decide the rank of a result, and stay as they are.
    """

    dtype: str
    shape: tuple[int, ...]
    limit: int | None = None
    known: int = 0
    finite: bool = False  # NaN and infinity tell where zeros are multiplied

    @property
    def open_dims(self) -> list[int | None]:
        free = len(self.shape) - self.known
        return [None] * free + list(self.shape[free:])


@dataclass
class Call:
    """A function of tensors and arguments that fit it."""

    text: str
    function: Callable[..., Any]
    inputs: list[Input]
    differentiable: bool = True
    compares: str = "values"  # or "shapes", for random numbers
    raises: str = "the same"  # or "anything", for functions that are NumPy's own eagerly
    extra: dict[str, Any] = field(default_factory=dict)


Maker = Callable[[Random], Call]
CALLS: dict[str, Maker] = {}


def call(make: Maker) -> Maker:
    """Register what makes random calls of one op, under the name of the function."""
    CALLS[make.__name__.strip("_")] = make
    return make


def dim(r: Random) -> int:
    return r.choice(DIMS)


def dims(r: Random, low: int = 0, high: int = 4) -> tuple[int, ...]:
    return tuple(dim(r) for _ in range(r.randint(low, high)))


def axis(r: Random, rank: int) -> int:
    """An axis, now and then one that is not there."""
    return (
        r.randint(-rank - 1, rank) if r.random() < 0.15 or not rank else r.randint(-rank, rank - 1)
    )


def number(r: Random, low: int, high: int) -> int:
    """An int in a range, now and then beyond it or far beyond it."""
    chance = r.random()
    if chance < 0.05:
        return r.choice([-(2**63), 2**63 - 1, 2**31, -(2**31), 2**62, 10**6])
    if chance < 0.2:
        return r.choice([low - 1, low - 2, high + 1, high + 2, -1, 0])
    return r.randint(low, max(low, high))


def mutated(r: Random, inputs: list[Input]) -> list[np.ndarray]:
    """Arrays for the inputs: of their shapes, or of others of the same rank."""
    shapes = [list(i.shape) for i in inputs]
    chance = r.random()
    if chance < 0.35:  # another size throughout: what was equal stays equal
        old = r.choice([d for s in shapes for d in s] or [0])
        new = dim(r)
        shapes = [
            [new if d == old and k < len(s) - i.known else d for k, d in enumerate(s)]
            for i, s in zip(inputs, shapes, strict=True)
        ]
    elif chance < 0.65:
        place = r.randrange(len(shapes))
        shape, free = shapes[place], len(shapes[place]) - inputs[place].known
        if free:
            k = r.randrange(free)
            shape[k] = r.choice([0, 1, shape[k] + 1, max(shape[k] - 1, 0), dim(r), 40])
    return [values(r, i, tuple(s)) for i, s in zip(inputs, shapes, strict=True)]


def values(r: Random, given: Input, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(r.getrandbits(32))
    kind = np.dtype(given.dtype).kind
    if given.limit is not None:
        found = rng.integers(0, max(given.limit, 1), shape)
        if r.random() < 0.15 and found.size:
            found.reshape(-1)[r.randrange(found.size)] = r.choice([-1, given.limit, 100])
        return found.astype(given.dtype)
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(given.dtype)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -4, 9, shape).astype(given.dtype)
    found = np.round(rng.standard_normal(shape) * 2, 3)
    if r.random() < 0.1 and found.size and not given.finite:
        found.reshape(-1)[r.randrange(found.size)] = r.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return found.astype(given.dtype)
