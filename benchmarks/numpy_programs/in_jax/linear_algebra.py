"""Dense and triangular linear algebra. Parts of rows and columns are whole ones with zeros."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def cholesky(a: Any) -> Any:
    n = a.shape[0]
    places = jnp.arange(n)

    def column(j: Any, low: Any) -> Any:
        rest = a[:, j] - low @ low[j]
        return low.at[:, j].set(jnp.where(places >= j, rest / jnp.sqrt(rest[j]), 0.0))

    low = lax.fori_loop(0, n, column, jnp.zeros_like(a))
    return low + jnp.triu(a, 1)


@jax.jit
def lu_in_place(a: Any) -> Any:
    n = a.shape[0]
    places = jnp.arange(n)

    def step(k: Any, a: Any) -> Any:
        below = places > k
        factors = jnp.where(below, a[:, k] / a[k, k], 0.0)
        a = a - factors[:, None] * jnp.where(below, a[k], 0.0)
        return a.at[:, k].set(jnp.where(below, factors, a[:, k]))

    return lax.fori_loop(0, n - 1, step, a)


@jax.jit
def forward_substitution(low: Any, b: Any) -> Any:
    def row(i: Any, x: Any) -> Any:
        return x.at[i].set((b[i] - low[i] @ x) / low[i, i])

    return lax.fori_loop(0, b.shape[0], row, jnp.zeros_like(b))


@jax.jit
def gram_schmidt(a: Any, q: Any, r: Any) -> Any:
    places = jnp.arange(a.shape[1])

    def step(k: Any, carry: Any) -> Any:
        a, q, r = carry
        norm = jnp.sqrt(jnp.sum(a[:, k] * a[:, k]))
        unit = a[:, k] / norm
        row = jnp.where(places > k, unit @ a, 0.0)
        r = r.at[k].set(jnp.where(places == k, norm, jnp.where(places > k, row, r[k])))
        return a - unit[:, None] * row, q.at[:, k].set(unit), r

    return lax.fori_loop(0, a.shape[1], step, (a, q, r))


@jax.jit
def power_iteration(a: Any, steps: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        w = a @ carry[0]
        value = jnp.sqrt(jnp.sum(w * w))
        return w / value, value

    return lax.fori_loop(0, steps, step, (jnp.ones(a.shape[0]), 0.0))[1]


@jax.jit
def conjugate_gradient(a: Any, b: Any, steps: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        x, r, p, old = carry
        ap = a @ p
        alpha = old / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + (new / old) * p, new

    return lax.fori_loop(0, steps, step, (jnp.zeros_like(b), b, b, b @ b))[0]


@jax.jit
def levinson(r: Any, y: Any) -> Any:
    n = y.shape[0]

    def turned(v: Any, k: Any) -> Any:
        """Elements k, k - 1, ..., 0 and then zeros."""
        return lax.dynamic_slice(jnp.concatenate([v[::-1], jnp.zeros(n)]), (n - 1 - k,), (n,))

    def step(k: Any, carry: Any) -> Any:
        x, f = carry
        before = turned(r, k)
        error = before @ f
        scale = 1.0 / (1.0 - error * error)
        f = scale * f - scale * error * turned(f, k)
        wanted = y[k] - before @ x
        return x + wanted * turned(f, k), f

    first = jnp.zeros(n).at[0]
    return lax.fori_loop(1, n, step, (first.set(y[0] / r[0]), first.set(1.0 / r[0])))[0]


@jax.jit
def matrix_product_by_rows(a: Any, b: Any) -> Any:
    def product(row: Any) -> Any:
        start = jnp.zeros(b.shape[1])
        return lax.fori_loop(0, b.shape[0], lambda k, c: c + row[k] * b[k], start)

    return jax.vmap(product)(a)
