"""A tanh recurrent network over time."""

import numpy as np

from benchmarks.workload import Workload


class Rnn(Workload):
    """h = tanh(h W + x[t] U); the mean of h*h over all steps, or its gradient."""

    tolerance = 1e-4
    without = ("torch-compile",)  # it unrolls the loop, and compiles for minutes

    def data(self):
        random = np.random.default_rng(0)
        steps, batch, size = self.steps, self.batch, self.size
        x = random.standard_normal((steps, batch, size)).astype(np.float32)
        w, u = (
            (random.standard_normal((size, size)) / np.sqrt(size)).astype(np.float32)
            for _ in range(2)
        )
        return x, w, u

    def numpy(self, np):
        if self.gradient:
            return None

        def loss(x, w, u):
            h = np.zeros((self.batch, self.size), np.float32)
            total = np.float32(0)
            for xu in x @ u:
                h = np.tanh(h @ w + xu)
                total += (h * h).sum()
            return total / x.size

        return loss, *self.data()

    def tf2(self, tf, function):
        def loss(x, w, u):
            h = tf.zeros((self.batch, self.size))
            total = tf.constant(0.0)
            for t in tf.range(self.steps):
                h = tf.tanh(h @ w + x[t] @ u)
                total += tf.reduce_sum(h * h)
            return total / (self.steps * self.batch * self.size)

        def gradient(x, w, u):
            with tf.GradientTape() as tape:
                tape.watch([w, u])
                value = loss(x, w, u)
            return tape.gradient(value, [w, u])

        return function(gradient if self.gradient else loss), *map(tf.constant, self.data())

    def jax(self, jax):
        jnp = jax.numpy

        def loss(weights, x):
            w, u = weights

            def cell(h, xu):
                h = jnp.tanh(h @ w + xu)
                return h, (h * h).sum()

            h = jnp.zeros((self.batch, self.size))
            return jax.lax.scan(cell, h, x @ u)[1].sum() / x.size

        f = jax.jit(jax.grad(loss) if self.gradient else loss)
        x, w, u = map(jnp.asarray, self.data())
        return lambda: jax.block_until_ready(f((w, u), x))

    def torch(self, torch, compile):
        x, w, u = map(torch.from_numpy, self.data())
        w, u = w.requires_grad_(self.gradient), u.requires_grad_(self.gradient)

        def loss():
            h, total = x.new_zeros(self.batch, self.size), 0.0
            for xu in x @ u:
                h = torch.tanh(torch.addmm(xu, h, w))
                total = total + (h * h).sum()
            return total / x.numel()

        if self.gradient:
            return lambda: torch.autograd.grad(loss(), (w, u))
        return loss


SIZES = {"steps": 100, "batch": 32, "size": 64}

WORKLOADS = [
    Rnn("rnn forward T100 b32 h64", gradient=False, **SIZES),
    Rnn("rnn gradient T100 b32 h64", gradient=True, **SIZES),
]
