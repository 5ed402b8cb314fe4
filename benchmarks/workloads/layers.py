"""Training steps of single layers as their users write them: Keras's layers in treadle and
TensorFlow, `torch.nn`'s in PyTorch, a scan in JAX, which has no layers.

Each is one step of gradient descent on the mean squared difference from a target, from the same
weights on the same batch.
"""

import numpy as np

from benchmarks.workload import Workload

RATE = 0.1


class LayerStep(Workload):
    """A layer with the weights `parameters()` on inputs of `batch` x `steps` x `units`."""

    checks = 5
    tolerance = 1e-3

    def parameters(self):
        raise NotImplementedError

    def keras_layer(self, keras):
        """The layer, not built yet, whose weights are `parameters()` in their order."""
        raise NotImplementedError

    def jax_layer(self, jax, parameters, x):
        raise NotImplementedError

    def torch_layer(self, torch):
        """A module with the weights, and what calls it on inputs."""
        raise NotImplementedError

    def arrays(self, *shapes):
        random = np.random.default_rng(0)
        return [(random.standard_normal(s) / np.sqrt(s[0])).astype(np.float32) for s in shapes]

    def data(self):
        random = np.random.default_rng(1)
        x = random.standard_normal((self.batch, self.steps, self.units)).astype(np.float32)
        return x, random.standard_normal(self.target_shape()).astype(np.float32)

    def target_shape(self):
        return self.batch, self.units

    def tf2(self, tf, function):
        layer, (x, y) = self.keras_layer(tf.keras), map(tf.constant, self.data())
        layer(x)
        layer.set_weights(self.parameters())
        weights = layer.trainable_variables

        @function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(layer(x) - y))
            for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
                weight.assign_sub(RATE * gradient)
            return loss

        return step, x, y

    def jax(self, jax):
        jnp = jax.numpy

        def loss(parameters, x, y):
            return jnp.mean(jnp.square(self.jax_layer(jax, parameters, x) - y))

        def step(parameters, x, y):
            value, gradient = jax.value_and_grad(loss)(parameters, x, y)
            return value, [p - RATE * g for p, g in zip(parameters, gradient, strict=True)]

        jitted = jax.jit(step, donate_argnums=0)
        state = [[jnp.asarray(p) for p in self.parameters()]]
        x, y = map(jnp.asarray, self.data())

        def run():
            value, state[0] = jitted(state[0], x, y)
            jax.block_until_ready(state[0])
            return value

        return run

    def torch(self, torch, compile):
        module, call = self.torch_layer(torch)
        x, y = map(torch.from_numpy, self.data())
        optimizer = torch.optim.SGD(module.parameters(), RATE, foreach=True)

        @compile
        def loss(x, y):
            return torch.nn.functional.mse_loss(call(x), y)

        def step():
            optimizer.zero_grad()
            value = loss(x, y)
            value.backward()
            optimizer.step()
            return value

        return step


def assign(torch, module, **weights):
    """Give a module of PyTorch its weights by their names, with ``__`` for a point."""
    with torch.no_grad():
        for name, value in weights.items():
            module.get_parameter(name.replace("__", ".")).copy_(torch.from_numpy(value))


