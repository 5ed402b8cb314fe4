"""Training steps of models over sequences."""

import numpy as np

from benchmarks.training import TrainingStep


class Sequence(TrainingStep):
    """Sequences of `steps` vectors of `size` float32, in ten classes."""

    def sizes(self):
        """The shapes of the parameters, the last two a dense layer of ten."""
        raise NotImplementedError

    def parameters(self):
        random = np.random.default_rng(0)
        return [
            (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
            if len(shape) == 2
            else np.zeros(shape, np.float32)
            for shape in self.sizes()
        ]

    def batch(self):
        random = np.random.default_rng(1)
        x = random.standard_normal((self.images, self.steps, self.size)).astype(np.float32)
        return x, random.integers(0, 10, self.images).astype(np.int32)


class Lstm(Sequence):
    """One LSTM layer, its gates in the order i, f, g, o; the last state goes to the dense layer."""

    without = ("torch-compile",)  # torch.lstm is one kernel already

    def sizes(self):
        n = self.size
        return [(n, 4 * n), (n, 4 * n), (4 * n,), (n, 10), (10,)]

    def tf2_logits(self, tf, parameters, x):
        w, u, b, dense, bias = parameters
        h, c = tf.zeros((self.images, self.size)), tf.zeros((self.images, self.size))
        for t in tf.range(self.steps):
            i, f, g, o = tf.split(x[:, t] @ w + h @ u + b, 4, axis=1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
        return h @ dense + bias

    def jax_logits(self, jax, parameters, x):
        w, u, b, dense, bias = parameters
        jnp, sigmoid = jax.numpy, jax.nn.sigmoid

        def cell(state, xw):
            h, c = state
            i, f, g, o = jnp.split(xw + h @ u + b, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            return (sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((self.images, self.size))
        (h, _), _ = jax.lax.scan(cell, (zero, zero), jnp.swapaxes(x, 0, 1) @ w)
        return h @ dense + bias

    def torch_logits(self, torch, parameters, x):
        w, u, b, dense, bias = parameters
        zero = x.new_zeros(1, self.images, self.size)
        weights = [w.T.contiguous(), u.T.contiguous(), b, torch.zeros_like(b)]
        _, h, _ = torch.lstm(x, (zero, zero), weights, True, 1, 0.0, True, False, True)
        return torch.addmm(bias, h[0], dense)


class Transformer(Sequence):
    """One pre-norm transformer block; the mean over time goes to the dense layer."""

    tolerance = 5e-3

    def sizes(self):
        n = self.size
        return [(n, 3 * n), (n, n), (n, 4 * n), (4 * n,), (4 * n, n), (n,), (n, 10), (10,)]

    def tf2_logits(self, tf, parameters, x):
        def norm(x):
            x = x - tf.reduce_mean(x, axis=-1, keepdims=True)
            return x * tf.math.rsqrt(tf.reduce_mean(x * x, axis=-1, keepdims=True) + 1e-5)

        def gelu(x):
            return 0.5 * x * (1.0 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

        def heads(x):
            shape = (self.images, self.steps, self.heads, self.size // self.heads)
            return tf.transpose(tf.reshape(x, shape), (0, 2, 1, 3))

        qkv, out, w1, b1, w2, b2, dense, bias = parameters
        q, k, v = (heads(part) for part in tf.split(norm(x) @ qkv, 3, axis=-1))
        scale = (self.size // self.heads) ** -0.5
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * scale)
        mixed = tf.transpose(weights @ v, (0, 2, 1, 3))
        x = x + tf.reshape(mixed, (self.images, self.steps, self.size)) @ out
        x = x + gelu(norm(x) @ w1 + b1) @ w2 + b2
        return tf.reduce_mean(x, axis=1) @ dense + bias

    def jax_logits(self, jax, parameters, x):
        jnp = jax.numpy

        def norm(x):
            x = x - x.mean(-1, keepdims=True)
            return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

        def heads(x):
            shape = (self.images, self.steps, self.heads, self.size // self.heads)
            return x.reshape(shape).transpose(0, 2, 1, 3)

        qkv, out, w1, b1, w2, b2, dense, bias = parameters
        q, k, v = (heads(part) for part in jnp.split(norm(x) @ qkv, 3, axis=-1))
        scale = (self.size // self.heads) ** -0.5
        mixed = jax.nn.softmax(q @ k.swapaxes(-1, -2) * scale) @ v
        x = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ out
        x = x + jax.nn.gelu(norm(x) @ w1 + b1, approximate=True) @ w2 + b2
        return x.mean(1) @ dense + bias

    def torch_logits(self, torch, parameters, x):
        functional = torch.nn.functional

        def norm(x):
            return functional.layer_norm(x, (self.size,))

        def heads(x):
            shape = (self.images, self.steps, self.heads, self.size // self.heads)
            return x.reshape(shape).transpose(1, 2)

        qkv, out, w1, b1, w2, b2, dense, bias = parameters
        q, k, v = (heads(part) for part in (norm(x) @ qkv).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v)
        x = x + mixed.transpose(1, 2).reshape(x.shape) @ out
        x = x + functional.gelu(norm(x) @ w1 + b1, approximate="tanh") @ w2 + b2
        return torch.addmm(bias, x.mean(1), dense)


WORKLOADS = [
    Lstm("lstm step T100 b32 h128 Adam", images=32, steps=100, size=128),
    Transformer(
        "transformer block step b8 t128 d256 h4 Adam", images=8, steps=128, size=256, heads=4
    ),
]
