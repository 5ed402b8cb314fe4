"""Sparse products, sorting and algorithms on graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, rng


def sparse_product(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    n = starts.shape[0] - 1
    y = np.zeros(n)
    for i in range(n):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total
    return y


def floyd_warshall(d: Any) -> None:
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


def bellman_ford(sources: Any, targets: Any, lengths: Any, n: int) -> Any:
    distance = np.full(n, np.inf)
    distance[0] = 0.0
    for _ in range(n - 1):
        changed = False
        for e in range(sources.shape[0]):
            through = distance[sources[e]] + lengths[e]
            if through < distance[targets[e]]:
                distance[targets[e]] = through
                changed = True
        if not changed:
            break
    return distance


def page_rank(links: Any, steps: int) -> Any:
    n = links.shape[0]
    rank = np.full(n, 1.0 / n)
    for _ in range(steps):
        rank = 0.15 / n + 0.85 * np.dot(links, rank)
    return rank


def insertion_sort(x: Any) -> Any:
    for i in range(1, x.shape[0]):
        value = x[i]
        j = i - 1
        while j >= 0 and x[j] > value:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = value
    return x


def sieve(n: int) -> Any:
    prime = np.ones(n + 1, dtype=np.bool_)
    prime[0] = False
    prime[1] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
        i += 1
    return np.sum(prime)


def union_find(sources: Any, targets: Any, n: int) -> Any:
    parent = np.arange(n)
    for e in range(sources.shape[0]):
        a = sources[e]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        b = targets[e]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
    components = 0
    for i in range(n):
        if parent[i] == i:
            components += 1
    return components


def breadth_first(starts: Any, columns: Any, first: int) -> Any:
    n = starts.shape[0] - 1
    depth = np.full(n, -1)
    queue = np.zeros(n, dtype=np.int64)
    queue[0] = first
    depth[first] = 0
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for k in range(starts[node], starts[node + 1]):
            other = columns[k]
            if depth[other] < 0:
                depth[other] = depth[node] + 1
                queue[tail] = other
                tail += 1
    return depth


def _sparse(n: int) -> tuple[Any, Any]:
    counts = rng(n).integers(1, 9, n)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return starts, rng(n + 1).integers(0, n, int(starts[-1]))


def _sparse_with_values(n: int) -> tuple[Any, ...]:
    starts, columns = _sparse(n)
    return starts, columns, rng(n).random(columns.shape[0]), rng(n + 2).random(n)


def _edges(n: int, times: int) -> tuple[Any, Any]:
    return rng(n).integers(0, n, times * n), rng(n + 1).integers(0, n, times * n)


PROGRAMS = [
    Program(sparse_product, _sparse_with_values, 20_000, 12),
    Program(floyd_warshall, lambda n: (rng(n).random((n, n)) * 10.0,), 100, 6),
    Program(bellman_ford, lambda n: (*_edges(n, 5), rng(n).random(5 * n), n), 1000, 8),
    Program(page_rank, lambda n: (rng(n).random((n, n)) / n, 50), 300, 8),
    Program(insertion_sort, lambda n: (rng(n).random(n),), 1500, 12),
    Program(sieve, lambda n: (n,), 200_000, 60),
    Program(union_find, lambda n: (*_edges(n, 2), n), 10_000, 12),
    Program(breadth_first, lambda n: (*_sparse(n), 0), 10_000, 12),
]
