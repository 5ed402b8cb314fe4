"""Random numbers in jitted functions: those of NumPy and Python, from the same generators."""
# ruff: noqa: NPY002

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import treadle as td

_own = np.random.RandomState(7)


def walk(n: Any) -> Any:
    place = 0.0
    for _ in range(n):
        if np.random.rand() < 0.5:
            place -= np.random.uniform(0.5, 2.0)
        elif np.random.randint(6) == 5:
            place += np.random.normal(1.0, 3.0)
        else:
            place += 1
    return place


def arrays(n: Any) -> Any:
    grid = np.random.rand(n, 3)
    return (
        grid + np.random.randn(n, 1), np.random.normal(grid), np.random.exponential(2.0, n),
        np.random.uniform(grid, 2.0), np.random.randint(3, 9, (2, n)),
        np.random.lognormal(0.0, 0.5), np.random.random((n,)),
        np.random.random_sample(), np.random.standard_normal(),
    )  # fmt: skip


def orders(n: Any) -> Any:
    x = np.arange(float(n))
    np.random.shuffle(x)
    grid = np.random.permutation(x.reshape(-1, 2))
    drawn = np.random.choice(x, 5)
    return (
        x, grid, np.random.permutation(n), drawn, np.random.choice(n),
        np.random.choice(4, 3, p=np.array([0.1, 0.2, 0.3, 0.4])),
        np.random.choice(x, 3, replace=False),
    )  # fmt: skip


def seeded(n: Any) -> Any:
    np.random.seed(n)
    return np.random.random(3), np.random.normal()


def own(n: Any) -> Any:
    return _own.normal(size=n), _own.randint(1 << 40), _own.uniform()


def of_python(n: Any) -> Any:
    hits = 0
    for _ in range(n):
        x, y = random.random(), random.uniform(-1.0, 1.0)
        hits += x * x + y * y < 1.0
    shuffled = [1.0, 2.0, 3.0, 4.0]
    random.shuffle(shuffled)
    return (
        hits, random.randint(1, 6), random.randrange(0, 100, 7), shuffled,
        random.choice([10, 20, 30]), random.expovariate(2.0), random.normalvariate(1.0, 2.0),
    )  # fmt: skip


def _leaves(value: Any) -> list[Any]:
    parts = list(value) if isinstance(value, tuple | list) else None
    return [value] if parts is None else [leaf for part in parts for leaf in _leaves(part)]


def _seed() -> None:
    np.random.seed(3)
    random.seed(3)
    _own.seed(3)


@pytest.mark.parametrize(
    "name",
    [
        "walk", "arrays", "orders", "seeded", "own", "of_python", "by_numpy", "modern",
        "made_inside", "of_python_with_a_seed",
    ],
)
def test_numbers_are_those_of_python(name: str) -> None:
    function = globals()[name]
    jitted = td.jit(function)
    wanted, found = [], []
    for run, into in ((function, wanted), (jitted, found)):
        _seed()
        for n in (700, 8, 8):
            into += _leaves(run(n))
        # The generators go on where the function has stopped.
        into += [np.random.random(), np.random.normal(), random.random(), _own.normal()]
    assert len(wanted) == len(found)
    for a, b in zip(wanted, found, strict=True):
        assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-15)
    assert jitted.experimental_get_tracing_count() <= 4


def test_generators_are_arguments_and_in_other_functions() -> None:
    @td.jit
    def draw(rng: Any, x: Any) -> Any:
        x[0] = rng.normal()
        return rng.uniform(1.0, 2.0) + x.sum()

    plain, generator = np.random.RandomState(1), np.random.RandomState(1)
    x, y = np.zeros(2), np.zeros(2)
    for _ in range(3):
        assert math.isclose(draw(generator, x), draw.python_function(plain, y), rel_tol=1e-14)
        assert x[0] == pytest.approx(y[0], rel=1e-14)

    @td.function
    def outer(n: Any) -> Any:
        return draw_two() + n

    @td.jit
    def draw_two() -> Any:
        return np.random.random() + np.random.random()

    np.random.seed(0)
    found = [float(outer(td.constant(1.0, td.float64))) for _ in range(2)]
    np.random.seed(0)
    assert found == pytest.approx([1.0 + np.random.random() + np.random.random() for _ in "ab"])


