"""Matrix products of the shapes that training steps have."""

import os

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


class Bytes(MatMul):
    """Of numbers of 8 bits with signs, added up as int32: what a layer that was quantized computes.
    """

    kinds = ("CPU",)
    without = ()
    tolerance = 0.0

    def data(self):
        random = np.random.default_rng(0)
        a, b = (self.m, self.k), (self.n, self.k) if self.transpose else (self.k, self.n)
        return [random.integers(-128, 128, shape).astype(np.int8) for shape in (a, b)]

    numpy = openblas = None

    def tf2(self, tf, function):
        turned = self.transpose == "b"

        def product(a, b):
            return tf.matmul(a, b, transpose_b=turned, output_type=tf.int32)

        return function(product), *map(tf.constant, self.data())

    def jax(self, jax):
        over = (((1,), (1 if self.transpose else 0,)), ((), ()))

        def product(a, b):
            return jax.lax.dot_general(a, b, over, preferred_element_type=jax.numpy.int32)

        f, data = jax.jit(product), list(map(jax.numpy.asarray, self.data()))
        return lambda: f(*data).block_until_ready()

    def torch(self, torch, compile):
        def product(a, b):
            return torch._int_mm(a, b.T if self.transpose else b)

        return compile(product), *map(torch.from_numpy, self.data())

    def onnxruntime(self, onnxruntime):
        import onnx  # a package of its own, which makes the models

        if self.transpose:
            return None  # MatMulInteger takes matrices as they are
        of_8, of_32 = onnx.TensorProto.INT8, onnx.TensorProto.INT32
        value = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("MatMulInteger", ["a", "b"], ["c"])], "product",
            [value("a", of_8, [self.m, self.k]), value("b", of_8, [self.k, self.n])],
            [value("c", of_32, [self.m, self.n])],
        )  # fmt: skip
        version = onnx.helper.make_opsetid("", 13)
        model = onnx.helper.make_model(graph, opset_imports=[version], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        given = dict(zip("ab", self.data(), strict=True))
        return lambda: session.run(None, given)[0]


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
    *(
        Bytes(title(m, n, k, transpose).replace("matmul", "matmul int8"), m=m, n=n, k=k,
              transpose=transpose)
        for m, n, k, transpose in [
            (64, 64, 64, ""), (128, 128, 128, ""), (256, 256, 256, ""), (512, 512, 512, ""),
            (1024, 1024, 1024, ""), (1024, 1024, 1024, "b"), (128, 512, 784, ""),
            (32, 1024, 1024, ""), (32, 1024, 1024, "b"), (1, 1024, 1024, ""), (1, 1024, 1024, "b"),
            (1024, 16, 1024, ""), (1024, 1024, 64, ""),
        ]
    ),
    MatMul("matrix by vector 1024x1024", m=1024, n=1, k=1024),
    MatMul("vector by matrix 1024x1024", m=1, n=1024, k=1024),
]
