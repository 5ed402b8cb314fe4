"""Training steps for the workloads: a model's parameters and loss become a job in each library.

A model is an object with `parameters()` (NumPy arrays), `batch()` (inputs, int32 labels) and, per
library, its logits as a function of parameters and inputs. Loss: mean sparse cross-entropy;
optimizer: Adam with Keras's update rule.
"""

from typing import Any

import numpy as np

from benchmarks.workload import Job, Workload

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7


class TrainingStep(Workload):
    """One step of Adam on one batch; returns the loss. The first `checks` losses must agree."""

    checks = 5
    tolerance = 2e-3
    rate = 1e-3

    def parameters(self) -> list[np.ndarray]:
        raise NotImplementedError

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def tf2_logits(self, tf: Any, parameters: list[Any], x: Any) -> Any:
        raise NotImplementedError

    def jax_logits(self, jax: Any, parameters: list[Any], x: Any) -> Any:
        raise NotImplementedError

    def torch_logits(self, torch: Any, parameters: list[Any], x: Any) -> Any:
        raise NotImplementedError

    def tf2(self, tf: Any, function: Any) -> Job:
        optimizer = tf.keras.optimizers.Adam(self.rate, BETA1, BETA2, EPSILON)

        def apply(gradients: list[Any], variables: list[Any]) -> None:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        return self._tf2_step(tf, function, apply)

    def tensorflow(self, tf: Any, function: Any) -> Job:
        """TensorFlow's own fused update is several times faster than its Keras optimizer."""
        return self._tf2_step(tf, function, FusedAdam(tf, self.rate).apply)

    def _tf2_step(self, tf: Any, function: Any, apply: Any) -> Job:
        variables = [tf.Variable(p) for p in self.parameters()]
        x, y = map(tf.constant, self.batch())

        @function
        def step(x, y):  # type: ignore[no-untyped-def]
            with tf.GradientTape() as tape:
                logits = self.tf2_logits(tf, variables, x)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                loss = tf.reduce_mean(losses)
            apply(tape.gradient(loss, variables), variables)
            return loss

        return step, x, y

    def jax(self, jax: Any) -> Job:
        jnp, tree = jax.numpy, jax.tree

        def loss(parameters: Any, x: Any, y: Any) -> Any:
            logs = jax.nn.log_softmax(self.jax_logits(jax, parameters, x))
            return -jnp.take_along_axis(logs, y[:, None], 1).mean()

        def step(parameters: Any, m: Any, v: Any, t: Any, x: Any, y: Any) -> Any:
            value, gradient = jax.value_and_grad(loss)(parameters, x, y)
            t = t + 1
            rate = self.rate * jnp.sqrt(1 - BETA2**t) / (1 - BETA1**t)
            m = tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, gradient)
            v = tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, gradient)
            parameters = tree.map(
                lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), parameters, m, v
            )
            return value, (parameters, m, v, t)

        jitted = jax.jit(step, donate_argnums=(0, 1, 2))
        parameters = [jnp.asarray(p) for p in self.parameters()]
        zeros = [[jnp.zeros_like(p) for p in parameters] for _ in range(2)]
        state = [(parameters, *zeros, jnp.float32(0))]
        x, y = map(jnp.asarray, self.batch())

        def run() -> Any:
            value, state[0] = jitted(*state[0], x, y)
            jax.block_until_ready(state[0])
            return value

        return run

    def torch(self, torch: Any, compile: Any) -> Job:
        parameters = [p.requires_grad_() for p in self.torch_parameters(torch)]
        x, y = self.batch()
        x, y = self.torch_input(torch, x), torch.from_numpy(y).long()
        optimizer = torch.optim.Adam(parameters, self.rate, (BETA1, BETA2), EPSILON, fused=True)

        @compile
        def loss(x: Any, y: Any) -> Any:
            return torch.nn.functional.cross_entropy(self.torch_logits(torch, parameters, x), y)

        def step() -> Any:
            optimizer.zero_grad()
            value = loss(x, y)
            value.backward()
            optimizer.step()
            return value

        return step

    def torch_parameters(self, torch: Any) -> list[Any]:
        return [torch.from_numpy(p).clone() for p in self.parameters()]

    def torch_input(self, torch: Any, x: np.ndarray) -> Any:
        return torch.from_numpy(x)


class FusedAdam:
    """Adam by TensorFlow's ResourceApplyAdam."""

    def __init__(self, tf: Any, rate: float) -> None:
        self.tf, self.rate = tf, rate
        self.powers = [tf.Variable(BETA1), tf.Variable(BETA2)]
        self.slots: list[tuple[Any, Any]] = []

    def apply(self, gradients: list[Any], variables: list[Any]) -> None:
        tf, powers = self.tf, self.powers
        if not self.slots:
            with tf.init_scope():
                self.slots += [
                    (tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v)))
                    for v in variables
                ]
        for variable, gradient, (m, v) in zip(variables, gradients, self.slots, strict=True):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle, m=m.handle, v=v.handle, grad=gradient, lr=self.rate,
                beta1_power=powers[0], beta2_power=powers[1],
                beta1=BETA1, beta2=BETA2, epsilon=EPSILON,
            )  # fmt: skip
        powers[0].assign(powers[0] * BETA1)
        powers[1].assign(powers[1] * BETA2)
