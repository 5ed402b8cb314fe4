"""Reductions along the rows of a matrix."""

import numpy as np

from benchmarks.workload import Workload


class Softmax(Workload):
    def data(self):
        return np.random.default_rng(1).standard_normal((self.rows, self.columns)).astype("f4")

    def numpy(self, np):
        def softmax(x):
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        return softmax, self.data()

    def tf2(self, tf, function):
        def softmax(x):
            return tf.nn.softmax(x)

        return function(softmax), tf.constant(self.data())

    def jax(self, jax):
        f, x = jax.jit(jax.nn.softmax), jax.numpy.asarray(self.data())
        return lambda: f(x).block_until_ready()

    def torch(self, torch, compile):
        def softmax(x):
            return torch.softmax(x, -1)

        return compile(softmax), torch.from_numpy(self.data())


class LayerNorm(Workload):
    tolerance = 1e-4

    def data(self):
        random = np.random.default_rng(1)
        shapes = [(self.rows, self.columns), (self.columns,), (self.columns,)]
        return [random.standard_normal(shape).astype(np.float32) for shape in shapes]

    def numpy(self, np):
        def layer_norm(x, gain, bias):
            x = x - x.mean(-1, keepdims=True)
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain + bias

        return layer_norm, *self.data()

    def tf2(self, tf, function):
        def layer_norm(x, gain, bias):
            x = x - tf.reduce_mean(x, axis=-1, keepdims=True)
            variance = tf.reduce_mean(x * x, axis=-1, keepdims=True)
            return x * tf.math.rsqrt(variance + 1e-5) * gain + bias

        return function(layer_norm), *map(tf.constant, self.data())

    def jax(self, jax):
        def layer_norm(x, gain, bias):
            x = x - x.mean(-1, keepdims=True)
            return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain + bias

        f, data = jax.jit(layer_norm), [jax.numpy.asarray(x) for x in self.data()]
        return lambda: f(*data).block_until_ready()

    def torch(self, torch, compile):
        def layer_norm(x, gain, bias):
            return torch.nn.functional.layer_norm(x, (self.columns,), gain, bias)

        return compile(layer_norm), *map(torch.from_numpy, self.data())


class CrossEntropy(Workload):
    """Mean cross-entropy of logits against labels, and its gradient."""

    tolerance = 1e-4

    def data(self):
        random = np.random.default_rng(1)
        logits = (random.standard_normal((self.rows, self.columns)) * 3).astype(np.float32)
        return logits, random.integers(0, self.columns, self.rows).astype(np.int32)

    def numpy(self, np):
        def loss_and_gradient(logits, labels):
            rows = np.arange(len(labels))
            e = np.exp(logits - logits.max(-1, keepdims=True))
            p = e / e.sum(-1, keepdims=True)
            loss = -np.log(p[rows, labels]).mean()
            p[rows, labels] -= 1
            return loss, p / np.float32(len(labels))

        return loss_and_gradient, *self.data()

    def tf2(self, tf, function):
        def loss_and_gradient(logits, labels):
            with tf.GradientTape() as tape:
                tape.watch(logits)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=labels, logits=logits
                )
                loss = tf.reduce_mean(losses)
            return loss, tape.gradient(loss, logits)

        return function(loss_and_gradient), *map(tf.constant, self.data())

    def jax(self, jax):
        def loss(logits, labels):
            logs = jax.nn.log_softmax(logits)
            return -jax.numpy.take_along_axis(logs, labels[:, None], 1).mean()

        f, data = jax.jit(jax.value_and_grad(loss)), [jax.numpy.asarray(x) for x in self.data()]
        return lambda: jax.block_until_ready(f(*data))

    def torch(self, torch, compile):
        logits, labels = map(torch.from_numpy, self.data())
        logits, labels = logits.requires_grad_(), labels.long()
        loss = compile(torch.nn.functional.cross_entropy)

        def loss_and_gradient():
            value = loss(logits, labels)
            return value, torch.autograd.grad(value, logits)[0]

        return loss_and_gradient


WORKLOADS = [
    Softmax("softmax 1024x1024", rows=1024, columns=1024),
    LayerNorm("layer norm 1024x1024", rows=1024, columns=1024),
    CrossEntropy("cross-entropy and gradient 4096x1000", rows=4096, columns=1000),
]