def test_what_is_not_drawn_is_refused() -> None:
    @td.jit
    def beta(n: Any) -> Any:
        return random.betavariate(1.0, 1.0) + n

    @td.jit
    def given(generator: Any) -> Any:
        return generator.normal()

    with pytest.raises(TypeError, match="random.betavariate draws .* .random has choice"):
        beta(3)
    with pytest.raises(TypeError, match="Generator.normal draws its numbers when Python runs"):
        given(np.random.Generator(np.random.SFC64(0)))


def by_numpy(n: Any) -> Any:
    """Distributions that NumPy draws when the program runs, between those of the program."""
    total = np.random.random()
    for i in range(n):
        if np.random.random() < 0.5:
            total += np.random.gamma(2.0 + i) - np.random.poisson(3.0)
    return (
        total, np.random.beta(2.0, 3.0, n), np.random.binomial(10, 0.5), np.random.normal(),
        np.random.multinomial(20, [0.2, 0.3, 0.5], size=2), np.random.dirichlet(np.ones(3)),
        np.random.triangular(-1.0, 0.0, 1.0, (n, 2)), np.random.choice(n + 9, 3, replace=False),
    )  # fmt: skip


def modern(n: Any) -> Any:
    rng = np.random.default_rng(n)
    grid = rng.random((n, 2))
    order = rng.permutation(grid)
    return (
        grid, order, rng.normal(grid), rng.uniform(-1.0, 1.0), rng.integers(3, 9, (2, n)),
        rng.integers(1 << 40), rng.exponential(2.0, n), rng.standard_normal(), rng.choice(7),
        rng.choice(grid[:, 0], 2), rng.lognormal(0.0, 0.5), rng.poisson(2.0, n),
        rng.standard_gamma(3.0), rng.random(3, dtype=np.float32), rng.permuted(order[:, 0]),
        rng.integers(5, endpoint=True), rng.choice(4, p=np.array([0.1, 0.2, 0.3, 0.4])),
    )  # fmt: skip


def made_inside(n: Any) -> Any:
    """Generators that the function makes begin anew in each call."""
    old, own = np.random.RandomState(n), random.Random(5)
    return old.normal(size=2), old.randint(9), own.random(), own.choices([1.0, 2.0], [1, 3], k=3)


def of_python_with_a_seed(n: Any) -> Any:
    random.seed(n)
    found = random.random()
    random.seed(n + (1 << 40))
    return (
        found, random.getrandbits(40), random.sample([1, 2, 3, 4], 3), random.triangular(0.0, 2.0),
        random.choices([1, 2, 3], k=4), random.lognormvariate(0.0, 1.0),
        random.weibullvariate(1.0, 2.0), random.paretovariate(3.0),
    )  # fmt: skip


def test_a_generator_of_the_callers_goes_on() -> None:
    @td.jit
    def draw(rng: Any, n: Any) -> Any:
        total = 0.0
        for _ in range(n):
            total += rng.normal() if rng.random() < 0.5 else rng.integers(10)
        return total, rng.gamma(2.0)

    plain, generator = np.random.default_rng(2), np.random.default_rng(2)
    for n in (3, 50, 50):
        np.testing.assert_allclose(draw(generator, n), draw.python_function(plain, n), 1e-13)
    assert plain.random() == generator.random()


def test_a_generator_without_a_seed_is_another_one_in_each_call() -> None:
    @td.jit
    def fresh() -> Any:
        return np.random.default_rng().random()

    assert len({fresh() for _ in range(4)}) == 4


def test_numbers_that_python_keeps_for_the_next_time():
    def drawn(n):
        total = 0.0
        for i in range(n):
            total += random.gauss(0.5, 2.0) * i + random.random()
        return total

    def seeded(n):
        random.seed(n)
        return random.gauss(1.0, 2.0)

    for function in (drawn, seeded):
        jitted = td.jit(function)
        for n in (3, 4, 50):
            found = []
            for call in (function, jitted):
                random.seed(3)
                random.gauss(0.0, 1.0)
                found.append((call(n), random.gauss(0.0, 1.0), random.random()))
            assert found[0] == found[1]
