"""Dynamic programming, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, rng


def edit_distance(a: Any, b: Any) -> Any:
    n, m = a.shape[0], b.shape[0]
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def longest_common_subsequence(a: Any, b: Any) -> Any:
    n, m = a.shape[0], b.shape[0]
    c = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                c[i, j] = c[i - 1, j - 1] + 1
            else:
                c[i, j] = max(c[i - 1, j], c[i, j - 1])
    return c[n, m]


def knapsack(weights: Any, values: Any, capacity: int) -> Any:
    best = np.zeros(capacity + 1)
    for i in range(weights.shape[0]):
        w = weights[i]
        for c in range(capacity, w - 1, -1):
            taken = best[c - w] + values[i]
            if taken > best[c]:
                best[c] = taken
    return best[capacity]


def matrix_chain(sizes: Any) -> Any:
    n = sizes.shape[0] - 1
    cost = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best = np.inf
            for k in range(i, j):
                here = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                best = min(best, here)
            cost[i, j] = best
    return cost[0, n - 1]


def smith_waterman(a: Any, b: Any) -> Any:
    n, m = a.shape[0], b.shape[0]
    h = np.zeros((n + 1, m + 1))
    best = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            score = 3.0 if a[i - 1] == b[j - 1] else -3.0
            found = max(0.0, h[i - 1, j - 1] + score, h[i - 1, j] - 2.0, h[i, j - 1] - 2.0)
            h[i, j] = found
            if found > best:
                best = found
    return best


def viterbi(start: Any, step: Any, emit: Any, seen: Any) -> Any:
    n, t = start.shape[0], seen.shape[0]
    score = start + emit[:, seen[0]]
    came = np.zeros((t, n), dtype=np.int64)
    for k in range(1, t):
        new = np.zeros(n)
        for j in range(n):
            ways = score + step[:, j]
            best = np.argmax(ways)
            came[k, j] = best
            new[j] = ways[best] + emit[j, seen[k]]
        score = new
    path = np.zeros(t, dtype=np.int64)
    path[t - 1] = np.argmax(score)
    for k in range(t - 1, 0, -1):
        path[k - 1] = came[k, path[k]]
    return path


def _letters(n: int) -> Any:
    return rng(n).integers(0, 4, n)


def _logs(shape: tuple[int, ...], seed: int) -> Any:
    return np.log(rng(seed).random(shape) + 0.01)


PROGRAMS = [
    Program(edit_distance, lambda n: (_letters(n), _letters(n + 3)), 600, 8),
    Program(longest_common_subsequence, lambda n: (_letters(n), _letters(n + 3)), 600, 8),
    Program(
        knapsack,
        lambda n: (rng(n).integers(1, 30, n), rng(n + 1).random(n), 10 * n), 150, 6,
    ),
    Program(matrix_chain, lambda n: (rng(n).integers(1, 50, n + 1).astype(float),), 100, 6),
    Program(smith_waterman, lambda n: (_letters(n), _letters(n + 5)), 600, 8),
    Program(
        viterbi,
        lambda n: (
            _logs((n,), 1), _logs((n, n), 2), _logs((n, 6), 3), rng(4).integers(0, 6, 8 * n)
        ),
        24, 4,
    ),
]  # fmt: skip
