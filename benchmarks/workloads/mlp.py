"""Training steps of fully connected networks."""

import numpy as np

from benchmarks.training import TrainingStep


class Mlp(TrainingStep):
    """ReLU between dense layers of the sizes `sizes`, on random inputs."""

    def parameters(self):
        random = np.random.default_rng(0)
        shapes = zip(self.sizes, self.sizes[1:], strict=False)
        return [
            p
            for a, b in shapes
            for p in (
                (random.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32),
                np.zeros(b, np.float32),
            )
        ]

    def batch(self):
        random = np.random.default_rng(1)
        x = random.random((self.images, self.sizes[0])).astype(np.float32)
        return x, random.integers(0, self.sizes[-1], self.images).astype(np.int32)

    def tf2_logits(self, tf, parameters, x):
        *hidden, w, b = parameters
        for i in range(0, len(hidden), 2):
            x = tf.nn.relu(x @ hidden[i] + hidden[i + 1])
        return x @ w + b

    def jax_logits(self, jax, parameters, x):
        *hidden, w, b = parameters
        for i in range(0, len(hidden), 2):
            x = jax.nn.relu(x @ hidden[i] + hidden[i + 1])
        return x @ w + b

    def torch_logits(self, torch, parameters, x):
        *hidden, w, b = parameters
        for i in range(0, len(hidden), 2):
            x = torch.relu(torch.addmm(hidden[i + 1], x, hidden[i]))
        return torch.addmm(b, x, w)


WORKLOADS = [
    Mlp("mlp step 784-100-10 b50 Adam", sizes=(784, 100, 10), images=50),
    Mlp("mlp step 784-512-512-10 b128 Adam", sizes=(784, 512, 512, 10), images=128),
]
