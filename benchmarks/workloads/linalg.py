"""Matrix products of the shapes that training steps have."""

import numpy as np

from benchmarks.workload import Workload


class MatMul(Workload):
    """An (m, k) times a (k, n) matrix; `transpose` names the one that is stored transposed."""

    transpose = ""
    without = ("treadle-eager", "tf-xla")

    def data(self):
        random = np.random.default_rng(0)
        a, b = (self.m, self.k), (self.k, self.n)
        shapes = [a[::-1] if self.transpose == "a" else a, b[::-1] if self.transpose == "b" else b]
        return [random.standard_normal(shape).astype(np.float32) for shape in shapes]

    def product(self, a, b):
        """For the libraries whose arrays have `.T`."""
        return (a.T if self.transpose == "a" else a) @ (b.T if self.transpose == "b" else b)

    def numpy(self, np):
        return self.product, *self.data()

    openblas = numpy  # the same with OpenBLAS's kernels for AVX-512

    def tf2(self, tf, function):
        left, right = self.transpose == "a", self.transpose == "b"

        def product(a, b):
            return tf.matmul(a, b, transpose_a=left, transpose_b=right)

        return function(product), *map(tf.constant, self.data())

    def jax(self, jax):
        f, data = jax.jit(self.product), [jax.numpy.asarray(x) for x in self.data()]
        return lambda: f(*data).block_until_ready()

    def torch(self, torch, compile):
        return compile(self.product), *map(torch.from_numpy, self.data())


SHAPES = [
    (32, 64, 64, ""), (50, 100, 784, ""), (784, 100, 50, "a"), (128, 512, 784, ""),
    (128, 512, 512, ""), (128, 512, 512, "b"), (512, 512, 128, "a"), (50, 1024, 3136, ""),
    (3136, 1024, 50, "a"), (50, 3136, 1024, "b"), (256, 256, 256, ""), (1024, 1024, 1024, ""),
    (9800, 64, 800, ""),
]  # fmt: skip


def title(m, n, k, transpose):
    return f"matmul {m}x{n}x{k}" + (f" {transpose} transposed" if transpose else "")


WORKLOADS = [
    MatMul(title(*shape), m=shape[0], n=shape[1], k=shape[2], transpose=shape[3])
    for shape in SHAPES
]
