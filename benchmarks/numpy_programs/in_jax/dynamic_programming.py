"""Dynamic programming, a row or a diagonal at once.

Where an element needs its left neighbour of the same row, a running minimum or maximum along the
row takes the place of the inner loop.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def edit_distance(a: Any, b: Any) -> Any:
    places = jnp.arange(b.shape[0] + 1)

    def row(above: Any, letter: Any) -> Any:
        best = jnp.minimum(above[1:] + 1, above[:-1] + (b != letter))
        best = jnp.concatenate([above[:1] + 1, best])
        return lax.cummin(best - places) + places, None

    return lax.scan(row, places, a)[0][-1]


@jax.jit
def longest_common_subsequence(a: Any, b: Any) -> Any:
    def row(above: Any, letter: Any) -> Any:
        best = jnp.where(b == letter, above[:-1] + 1, above[1:])
        return lax.cummax(jnp.concatenate([above[:1], best])), None

    return lax.scan(row, jnp.zeros(b.shape[0] + 1, jnp.int64), a)[0][-1]


def knapsack(weights: Any, values: Any, capacity: int) -> Any:
    return _knapsack(weights, values, jnp.zeros(capacity + 1))


@jax.jit
def _knapsack(weights: Any, values: Any, best: Any) -> Any:
    places = jnp.arange(best.shape[0])

    def thing(best: Any, weight_and_value: Any) -> Any:
        weight, value = weight_and_value
        taken = jnp.roll(best, weight) + value
        return jnp.where(places >= weight, jnp.maximum(best, taken), best), None

    return lax.scan(thing, best, (weights, values))[0][-1]


@jax.jit
def matrix_chain(sizes: Any) -> Any:
    n = sizes.shape[0] - 1
    i = jnp.arange(n)[:, None]
    k = jnp.arange(n)[None, :]

    def diagonal(length: Any, cost: Any) -> Any:
        j = i + length - 1
        ends = jnp.minimum(j, n - 1)
        split = cost[i, k] + cost[jnp.minimum(k + 1, n - 1), ends]
        split += sizes[i] * sizes[jnp.minimum(k + 1, n)] * sizes[jnp.minimum(j + 1, n)]
        best = jnp.min(jnp.where((k >= i) & (k < j), split, jnp.inf), 1)
        return cost.at[i[:, 0], j[:, 0]].set(best, mode="drop")

    return lax.fori_loop(2, n + 1, diagonal, jnp.zeros((n, n)))[0, n - 1]


@jax.jit
def smith_waterman(a: Any, b: Any) -> Any:
    falls = 2.0 * jnp.arange(b.shape[0] + 1)

    def row(above: Any, letter: Any) -> Any:
        scores = jnp.where(b == letter, 3.0, -3.0)
        best = jnp.maximum(0.0, jnp.maximum(above[:-1] + scores, above[1:] - 2.0))
        here = lax.cummax(jnp.concatenate([jnp.zeros(1), best]) + falls) - falls
        return here, jnp.max(here)

    return jnp.max(lax.scan(row, jnp.zeros(b.shape[0] + 1), a)[1], initial=0.0)


@jax.jit
def viterbi(start: Any, step: Any, emit: Any, seen: Any) -> Any:
    def forward(score: Any, sign: Any) -> Any:
        ways = score[:, None] + step
        best = jnp.argmax(ways, 0)
        return jnp.max(ways, 0) + emit[:, sign], best

    def back(state: Any, came: Any) -> Any:
        return came[state], state

    score, came = lax.scan(forward, start + emit[:, seen[0]], seen[1:])
    first, path = lax.scan(back, jnp.argmax(score), came, reverse=True)
    return jnp.concatenate([first[None], path])
