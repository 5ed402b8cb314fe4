"""Dataclasses among the arguments: their fields are read, and what is assigned to them reaches the
caller's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import treadle as td


@dataclass
class Particle:
    mass: float
    place: Any
    steps: int = 3
    seen: list[float] = field(default_factory=list)


def read(p: Any) -> Any:
    return p.mass * p.place.sum() + p.steps


def moved(p: Any) -> Any:
    for v in p.place:
        if v > 1:
            p.mass += v
    p.place[0] = 5.0
    p.steps = 7
    p.place = p.place * 2
    return p.mass


def listed(p: Any) -> Any:
    for v in p.place:
        p.seen.append(float(v))
    return len(p.seen)


def made(p: Any) -> Any:
    other = Particle(p.mass * 2, p.place, p.steps)
    return other.mass, other.steps


@pytest.mark.parametrize("function", [read, moved, listed, made])
def test_as_python_does(function):
    jitted = td.jit(function)
    for mass in (2.0, 3.5):
        own, given = Particle(mass, np.arange(4.0)), Particle(mass, np.arange(4.0))
        assert jitted(own) == function(given)
        assert (own.mass, own.steps, own.seen) == (given.mass, given.steps, given.seen)
        np.testing.assert_array_equal(own.place, given.place)


def test_a_frozen_one():
    @dataclass(frozen=True)
    class Rate:
        value: float
        times: int

    @td.jit
    def product(rate):
        return rate.value * rate.times

    assert [product(Rate(1.5, n)) for n in (3, 4, 5)] == [4.5, 6.0, 7.5]
