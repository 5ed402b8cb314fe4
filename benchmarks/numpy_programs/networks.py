"""Small neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, rng


def train_perceptron(x: Any, y: Any, w1: Any, w2: Any, steps: int) -> Any:
    loss = 0.0
    for _ in range(steps):
        hidden = np.tanh(np.dot(x, w1))
        error = np.dot(hidden, w2) - y
        loss = np.sum(error * error) / x.shape[0]
        back = np.dot(error, w2.T) * (1.0 - hidden * hidden)
        w2 -= 0.01 / x.shape[0] * np.dot(hidden.T, error)
        w1 -= 0.01 / x.shape[0] * np.dot(x.T, back)
    return loss


def recurrent_network(xs: Any, w: Any, u: Any, h: Any) -> Any:
    for t in range(xs.shape[0]):
        h = np.tanh(np.dot(xs[t], w) + np.dot(h, u))
    return h


def softmax_rows(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        row = np.exp(x[i] - np.max(x[i]))
        out[i] = row / np.sum(row)
    return out


def self_organising_map(grid: Any, samples: Any) -> Any:
    for s in range(samples.shape[0]):
        best, found = 0, np.inf
        for k in range(grid.shape[0]):
            d = np.sum((grid[k] - samples[s]) ** 2)
            if d < found:
                best, found = k, d
        for k in range(grid.shape[0]):
            near = np.exp(-0.1 * (k - best) ** 2)
            grid[k] += 0.1 * near * (samples[s] - grid[k])
    return grid


PROGRAMS = [
    Program(
        train_perceptron,
        lambda n: (
            rng(n).normal(size=(n, 16)), rng(n + 1).normal(size=(n, 2)),
            rng(n + 2).normal(size=(16, 32)), rng(n + 3).normal(size=(32, 2)), 100,
        ),
        64, 6,
    ),
    Program(
        recurrent_network,
        lambda n: (
            rng(n).normal(size=(n, 16, 8)), rng(n + 1).normal(size=(8, 32)) * 0.1,
            rng(n + 2).normal(size=(32, 32)) * 0.1, np.zeros((16, 32)),
        ),
        200, 5,
    ),
    Program(softmax_rows, lambda n: (rng(n).normal(size=(n, 100)),), 1000, 6),
    Program(
        self_organising_map,
        lambda n: (rng(n).normal(size=(30, 4)), rng(n + 1).normal(size=(n, 4))), 500, 6,
    ),
]  # fmt: skip
