"""Small neural networks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def train_perceptron(x: Any, y: Any, w1: Any, w2: Any, steps: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        _, w1, w2 = carry
        hidden = jnp.tanh(x @ w1)
        error = hidden @ w2 - y
        loss = jnp.sum(error * error) / x.shape[0]
        back = error @ w2.T * (1.0 - hidden * hidden)
        w2 = w2 - 0.01 / x.shape[0] * (hidden.T @ error)
        return loss, w1 - 0.01 / x.shape[0] * (x.T @ back), w2

    return lax.fori_loop(0, steps, step, (0.0, w1, w2))


@jax.jit
def recurrent_network(xs: Any, w: Any, u: Any, h: Any) -> Any:
    return lax.scan(lambda h, x: (jnp.tanh(x @ w + h @ u), None), h, xs)[0]


@jax.jit
def softmax_rows(x: Any) -> Any:
    def softmax(row: Any) -> Any:
        powers = jnp.exp(row - jnp.max(row))
        return powers / jnp.sum(powers)

    return jax.vmap(softmax)(x)


@jax.jit
def self_organising_map(grid: Any, samples: Any) -> Any:
    places = jnp.arange(grid.shape[0])

    def learn(grid: Any, sample: Any) -> Any:
        best = jnp.argmin(jnp.sum((grid - sample) ** 2, 1))
        near = jnp.exp(-0.1 * (places - best) ** 2)
        return grid + 0.1 * near[:, None] * (sample - grid), None

    return lax.scan(learn, grid, samples)[0]
