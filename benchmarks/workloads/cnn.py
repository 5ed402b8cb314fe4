"""A training step of the MNIST network of TensorFlow's old tutorial."""

import numpy as np

from benchmarks.training import TrainingStep


class Cnn(TrainingStep):
    """conv 5x5x32, pool, conv 5x5x64, pool, dense 1024, dense 10, on 28x28 images."""

    rate = 1e-4

    def parameters(self):
        random = np.random.default_rng(0)

        def weight(*shape, fan):
            return (random.standard_normal(shape) * np.sqrt(2 / fan)).astype(np.float32)

        def bias(n):
            return np.full(n, 0.1, np.float32)

        return [
            weight(5, 5, 1, 32, fan=25), bias(32), weight(5, 5, 32, 64, fan=800), bias(64),
            weight(3136, 1024, fan=3136), bias(1024), weight(1024, 10, fan=1024), bias(10),
        ]  # fmt: skip

    def batch(self):
        random = np.random.default_rng(1)
        x = random.random((self.images, 28, 28, 1)).astype(np.float32)
        return x, random.integers(0, 10, self.images).astype(np.int32)

    def tf2_logits(self, tf, parameters, x):
        f1, b1, f2, b2, w3, b3, w4, b4 = parameters
        x = tf.nn.relu(tf.nn.conv2d(x, f1, 1, "SAME") + b1)
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.nn.relu(tf.nn.conv2d(x, f2, 1, "SAME") + b2)
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.nn.relu(tf.reshape(x, (-1, 3136)) @ w3 + b3)
        return x @ w4 + b4

    def jax_logits(self, jax, parameters, x):
        f1, b1, f2, b2, w3, b3, w4, b4 = parameters
        lax = jax.lax

        def block(x, filters, bias):
            dims = ("NHWC", "HWIO", "NHWC")
            x = lax.conv_general_dilated(x, filters, (1, 1), "SAME", dimension_numbers=dims)
            x = jax.nn.relu(x + bias)
            window = (1, 2, 2, 1)
            return lax.reduce_window(x, -jax.numpy.inf, lax.max, window, window, "VALID")

        x = block(block(x, f1, b1), f2, b2).reshape(-1, 3136)
        return jax.nn.relu(x @ w3 + b3) @ w4 + b4

    def torch_parameters(self, torch):
        """Filters as torch wants them: channels first in the shape, last in memory."""
        channels_last = {"memory_format": torch.channels_last}
        tensors = [torch.from_numpy(p).clone() for p in self.parameters()]
        return [
            t.permute(3, 2, 0, 1).contiguous(**channels_last) if t.ndim == 4 else t for t in tensors
        ]

    def torch_input(self, torch, x):
        x = torch.from_numpy(x).permute(0, 3, 1, 2)
        return x.contiguous(memory_format=torch.channels_last)

    def torch_logits(self, torch, parameters, x):
        f1, b1, f2, b2, w3, b3, w4, b4 = parameters
        F = torch.nn.functional
        x = F.max_pool2d(F.relu(F.conv2d(x, f1, b1, padding=2)), 2)
        x = F.max_pool2d(F.relu(F.conv2d(x, f2, b2, padding=2)), 2)
        x = x.permute(0, 2, 3, 1).reshape(-1, 3136)
        return torch.addmm(b4, F.relu(torch.addmm(b3, x, w3)), w4)


WORKLOADS = [Cnn("cnn step 32-64-1024 b50 Adam", images=50)]
