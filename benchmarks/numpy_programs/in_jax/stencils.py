"""Stencils in one to three dimensions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def heat_rod(u: Any, v: Any, steps: Any) -> Any:
    def half(u: Any, v: Any) -> Any:
        return v.at[1:-1].set(u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2]))

    def step(_: Any, uv: Any) -> Any:
        v = half(*uv)
        return half(v, uv[0]), v

    return lax.fori_loop(0, steps, step, (u, v))


@jax.jit
def heat_plate(u: Any, v: Any, steps: Any) -> Any:
    def half(u: Any, v: Any) -> Any:
        return v.at[1:-1, 1:-1].set(
            0.25 * (u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1])
        )

    def step(_: Any, uv: Any) -> Any:
        v = half(*uv)
        return half(v, uv[0]), v

    return lax.fori_loop(0, steps, step, (u, v))


@jax.jit
def heat_block(u: Any, v: Any, steps: Any) -> Any:
    def step(_: Any, uv: Any) -> Any:
        u, v = uv
        inner = u[1:-1, 1:-1, 1:-1] + 0.1 * (
            u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
            + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6.0 * u[1:-1, 1:-1, 1:-1]
        )  # fmt: skip
        return tuple(w.at[1:-1, 1:-1, 1:-1].set(inner) for w in (u, v))

    return lax.fori_loop(0, steps, step, (u, v))


@jax.jit
def gauss_seidel(u: Any, steps: Any) -> Any:
    def row(i: Any, u: Any) -> Any:
        def element(left: Any, others: Any) -> Any:
            above, below, right = others
            new = 0.25 * (above + below + left + right)
            return new, new

        others = u[i - 1, 1:-1], u[i + 1, 1:-1], u[i, 2:]
        return u.at[i, 1:-1].set(lax.scan(element, u[i, 0], others)[1])

    def step(_: Any, u: Any) -> Any:
        return lax.fori_loop(1, u.shape[0] - 1, row, u)

    return lax.fori_loop(0, steps, step, u)


@jax.jit
def wave(before: Any, now: Any, steps: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        before, now = carry
        after = (2.0 * now - before).at[1:-1, 1:-1].add(
            0.1 * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2]
                   - 4.0 * now[1:-1, 1:-1])
        )  # fmt: skip
        return now, after

    return lax.fori_loop(0, steps, step, (before, now))[1]


@jax.jit
def game_of_life(cells: Any, steps: Any) -> Any:
    def step(_: Any, now: Any) -> Any:
        rows = now + jnp.roll(now, 1, 0) + jnp.roll(now, -1, 0)
        alive = rows + jnp.roll(rows, 1, 1) + jnp.roll(rows, -1, 1) - now
        return jnp.where((alive == 3) | ((alive == 2) & (now == 1)), 1, 0)

    return lax.fori_loop(0, steps, step, cells)


@jax.jit
def electric_field(ex: Any, ey: Any, hz: Any, steps: Any) -> Any:
    def step(_: Any, fields: Any) -> Any:
        ex, ey, hz = fields
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return ex, ey, hz

    return lax.fori_loop(0, steps, step, (ex, ey, hz))
