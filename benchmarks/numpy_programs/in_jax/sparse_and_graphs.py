"""Sparse products, sorting and algorithms on graphs.

`union_find` is not written: its trees change with every edge, and another algorithm would be
another program.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def _rows(starts: Any, elements: int) -> Any:
    """The row of each stored element."""
    rows = jnp.arange(starts.shape[0] - 1)
    return jnp.repeat(rows, jnp.diff(starts), total_repeat_length=elements)


@jax.jit
def sparse_product(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    return jax.ops.segment_sum(
        values * x[columns], _rows(starts, columns.shape[0]), starts.shape[0] - 1,
        indices_are_sorted=True,
    )  # fmt: skip


@jax.jit
def floyd_warshall(d: Any) -> Any:
    def step(k: Any, d: Any) -> Any:
        return jnp.minimum(d, d[:, k, None] + d[k])

    return lax.fori_loop(0, d.shape[0], step, d)


@partial(jax.jit, static_argnames="n")
def bellman_ford(sources: Any, targets: Any, lengths: Any, n: int) -> Any:
    def goes_on(carry: Any) -> Any:
        round_, changed, _ = carry
        return (round_ < n - 1) & changed

    def step(carry: Any) -> Any:
        round_, _, distance = carry
        nearer = distance.at[targets].min(distance[sources] + lengths)
        return round_ + 1, jnp.any(nearer < distance), nearer

    return lax.while_loop(goes_on, step, (0, True, jnp.full(n, jnp.inf).at[0].set(0.0)))[2]


@jax.jit
def page_rank(links: Any, steps: Any) -> Any:
    n = links.shape[0]
    return lax.fori_loop(
        0, steps, lambda _, rank: 0.15 / n + 0.85 * (links @ rank), jnp.full(n, 1.0 / n)
    )


@jax.jit
def insertion_sort(x: Any) -> Any:
    places = jnp.arange(x.shape[0])

    def insert(i: Any, x: Any) -> Any:
        to = jnp.sum((places < i) & (x <= x[i]))
        moved = jnp.where((places > to) & (places <= i), jnp.roll(x, 1), x)
        return moved.at[to].set(x[i])

    return lax.fori_loop(1, x.shape[0], insert, x)


@partial(jax.jit, static_argnames="n")
def sieve(n: int) -> Any:
    places = jnp.arange(n + 1)

    def without_multiples(i: Any, prime: Any) -> Any:
        return prime & ((places % i != 0) | (places < i * i))

    def step(carry: Any) -> Any:
        i, prime = carry
        return i + 1, lax.cond(prime[i], without_multiples, lambda i, prime: prime, i, prime)

    start = (2, jnp.ones(n + 1, bool).at[:2].set(False))
    return jnp.sum(lax.while_loop(lambda carry: carry[0] * carry[0] <= n, step, start)[1])


@jax.jit
def breadth_first(starts: Any, columns: Any, first: Any) -> Any:
    n = starts.shape[0] - 1
    rows = _rows(starts, columns.shape[0])

    def step(carry: Any) -> Any:
        level, _, depth = carry
        reached = jnp.zeros(n, bool).at[columns].max(depth[rows] == level) & (depth < 0)
        return level + 1, jnp.any(reached), jnp.where(reached, level + 1, depth)

    start = (0, True, jnp.full(n, -1).at[first].set(0))
    return lax.while_loop(lambda carry: carry[1], step, start)[2]
