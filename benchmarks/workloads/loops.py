"""Loops whose bodies are small: written as Python loops, or as the library's loop primitive."""

import math

import numpy as np

from benchmarks.workload import Workload


def recurrence(a, n):
    i = 0
    while i < n:
        a = a * 0.999 + 1.0
        i += 1
    return a


class ScalarWhile(Workload):
    """a = 0.999 a + 1, n times, on a float32 scalar."""

    tolerance = 1e-4

    def numpy(self, np):
        return recurrence, 1.0, self.n

    def tf2(self, tf, function):
        return function(recurrence), tf.constant(1.0), tf.constant(self.n)

    def jax(self, jax):
        def loop(a, n):
            return jax.lax.while_loop(
                lambda s: s[1] < n, lambda s: (s[0] * 0.999 + 1.0, s[1] + 1), (a, 0)
            )[0]

        f = jax.jit(loop)
        a, n = jax.numpy.float32(1.0), jax.numpy.int32(self.n)
        return lambda: f(a, n).block_until_ready()

    def numba(self, numba):
        def loop(a, n):
            for _ in range(n):
                a = a * np.float32(0.999) + np.float32(1.0)
            return a

        return numba.njit(loop), np.float32(1.0), self.n


class TanhWhile(Workload):
    """x = tanh(x), n times, on a vector of 128 float32."""

    without = ("torch-compile",)  # it unrolls the loop, and compiles for minutes
    tolerance = 1e-4

    def data(self):
        return np.random.default_rng(0).standard_normal(128).astype(np.float32)

    def numpy(self, np):
        def loop(x):
            for _ in range(self.n):
                x = np.tanh(x)
            return x

        return loop, self.data()

    def tf2(self, tf, function):
        def loop(x, n):
            i = 0
            while i < n:
                x = tf.tanh(x)
                i += 1
            return x

        return function(loop), tf.constant(self.data()), tf.constant(self.n)

    def jax(self, jax):
        def loop(x, n):
            return jax.lax.fori_loop(0, n, lambda _, x: jax.numpy.tanh(x), x)

        f = jax.jit(loop)
        x, n = jax.numpy.asarray(self.data()), jax.numpy.int32(self.n)
        return lambda: f(x, n).block_until_ready()

    def torch(self, torch, compile):
        def loop(x):
            for _ in range(self.n):
                x = torch.tanh(x)
            return x

        return loop, torch.from_numpy(self.data())

    def numba(self, numba):
        def loop(x, n):
            x = x.copy()
            for _ in range(n):
                for j in range(x.size):
                    x[j] = math.tanh(x[j])
            return x

        return numba.njit(loop), self.data(), self.n


class Mandelbrot(Workload):
    """Sum of the escape times of a size x size grid, at most `limit` steps, written with a while.

    Points at the boundary are chaotic, so single escape times differ between libraries.
    """

    tolerance = 1e-3

    def grid(self):
        side = np.linspace(-1.5, 1.5, self.size, dtype=np.float32)
        x, y = np.meshgrid(side - np.float32(0.5), side)
        return np.ascontiguousarray(x), np.ascontiguousarray(y)

    def tf2(self, tf, function):
        def escape(cx, cy):
            x, y, steps = tf.zeros_like(cx), tf.zeros_like(cx), tf.zeros_like(cx)
            i = tf.constant(0)
            while i < self.limit:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                x, y = tf.clip_by_value(x, -9.0, 9.0), tf.clip_by_value(y, -9.0, 9.0)
                steps += tf.cast(x * x + y * y < 4.0, tf.float32)
                i += 1
            return tf.reduce_sum(steps)

        cx, cy = self.grid()
        return function(escape), tf.constant(cx), tf.constant(cy)

    def jax(self, jax):
        jnp = jax.numpy

        def escape(cx, cy):
            def body(_, state):
                x, y, steps = state
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                x, y = jnp.clip(x, -9.0, 9.0), jnp.clip(y, -9.0, 9.0)
                return x, y, steps + (x * x + y * y < 4.0)

            zero = jnp.zeros_like(cx)
            return jax.lax.fori_loop(0, self.limit, body, (zero, zero, zero))[2].sum()

        f = jax.jit(escape)
        cx, cy = map(jnp.asarray, self.grid())
        return lambda: f(cx, cy).block_until_ready()

    def numba(self, numba):
        def escape(cx, cy, limit):
            total = 0
            for r in range(cx.shape[0]):
                for c in range(cx.shape[1]):
                    x = y = np.float32(0.0)
                    for _ in range(limit):
                        x, y = x * x - y * y + cx[r, c], np.float32(2.0) * x * y + cy[r, c]
                        if x * x + y * y >= np.float32(4.0):
                            break
                        total += 1
            return float(total)

        return numba.njit(escape), *self.grid(), self.limit


WORKLOADS = [
    Mandelbrot("mandelbrot 200x200, 100 steps", size=200, limit=100),
    ScalarWhile("scalar while, 10^4 steps", n=10_000),
    TanhWhile("tanh while over 128 floats, 10^3 steps", n=1_000),
]
