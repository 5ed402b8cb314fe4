"""Dense and triangular linear algebra, by loops and slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, positive_definite, rng


def cholesky(a: Any) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))


def lu_in_place(a: Any) -> None:
    n = a.shape[0]
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]


def forward_substitution(low: Any, b: Any) -> Any:
    n = b.shape[0]
    x = np.zeros(n)
    for i in range(n):
        x[i] = (b[i] - np.dot(low[i, :i], x[:i])) / low[i, i]
    return x


def gram_schmidt(a: Any, q: Any, r: Any) -> None:
    n = a.shape[1]
    for k in range(n):
        norm = np.sqrt(np.sum(a[:, k] * a[:, k]))
        r[k, k] = norm
        q[:, k] = a[:, k] / norm
        for j in range(k + 1, n):
            r[k, j] = np.sum(q[:, k] * a[:, j])
            a[:, j] -= q[:, k] * r[k, j]


def power_iteration(a: Any, steps: int) -> Any:
    v = np.ones(a.shape[0])
    value = 0.0
    for _ in range(steps):
        w = np.dot(a, v)
        value = np.sqrt(np.sum(w * w))
        v = w / value
    return value


def conjugate_gradient(a: Any, b: Any, steps: int) -> Any:
    x = np.zeros(b.shape[0])
    r = b.copy()
    p = r.copy()
    old = np.dot(r, r)
    for _ in range(steps):
        ap = np.dot(a, p)
        alpha = old / np.dot(p, ap)
        x += alpha * p
        r -= alpha * ap
        new = np.dot(r, r)
        p = r + (new / old) * p
        old = new
    return x


def levinson(r: Any, y: Any) -> Any:
    n = y.shape[0]
    x = np.zeros(n)
    f = np.zeros(n)
    f[0] = 1.0 / r[0]
    x[0] = y[0] / r[0]
    for k in range(1, n):
        error = np.dot(r[1 : k + 1][::-1], f[:k])
        scale = 1.0 / (1.0 - error * error)
        g = np.zeros(k + 1)
        g[:k] = scale * f[:k]
        g[1:] -= scale * error * f[:k][::-1]
        f[: k + 1] = g
        wanted = y[k] - np.dot(r[1 : k + 1][::-1], x[:k])
        x[: k + 1] += wanted * f[: k + 1][::-1]
    return x


def matrix_product_by_rows(a: Any, b: Any) -> Any:
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i] += a[i, k] * b[k]
    return c


PROGRAMS = [
    Program(cholesky, lambda n: (positive_definite(n),), 200, 7),
    Program(lu_in_place, lambda n: (positive_definite(n),), 160, 7),
    Program(
        forward_substitution,
        lambda n: (np.tril(positive_definite(n)), rng(n).normal(size=n)), 600, 7,
    ),
    Program(
        gram_schmidt,
        lambda n: (rng(n).normal(size=(n + 20, n)), np.zeros((n + 20, n)), np.zeros((n, n))),
        100, 5,
    ),
    Program(power_iteration, lambda n: (positive_definite(n), 50), 300, 6),
    Program(
        conjugate_gradient,
        lambda n: (positive_definite(n), rng(n).normal(size=n), 40), 300, 8,
    ),
    Program(
        levinson,
        lambda n: (np.exp(-np.arange(n) / 5.0) + 2.0 * (np.arange(n) == 0), rng(n).normal(size=n)),
        400, 8,
    ),
    Program(
        matrix_product_by_rows,
        lambda n: (rng(n).normal(size=(n, n)), rng(n + 1).normal(size=(n, n))), 128, 6,
    ),
]  # fmt: skip
