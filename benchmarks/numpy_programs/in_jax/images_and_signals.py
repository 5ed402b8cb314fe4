"""Filters of images and signals."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def convolve_image(image: Any, kernel: Any) -> Any:
    n, m = kernel.shape
    h, w = image.shape[0] - n + 1, image.shape[1] - m + 1
    out = jnp.zeros((h, w))
    for i in range(n):
        for j in range(m):
            out += kernel[i, j] * image[i : i + h, j : j + w]
    return out


@partial(jax.jit, static_argnames="radius")
def box_blur(image: Any, radius: int) -> Any:
    def sums(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (2 * radius + 1,) * 2, (1, 1), "SAME")

    return sums(image) / sums(jnp.ones_like(image))


@jax.jit
def sobel(image: Any) -> Any:
    gx = (image[:-2, 2:] + 2.0 * image[1:-1, 2:] + image[2:, 2:]
          - image[:-2, :-2] - 2.0 * image[1:-1, :-2] - image[2:, :-2])  # fmt: skip
    gy = (image[2:, :-2] + 2.0 * image[2:, 1:-1] + image[2:, 2:]
          - image[:-2, :-2] - 2.0 * image[:-2, 1:-1] - image[:-2, 2:])  # fmt: skip
    return jnp.sqrt(gx * gx + gy * gy)


@jax.jit
def recursive_filter(x: Any, a: Any, b: Any) -> Any:
    def element(last: Any, new: Any) -> Any:
        y = new + a * last[0] + b * last[1]
        return (y, last[0]), y

    return jnp.concatenate([x[:2], lax.scan(element, (x[1], x[0]), x[2:])[1]])


@jax.jit
def fir_filter(x: Any, taps: Any) -> Any:
    n = x.shape[0] - taps.shape[0] + 1
    y = jnp.zeros(n)
    for k in range(taps.shape[0]):
        y += taps[k] * x[k : k + n]
    return y


@jax.jit
def dithering(image: Any) -> Any:
    def element(carried: Any, value: Any) -> Any:
        old = value + carried
        new = jnp.where(old > 0.5, 1.0, 0.0)
        return (old - new) * 0.4375, (new, old - new)

    def row(here: Any, below: Any) -> Any:
        carried, (new, error) = lax.scan(element, 0.0, here[1:-1])
        below = below.at[2:].add(error * 0.0625)
        below = below.at[1:-1].add(error * 0.3125)
        below = below.at[:-2].add(error * 0.1875)
        return below, jnp.concatenate([here[:1], new, here[-1:] + carried])

    last, done = lax.scan(row, image[0], image[1:])
    return jnp.concatenate([done, last[None]])


@jax.jit
def mandelbrot(xs: Any, ys: Any, limit: Any) -> Any:
    def steps(x: Any, y: Any) -> Any:
        c = lax.complex(x, y)

        def goes_on(carry: Any) -> Any:
            count, z = carry
            return (count < limit) & (z.real * z.real + z.imag * z.imag < 4.0)

        return lax.while_loop(
            goes_on, lambda carry: (carry[0] + 1, carry[1] * carry[1] + c), (0, 0.0 * c)
        )[0]

    return jax.vmap(lambda y: jax.vmap(lambda x: steps(x, y))(xs))(ys)
