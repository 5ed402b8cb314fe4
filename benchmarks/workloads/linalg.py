"""Matrix products of the shapes that training steps have."""

import numpy as np

from benchmarks.workload import Workload


class MatMul(Workload):
    """An (m, k) times a (k, n) matrix; `transpose` names the one that is stored transposed."""

    transpose = ""
    dtype = "float32"
    without = ("treadle-eager", "tf-xla")

    def data(self):
        random = np.random.default_rng(0)
        a, b = (self.m, self.k), (self.k, self.n)
        shapes = [a[::-1] if self.transpose == "a" else a, b[::-1] if self.transpose == "b" else b]
        wide = np.float64 if self.dtype == "float64" else np.float32
        return [random.standard_normal(shape).astype(wide) for shape in shapes]

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

        data = [tf.cast(tf.constant(x), self.dtype) for x in self.data()]
        return function(product), *data

    def jax(self, jax):
        with jax.enable_x64(self.dtype == "float64"):
            f = jax.jit(self.product)
            data = [jax.numpy.asarray(x, self.dtype) for x in self.data()]

        def run():
            return f(*data).block_until_ready()

        def run_wide():
            with jax.enable_x64(True):
                return run()

        return run_wide if self.dtype == "float64" else run

    def torch(self, torch, compile):
        dtype = getattr(torch, self.dtype)
        return compile(self.product), *(torch.from_numpy(x).to(dtype) for x in self.data())


class Narrow(MatMul):
    """Of 16-bit floats, whose sums are rounded once."""

    dtype = "bfloat16"
    tolerance = 1e-2
    numpy = openblas = None


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
] + [
    *(MatMul(f"matmul float64 {n}x{n}x{n}", m=n, n=n, k=n, dtype="float64") for n in (256, 1024)),
    *(
        Narrow(f"matmul bfloat16 {m}x{n}x{k}", m=m, n=n, k=k)
        for m, n, k in [(128, 512, 784), (256, 256, 256), (1024, 1024, 1024)]
    ),
    MatMul("matrix by vector 1024x1024", m=1024, n=1, k=1024),
    MatMul("vector by matrix 1024x1024", m=1, n=1024, k=1024),
]
