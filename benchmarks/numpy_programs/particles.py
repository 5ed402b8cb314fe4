"""Simulations of particles and differential equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, rng


def gravity(place: Any, speed: Any, mass: Any, steps: int) -> None:
    n = place.shape[0]
    for _ in range(steps):
        for i in range(n):
            force = np.zeros(3)
            for j in range(n):
                if i != j:
                    d = place[j] - place[i]
                    r = np.sqrt(np.sum(d * d)) + 0.01
                    force += mass[j] / (r * r * r) * d
            speed[i] += 0.001 * force
        place += 0.001 * speed


def gravity_by_arrays(place: Any, speed: Any, mass: Any, steps: int) -> None:
    for _ in range(steps):
        dx = place[:, 0].reshape(1, -1) - place[:, 0].reshape(-1, 1)
        dy = place[:, 1].reshape(1, -1) - place[:, 1].reshape(-1, 1)
        dz = place[:, 2].reshape(1, -1) - place[:, 2].reshape(-1, 1)
        inverse = (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5
        speed[:, 0] += 0.001 * np.dot(dx * inverse, mass)
        speed[:, 1] += 0.001 * np.dot(dy * inverse, mass)
        speed[:, 2] += 0.001 * np.dot(dz * inverse, mass)
        place += 0.001 * speed


def lennard_jones(place: Any, box: float) -> Any:
    n = place.shape[0]
    energy = 0.0
    for i in range(n - 1):
        for j in range(i + 1, n):
            r2 = 0.0
            for k in range(3):
                d = place[i, k] - place[j, k]
                d -= box * np.round(d / box)
                r2 += d * d
            if r2 < 6.25:
                inverse = 1.0 / (r2 * r2 * r2)
                energy += 4.0 * inverse * (inverse - 1.0)
    return energy


def lorenz(state: Any, steps: int) -> Any:
    path = np.zeros((steps, 3))
    x, y, z = state[0], state[1], state[2]
    for i in range(steps):
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x += 0.005 * dx
        y += 0.005 * dy
        z += 0.005 * dz
        path[i, 0] = x
        path[i, 1] = y
        path[i, 2] = z
    return path


def ising(spins: Any, draws: Any) -> Any:
    n = spins.shape[0]
    for k in range(draws.shape[0]):
        for i in range(n):
            for j in range(n):
                around = (spins[(i + 1) % n, j] + spins[(i - 1) % n, j]
                          + spins[i, (j + 1) % n] + spins[i, (j - 1) % n])  # fmt: skip
                change = 2.0 * spins[i, j] * around
                if change < 0.0 or draws[k, i, j] < np.exp(-change * 0.44):
                    spins[i, j] = -spins[i, j]
    return np.sum(spins)


def option_price(spot: float, strike: float, steps: int) -> Any:
    up = np.exp(0.2 * np.sqrt(1.0 / steps))
    p = (np.exp(0.05 / steps) - 1.0 / up) / (up - 1.0 / up)
    discount = np.exp(-0.05 / steps)
    values = np.maximum(strike - spot * up ** (2.0 * np.arange(steps + 1) - steps), 0.0)
    for i in range(steps - 1, -1, -1):
        held = discount * (p * values[1 : i + 2] + (1.0 - p) * values[: i + 1])
        now = np.maximum(strike - spot * up ** (2.0 * np.arange(i + 1) - i), 0.0)
        values[: i + 1] = np.maximum(held, now)
    return values[0]


PROGRAMS = [
    Program(
        gravity,
        lambda n: (rng(n).normal(size=(n, 3)), np.zeros((n, 3)), rng(n + 1).random(n), 4), 60, 5,
    ),
    Program(
        gravity_by_arrays,
        lambda n: (rng(n).normal(size=(n, 3)), np.zeros((n, 3)), rng(n + 1).random(n), 5), 150, 6,
    ),
    Program(lennard_jones, lambda n: (rng(n).random((n, 3)) * 10.0, 10.0), 600, 9),
    Program(lorenz, lambda n: (np.array([1.0, 1.0, 1.0]), n), 20_000, 20),
    Program(
        ising,
        lambda n: (rng(n).choice(np.array([-1, 1]), (n, n)), rng(n + 1).random((5, n, n))), 64, 6,
    ),
    Program(option_price, lambda n: (100.0, 105.0, n), 500, 12),
]  # fmt: skip