class Recurrent(LayerStep):
    """The last state of an LSTM or a GRU."""

    without = ("torch-compile",)  # torch.nn's recurrent layers are one call already

    def parameters(self):
        n = self.units
        width = {"LSTM": 4, "GRU": 3}[self.kind] * n
        kernel, recurrent = self.arrays((n, width), (n, width))
        bias = (width,) if self.kind == "LSTM" else (2, width)
        return [kernel, recurrent, 0.1 * np.ones(bias, np.float32)]

    def keras_layer(self, keras):
        return getattr(keras.layers, self.kind)(self.units)

    def jax_layer(self, jax, parameters, x):
        cell = getattr(self, f"jax_{self.kind.lower()}")
        zero = jax.numpy.zeros((self.batch, self.units))
        return cell(jax, *parameters, jax.numpy.swapaxes(x, 0, 1), zero)

    def jax_lstm(self, jax, kernel, recurrent, bias, x, zero):
        jnp, sigmoid = jax.numpy, jax.nn.sigmoid

        def cell(state, xw):
            h, c = state
            i, f, g, o = jnp.split(xw + h @ recurrent, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            return (sigmoid(o) * jnp.tanh(c), c), None

        return jax.lax.scan(cell, (zero, zero), x @ kernel + bias)[0][0]

    def jax_gru(self, jax, kernel, recurrent, bias, x, zero):
        jnp, sigmoid = jax.numpy, jax.nn.sigmoid

        def cell(h, xw):
            xz, xr, xh = jnp.split(xw, 3, axis=1)
            hz, hr, hh = jnp.split(h @ recurrent + bias[1], 3, axis=1)
            z = sigmoid(xz + hz)
            return z * h + (1 - z) * jnp.tanh(xh + sigmoid(xr + hr) * hh), None

        return jax.lax.scan(cell, zero, x @ kernel + bias[0])[0]

    def torch_layer(self, torch):
        module = getattr(torch.nn, self.kind)(self.units, self.units, batch_first=True)
        kernel, recurrent, bias = self.parameters()
        if self.kind == "LSTM":
            biases = bias, np.zeros_like(bias)
        else:  # of the update and the reset gate PyTorch has the latter first
            kernel, recurrent, bias = map(_reset_first, (kernel, recurrent, bias))
            biases = bias
        assign(
            torch, module, weight_ih_l0=kernel.T, weight_hh_l0=recurrent.T, bias_ih_l0=biases[0],
            bias_hh_l0=biases[1],
        )  # fmt: skip
        return module, lambda x: module(x)[0][:, -1]


def _reset_first(weight):
    update, reset, candidate = np.split(weight, 3, axis=-1)
    return np.concatenate([reset, update, candidate], axis=-1)


class Attention(LayerStep):
    """MultiHeadAttention of a sequence with itself."""

    def sizes(self):
        n, heads, size = self.units, self.heads, self.units // self.heads
        return [*([(n, heads, size), (heads, size)] * 3), (heads, size, n), (n,)]

    def parameters(self):
        """Kernels and biases of query, key, value and results."""
        random, n = np.random.default_rng(0), self.units
        return [(random.standard_normal(s) / np.sqrt(n)).astype(np.float32) for s in self.sizes()]

    def target_shape(self):
        return self.batch, self.steps, self.units

    def keras_layer(self, keras):
        inputs = keras.Input((self.steps, self.units), batch_size=self.batch)
        layer = keras.layers.MultiHeadAttention(self.heads, self.units // self.heads)
        return keras.Model(inputs, layer(inputs, inputs))

    def jax_layer(self, jax, parameters, x):
        jnp = jax.numpy
        wq, bq, wk, bk, wv, bv, wo, bo = parameters
        q, k, v = (jnp.einsum("btd,dhk->bhtk", x, w) + b[:, None]
                   for w, b in ((wq, bq), (wk, bk), (wv, bv)))  # fmt: skip
        scores = q @ k.swapaxes(-1, -2) * (self.units // self.heads) ** -0.5
        return jnp.einsum("bhtk,hkd->btd", jax.nn.softmax(scores) @ v, wo) + bo

    def torch_layer(self, torch):
        module = torch.nn.MultiheadAttention(self.units, self.heads, batch_first=True)
        assign(torch, module, **_packed(self.parameters(), self.units))
        return module, lambda x: module(x, x, x, need_weights=False)[0]


def _packed(parameters, n, prefix=""):
    """Keras's weights of an attention layer as PyTorch has them."""
    kernels = [w.reshape(n, n).T for w in parameters[0:6:2]]
    biases = [b.reshape(n) for b in parameters[1:6:2]]
    return {
        f"{prefix}in_proj_weight": np.concatenate(kernels),
        f"{prefix}in_proj_bias": np.concatenate(biases),
        f"{prefix}out_proj__weight": parameters[6].reshape(n, n).T,
        f"{prefix}out_proj__bias": parameters[7],
    }


class Block(Attention):
    """A transformer block: attention and two dense layers, each after a norm and beside a
    shortcut."""

    def sizes(self):
        n = self.units
        norm = [(n,), (n,)]
        return [*norm, *super().sizes(), *norm, (n, 4 * n), (4 * n,), (4 * n, n), (n,)]

    def keras_layer(self, keras):
        layers, n = keras.layers, self.units
        inputs = keras.Input((self.steps, n), batch_size=self.batch)
        x = layers.LayerNormalization(epsilon=1e-5)(inputs)
        x = layers.MultiHeadAttention(self.heads, n // self.heads)(x, x)
        middle = layers.Add()([inputs, x])
        x = layers.LayerNormalization(epsilon=1e-5)(middle)
        x = layers.Dense(n)(layers.Dense(4 * n, activation="gelu")(x))
        return keras.Model(inputs, layers.Add()([middle, x]))

    def jax_layer(self, jax, parameters, x):
        g1, b1, *attention, g2, b2, w3, b3, w4, b4 = parameters

        def norm(x, gamma, beta):
            x = x - x.mean(-1, keepdims=True)
            return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gamma + beta

        x = x + super().jax_layer(jax, attention, norm(x, g1, b1))
        return x + jax.nn.gelu(norm(x, g2, b2) @ w3 + b3, approximate=False) @ w4 + b4

    def torch_layer(self, torch):
        module = torch.nn.TransformerEncoderLayer(
            self.units, self.heads, 4 * self.units, dropout=0.0, activation="gelu",
            batch_first=True, norm_first=True,
        )  # fmt: skip
        g1, b1, *attention, g2, b2, w3, b3, w4, b4 = self.parameters()
        assign(
            torch, module, norm1__weight=g1, norm1__bias=b1, norm2__weight=g2, norm2__bias=b2,
            linear1__weight=w3.T, linear1__bias=b3, linear2__weight=w4.T, linear2__bias=b4,
            **_packed(attention, self.units, "self_attn__"),
        )  # fmt: skip
        return module, module


SMALL = {"batch": 32, "steps": 64, "units": 128}
LARGE = {"batch": 64, "steps": 64, "units": 256}
HEADS = {"batch": 16, "steps": 64, "units": 128, "heads": 4}

WORKLOADS = [
    Recurrent("layer: LSTM b32 t64 u128", kind="LSTM", **SMALL),
    Recurrent("layer: LSTM b64 t64 u256", kind="LSTM", **LARGE),
    Recurrent("layer: GRU b32 t64 u128", kind="GRU", **SMALL),
    Recurrent("layer: GRU b64 t64 u256", kind="GRU", **LARGE),
    Attention("layer: attention b16 t64 h4x32", **HEADS),
    Block("layer: transformer block b16 t64 h4x32", **HEADS),
    Block("layer: transformer block b8 t128 h8x64", batch=8, steps=128, units=512, heads=8),
]
