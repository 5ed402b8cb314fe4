"""Updates of many parameters in place."""

import numpy as np

from benchmarks.training import BETA1, BETA2, EPSILON, FusedAdam
from benchmarks.workload import Workload

SHAPES = [(784, 1024), (1024,), (1024, 1536), (1536,), (1536, 600), (600,)]


class Adam(Workload):
    """One Adam step over 3.3 million parameters with constant gradients; returns one of them."""

    tolerance = 1e-4
    checks = 3
    rate = 1e-3
    without = ("torch-compile",)  # the fused optimizer is a kernel of its own

    def data(self):
        random = np.random.default_rng(0)
        arrays = [random.standard_normal(shape).astype(np.float32) for shape in SHAPES * 2]
        return arrays[: len(SHAPES)], arrays[len(SHAPES) :]

    def numpy(self, np):
        parameters, gradients = self.data()
        slots = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
        time = [0]

        def step():
            time[0] += 1
            rate = np.float32(self.rate * np.sqrt(1 - BETA2 ** time[0]) / (1 - BETA1 ** time[0]))
            for p, g, (m, v) in zip(parameters, gradients, slots, strict=True):
                m += (1 - BETA1) * (g - m)
                v += (1 - BETA2) * (g * g - v)
                p -= rate * m / (np.sqrt(v) + EPSILON)
            return parameters[1].copy()

        return step

    def tf2(self, tf, function):
        optimizer = tf.keras.optimizers.Adam(self.rate, BETA1, BETA2, EPSILON)

        def apply(gradients, variables):
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        return self.step(tf, function, apply)

    def tensorflow(self, tf, function):
        return self.step(tf, function, FusedAdam(tf, self.rate).apply)

    def step(self, tf, function, apply):
        parameters, gradients = self.data()
        variables = [tf.Variable(p) for p in parameters]
        gradients = [tf.constant(g) for g in gradients]

        @function
        def step(gradients):
            apply(gradients, variables)
            return variables[1] + 0.0

        return step, gradients

    def jax(self, jax):
        jnp, tree = jax.numpy, jax.tree

        def update(state, gradients):
            parameters, m, v, t = state
            t = t + 1
            rate = self.rate * jnp.sqrt(1 - BETA2**t) / (1 - BETA1**t)
            m = tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, gradients)
            v = tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, gradients)
            parameters = tree.map(
                lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), parameters, m, v
            )
            return parameters, m, v, t

        jitted = jax.jit(update, donate_argnums=0)
        parameters, gradients = ([jnp.asarray(a) for a in part] for part in self.data())
        zeros = [[jnp.zeros_like(p) for p in parameters] for _ in range(2)]
        state = [(parameters, *zeros, jnp.float32(0))]

        def step():
            state[0] = jax.block_until_ready(jitted(state[0], gradients))
            return state[0][0][1]

        return step

    def torch(self, torch, compile):
        parameters, gradients = (list(map(torch.from_numpy, part)) for part in self.data())
        parameters = [p.requires_grad_() for p in parameters]
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = g
        betas = (BETA1, BETA2)
        optimizer = torch.optim.Adam(parameters, self.rate, betas, EPSILON, fused=True)

        def step():
            optimizer.step()
            return parameters[1]

        return step


WORKLOADS = [Adam("Adam, 3.3 million parameters")]
