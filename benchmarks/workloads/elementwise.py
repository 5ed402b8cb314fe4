"""Chains of elementwise operations over one pass of memory."""

import math

import numpy as np

from benchmarks.workload import Workload


class Gelu(Workload):
    """GELU in its tanh form, over n float32."""

    def data(self):
        return (np.random.default_rng(1).standard_normal(self.n) * 2).astype(np.float32)

    def numpy(self, np):
        def gelu(x):
            return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

        return gelu, self.data()

    def tf2(self, tf, function):
        def gelu(x):
            return 0.5 * x * (1.0 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

        return function(gelu), tf.constant(self.data())

    def jax(self, jax):
        def gelu(x):
            return 0.5 * x * (1.0 + jax.numpy.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

        f, x = jax.jit(gelu), jax.numpy.asarray(self.data())
        return lambda: f(x).block_until_ready()

    def torch(self, torch, compile):
        def gelu(x):
            return torch.nn.functional.gelu(x, approximate="tanh")

        return compile(gelu), torch.from_numpy(self.data())

    def numba(self, numba):
        half, one = np.float32(0.5), np.float32(1.0)
        a, b = np.float32(0.7978845608), np.float32(0.044715)

        def gelu(x):
            return half * x * (one + math.tanh(a * (x + b * x * x * x)))

        return numba.vectorize(["f4(f4)"], target="parallel")(gelu), self.data()


def black_scholes(log, sqrt, exp, erf, price, strike, years, volatility):
    """Prices of a European call and put at a rate of 2 %."""
    spread = volatility * sqrt(years)
    d1 = (log(price / strike) + (0.02 + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * exp(-0.02 * years)
    call = price * (0.5 + 0.5 * erf(d1 * 0.70710678)) - discounted * (
        0.5 + 0.5 * erf(d2 * 0.70710678)
    )
    return call, call - price + discounted


class BlackScholes(Workload):
    tolerance = 1e-4

    def data(self):
        random = np.random.default_rng(1)
        ranges = [(10, 50), (10, 50), (0.5, 2), (0.1, 0.6)]
        return [random.uniform(a, b, self.n).astype(np.float32) for a, b in ranges]

    def numpy(self, np):
        from scipy.special import erf

        return black_scholes, np.log, np.sqrt, np.exp, erf, *self.data()

    def tf2(self, tf, function):
        def price(*x):
            return black_scholes(tf.math.log, tf.sqrt, tf.exp, tf.math.erf, *x)

        return function(price), *map(tf.constant, self.data())

    def jax(self, jax):
        jnp = jax.numpy

        def price(*x):
            return black_scholes(jnp.log, jnp.sqrt, jnp.exp, jax.scipy.special.erf, *x)

        f, data = jax.jit(price), [jnp.asarray(x) for x in self.data()]
        return lambda: jax.block_until_ready(f(*data))

    def torch(self, torch, compile):
        def price(*x):
            return black_scholes(torch.log, torch.sqrt, torch.exp, torch.erf, *x)

        return compile(price), *map(torch.from_numpy, self.data())


WORKLOADS = [
    Gelu("gelu 10^3", n=1_000),
    Gelu("gelu 10^6", n=1_000_000),
    Gelu("gelu 10^7", n=10_000_000),
    BlackScholes("black-scholes 10^6", n=1_000_000),
]
