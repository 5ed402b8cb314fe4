"""Simulations of particles and differential equations."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def gravity(place: Any, speed: Any, mass: Any, steps: Any) -> Any:
    def force(place: Any, here: Any) -> Any:
        d = place - here
        r = jnp.sqrt(jnp.sum(d * d, 1)) + 0.01
        return (mass / (r * r * r)) @ d

    def step(_: Any, carry: Any) -> Any:
        place, speed = carry
        speed = speed + 0.001 * jax.vmap(force, (None, 0))(place, place)
        return place + 0.001 * speed, speed

    return lax.fori_loop(0, steps, step, (place, speed))


@jax.jit
def gravity_by_arrays(place: Any, speed: Any, mass: Any, steps: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        place, speed = carry
        dx, dy, dz = (place[None, :, k] - place[:, None, k] for k in range(3))
        inverse = (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5
        force = jnp.stack([(d * inverse) @ mass for d in (dx, dy, dz)], 1)
        speed = speed + 0.001 * force
        return place + 0.001 * speed, speed

    return lax.fori_loop(0, steps, step, (place, speed))


@jax.jit
def lennard_jones(place: Any, box: Any) -> Any:
    places = jnp.arange(place.shape[0])

    def energy(i: Any) -> Any:
        d = place[i] - place
        d -= box * jnp.round(d / box)
        r2 = jnp.sum(d * d, 1)
        near = (places > i) & (r2 < 6.25)
        inverse = 1.0 / jnp.where(near, r2 * r2 * r2, 1.0)
        return jnp.sum(jnp.where(near, 4.0 * inverse * (inverse - 1.0), 0.0))

    return jnp.sum(jax.vmap(energy)(places))


@partial(jax.jit, static_argnames="steps")
def lorenz(state: Any, steps: int) -> Any:
    def step(state: Any, _: Any) -> Any:
        x, y, z = state
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        state = x + 0.005 * dx, y + 0.005 * dy, z + 0.005 * dz
        return state, jnp.stack(state)

    return lax.scan(step, tuple(state), length=steps)[1]


@jax.jit
def ising(spins: Any, draws: Any) -> Any:
    n = spins.shape[0]

    def element(at: Any, spins: Any) -> Any:
        k, i, j = at // (n * n), at // n % n, at % n
        around = (spins[(i + 1) % n, j] + spins[(i - 1) % n, j]
                  + spins[i, (j + 1) % n] + spins[i, (j - 1) % n])  # fmt: skip
        change = 2.0 * spins[i, j] * around
        turns = (change < 0.0) | (draws[k, i, j] < jnp.exp(-change * 0.44))
        return spins.at[i, j].set(jnp.where(turns, -spins[i, j], spins[i, j]))

    spins = lax.fori_loop(0, draws.size, element, spins)
    return jnp.sum(spins), spins


@partial(jax.jit, static_argnames="steps")
def option_price(spot: Any, strike: Any, steps: int) -> Any:
    up = jnp.exp(0.2 * jnp.sqrt(1.0 / steps))
    p = (jnp.exp(0.05 / steps) - 1.0 / up) / (up - 1.0 / up)
    discount = jnp.exp(-0.05 / steps)
    places = jnp.arange(steps + 1)

    def worth(i: Any) -> Any:
        return jnp.maximum(strike - spot * up ** (2.0 * places - i), 0.0)

    def step(down: Any, values: Any) -> Any:
        held = discount * (p * jnp.roll(values, -1) + (1.0 - p) * values)
        return jnp.maximum(held, worth(steps - 1 - down))

    return lax.fori_loop(0, steps, step, worth(steps))[0]
