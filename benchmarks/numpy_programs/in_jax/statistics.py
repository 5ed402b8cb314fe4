"""Statistics."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def correlation(data: Any) -> Any:
    centred = data - jnp.sum(data, 0) / data.shape[0]
    normal = centred / jnp.sqrt(jnp.sum(centred * centred, 0))
    return jnp.where(jnp.eye(data.shape[1], dtype=bool), 1.0, normal.T @ normal)


@partial(jax.jit, static_argnames="width")
def moving_statistics(x: Any, width: int) -> Any:
    def statistics(i: Any) -> Any:
        part = lax.dynamic_slice(x, (i,), (width,))
        mean = jnp.sum(part) / width
        return jnp.stack([mean, jnp.sqrt(jnp.sum((part - mean) ** 2) / width)])

    return jax.vmap(statistics)(jnp.arange(x.shape[0] - width + 1))


@partial(jax.jit, static_argnames="bins")
def histogram_by_element(x: Any, bins: int) -> Any:
    low, high = jnp.min(x), jnp.max(x)
    k = jnp.minimum(((x - low) / (high - low) * bins).astype(jnp.int64), bins - 1)
    return jnp.zeros(bins, jnp.int64).at[k].add(1)


@jax.jit
def k_means(points: Any, centres: Any, steps: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        _, centres = carry
        labels = jnp.argmin(jnp.sum((points[:, None] - centres) ** 2, -1), 1)
        sums = jnp.zeros_like(centres).at[labels].add(points)
        counts = jnp.zeros(centres.shape[0]).at[labels].add(1.0)[:, None]
        return labels, jnp.where(counts > 0.0, sums / counts, centres)

    return lax.fori_loop(0, steps, step, (jnp.zeros(points.shape[0], jnp.int64), centres))


@jax.jit
def logistic_regression(w: Any, x: Any, y: Any, steps: Any) -> Any:
    def step(_: Any, w: Any) -> Any:
        return w - 0.01 * ((1.0 / (1.0 + jnp.exp(-y * (x @ w))) * y - y) @ x)

    return lax.fori_loop(0, steps, step, w)


@jax.jit
def kernel_density(data: Any, places: Any, width: Any) -> Any:
    def density(place: Any) -> Any:
        d = (data - place) / width
        return jnp.sum(jnp.exp(-0.5 * d * d))

    return jax.vmap(density)(places) / (data.shape[0] * width * jnp.sqrt(2.0 * jnp.pi))


@jax.jit
def random_walk_hits(steps: Any, barrier: Any) -> Any:
    return jnp.mean(jnp.any(jnp.cumsum(steps, 1) > barrier, 1))
