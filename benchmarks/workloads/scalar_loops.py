"""Loops over single elements: dynamic programming, sweeps, graphs, sorting, sparse products."""

import numpy as np

from benchmarks import scalar_programs as programs
from benchmarks.workload import Workload

F8, I4 = np.float64, np.int32


class ScalarLoop(Workload):
    """A program of `benchmarks.scalar_programs`; `data(random, n)` makes its arguments."""

    kinds = ("CPU",)
    tolerance = 1e-9
    without = ("treadle-eager", "tf", "tf-xla")  # an op or a copy of the array for each element

    def arguments(self, n=None):
        return self.data(np.random.default_rng(0), n or self.n)

    def tf2(self, td, function):
        program = self.program(
            td.range, td.identity, lambda shape: td.zeros(shape, td.int32), td.zeros_like
        )
        return function(program), *(td.constant(a) for a in self.arguments())

    def numba(self, numba):
        return numba.njit(self.program(range, *map(numba.njit, ARRAYS))), *self.arguments()


# What makes arrays in Numba and in plain Python.
ARRAYS = (lambda x: np.copy(x), lambda shape: np.zeros(shape, I4), lambda x: np.zeros_like(x))


def integers(random, low, high, shape):
    return random.integers(low, high, shape).astype(I4)


def numbers(random, *shape):
    return random.random(shape)


def sparse(random, n):
    columns, starts = integers(random, 0, n, 20 * n), np.arange(0, 20 * n + 1, 20, dtype=I4)
    return numbers(random, 20 * n), columns, starts, numbers(random, n)


def bounded(random, n):
    """A tridiagonal system that is dominated by its diagonal."""
    a, b, c, d = (numbers(random, n) for _ in range(4))
    return a, b + 4, c, d


def grid(random, n):
    return (numbers(random, n, n) < 0.3).astype(I4), I4((n * n + n) // 2)


_DATA = {
    programs.gauss_seidel: (200, lambda r, n: (numbers(r, n, n), I4(10))),
    programs.lcs: (600, lambda r, n: (integers(r, 0, 4, n), integers(r, 0, 4, n))),
    programs.edit_distance: (600, lambda r, n: (integers(r, 0, 4, n), integers(r, 0, 4, n))),
    programs.floyd_warshall: (150, lambda r, n: (numbers(r, n, n),)),
    programs.mandelbrot: (
        120,
        lambda r, n: (np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n), I4(100)),
    ),
    programs.histogram: (200_000, lambda r, n: (numbers(r, n), F8(64))),
    programs.sparse_product: (2000, sparse),
    programs.prefix_sums: (200_000, lambda r, n: (numbers(r, n),)),
    programs.game_of_life: (200, lambda r, n: ((numbers(r, n, n) < 0.4).astype(I4), I4(10))),
    programs.union_find: (
        20_000,
        lambda r, n: (integers(r, 0, n, n), integers(r, 0, n, n), I4(n)),
    ),
    programs.sieve: (200_000, lambda r, n: (np.zeros(n, I4), I4(n))),
    programs.bubble_sort: (1000, lambda r, n: (numbers(r, n),)),
    programs.matrix_chain: (150, lambda r, n: (integers(r, 1, 50, n + 1),)),
    programs.matmul: (120, lambda r, n: (numbers(r, n, n), numbers(r, n, n))),
    programs.knapsack: (
        100,
        lambda r, n: (integers(r, 1, 100, n), integers(r, 1, 100, n), I4(5000)),
    ),
    programs.queens: (8, lambda r, n: (I4(n),)),
    programs.elimination: (150, lambda r, n: (numbers(r, n, n) + n * np.eye(n),)),
    programs.thomas: (50_000, bounded),
    programs.breadth_first: (300, grid),
    programs.dijkstra: (300, lambda r, n: (numbers(r, n, n), F8(1e9))),
    programs.collatz: (10_000, lambda r, n: (I4(n),)),
    programs.insertion_sort: (1000, lambda r, n: (numbers(r, n),)),
    programs.kadane: (200_000, lambda r, n: (numbers(r, n) - 0.5,)),
    programs.binary_search: (
        100_000,
        lambda r, n: (np.sort(numbers(r, n)), numbers(r, max(1, n // 10))),
    ),
}

WORKLOADS = [
    ScalarLoop(f"elements: {f.__name__.replace('_', ' ')}", program=f, n=n, data=data)
    for f, (n, data) in _DATA.items()
]
