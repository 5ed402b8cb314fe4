"""Statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, rng


def correlation(data: Any) -> Any:
    n, m = data.shape
    centred = data - np.sum(data, 0) / n
    scale = np.sqrt(np.sum(centred * centred, 0))
    normal = centred / scale
    c = np.eye(m)
    for i in range(m - 1):
        for j in range(i + 1, m):
            c[i, j] = np.sum(normal[:, i] * normal[:, j])
            c[j, i] = c[i, j]
    return c


def moving_statistics(x: Any, width: int) -> Any:
    n = x.shape[0] - width + 1
    found = np.zeros((n, 2))
    for i in range(n):
        part = x[i : i + width]
        mean = np.sum(part) / width
        found[i, 0] = mean
        found[i, 1] = np.sqrt(np.sum((part - mean) ** 2) / width)
    return found


def histogram_by_element(x: Any, bins: int) -> Any:
    low, high = x.min(), x.max()
    counts = np.zeros(bins, dtype=np.int64)
    for i in range(x.shape[0]):
        k = int((x[i] - low) / (high - low) * bins)
        if k == bins:
            k -= 1
        counts[k] += 1
    return counts


def k_means(points: Any, centres: Any, steps: int) -> Any:
    n, k = points.shape[0], centres.shape[0]
    labels = np.zeros(n, dtype=np.int64)
    for _ in range(steps):
        for i in range(n):
            best = np.inf
            for j in range(k):
                distance = 0.0
                for d in range(points.shape[1]):
                    distance += (points[i, d] - centres[j, d]) ** 2
                if distance < best:
                    best = distance
                    labels[i] = j
        sums = np.zeros_like(centres)
        counts = np.zeros(k)
        for i in range(n):
            sums[labels[i]] += points[i]
            counts[labels[i]] += 1.0
        for j in range(k):
            if counts[j] > 0.0:
                centres[j] = sums[j] / counts[j]
    return labels


def logistic_regression(w: Any, x: Any, y: Any, steps: int) -> Any:
    for _ in range(steps):
        w = w - 0.01 * np.dot(1.0 / (1.0 + np.exp(-y * np.dot(x, w))) * y - y, x)
    return w


def kernel_density(data: Any, places: Any, width: float) -> Any:
    found = np.zeros(places.shape[0])
    for i in range(places.shape[0]):
        d = (data - places[i]) / width
        found[i] = np.sum(np.exp(-0.5 * d * d))
    return found / (data.shape[0] * width * np.sqrt(2.0 * np.pi))


def random_walk_hits(steps: Any, barrier: float) -> Any:
    hits = 0
    for i in range(steps.shape[0]):
        place = 0.0
        for j in range(steps.shape[1]):
            place += steps[i, j]
            if place > barrier:
                hits += 1
                break
    return hits / steps.shape[0]


PROGRAMS = [
    Program(correlation, lambda n: (rng(n).normal(size=(6 * n, n)),), 60, 5),
    Program(moving_statistics, lambda n: (rng(n).normal(size=n), 20), 5000, 40),
    Program(histogram_by_element, lambda n: (rng(n).normal(size=n), 50), 100_000, 60),
    Program(
        k_means, lambda n: (rng(n).normal(size=(n, 3)), rng(n + 1).normal(size=(8, 3)), 5), 3000, 20
    ),
    Program(
        logistic_regression,
        lambda n: (np.zeros(8), rng(n).normal(size=(n, 8)), np.sign(rng(n + 1).normal(size=n)), 50),
        3000, 20,
    ),
    Program(
        kernel_density, lambda n: (rng(n).normal(size=n), np.linspace(-3.0, 3.0, 300), 0.2), 2000, 9
    ),
    Program(random_walk_hits, lambda n: (rng(n).normal(size=(n, 200)), 8.0), 2000, 12),
]  # fmt: skip
