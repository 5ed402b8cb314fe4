"""Stencils in one to three dimensions, in place and between two arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, rng


def heat_rod(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        v[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u[1:-1] = v[1:-1] + 0.2 * (v[2:] - 2.0 * v[1:-1] + v[:-2])


def heat_plate(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1])
        u[1:-1, 1:-1] = 0.25 * (v[1:-1, 2:] + v[1:-1, :-2] + v[2:, 1:-1] + v[:-2, 1:-1])


def heat_block(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        v[1:-1, 1:-1, 1:-1] = u[1:-1, 1:-1, 1:-1] + 0.1 * (
            u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
            + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6.0 * u[1:-1, 1:-1, 1:-1]
        )  # fmt: skip
        u[1:-1, 1:-1, 1:-1] = v[1:-1, 1:-1, 1:-1]


def gauss_seidel(u: Any, steps: int) -> None:
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def wave(before: Any, now: Any, steps: int) -> Any:
    for _ in range(steps):
        after = 2.0 * now - before
        after[1:-1, 1:-1] += 0.1 * (
            now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4.0 * now[1:-1, 1:-1]
        )
        before, now = now, after
    return now


def game_of_life(cells: Any, steps: int) -> Any:
    n, m = cells.shape
    now = cells.copy()
    after = np.zeros_like(cells)
    for _ in range(steps):
        for i in range(n):
            for j in range(m):
                alive = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            alive += now[(i + di) % n, (j + dj) % m]
                if alive == 3 or (alive == 2 and now[i, j] == 1):
                    after[i, j] = 1
                else:
                    after[i, j] = 0
        now, after = after, now
    return now


def electric_field(ex: Any, ey: Any, hz: Any, steps: int) -> None:
    for _ in range(steps):
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


PROGRAMS = [
    Program(heat_rod, lambda n: (rng(n).random(n), np.zeros(n), 500), 4000, 9),
    Program(
        heat_plate, lambda n: (rng(n).random((n, n)), rng(n).random((n, n)), 50), 250, 7
    ),
    Program(heat_block, lambda n: (rng(n).random((n, n, n)), np.zeros((n, n, n)), 20), 40, 5),
    Program(gauss_seidel, lambda n: (rng(n).random((n, n)), 20), 120, 6),
    Program(wave, lambda n: (np.zeros((n, n)), rng(n).random((n, n)), 40), 200, 7),
    Program(game_of_life, lambda n: (rng(n).integers(0, 2, (n, n)), 10), 100, 8),
    Program(
        electric_field,
        lambda n: (np.zeros((n, n)), np.zeros((n, n)), rng(n).random((n, n)), 30), 250, 7,
    ),
]  # fmt: skip
