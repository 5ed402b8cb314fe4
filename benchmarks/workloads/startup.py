"""What happens once: importing, compiling, meeting new shapes.

Nothing here may import NumPy at the top: the import is one of the things timed.
"""

import importlib

from benchmarks.workload import Workload, load


class Import(Workload):
    """`import library` in a new process."""

    kinds = ("CPU",)
    without = ("treadle-eager", "tf-xla", "torch-compile")  # the same imports again
    fresh = True

    def job(self, library):
        if library.name in self.without:
            return None
        return importlib.import_module, library.package


class FirstCall(Workload):
    """The first call of another workload's job; building the job is not counted."""

    fresh = True
    tolerance = 2e-3
    without = ("treadle-eager", "torch")  # nothing is compiled

    def job(self, library):
        if library.name in self.without:
            return None
        return load(self.of).job(library)


class BatchSizes(Workload):
    """GELU over batches of 1 to 50 rows, each new to the function; compiling included."""

    without = ("treadle-eager", "torch")  # nothing is compiled
    fresh = True

    def batches(self):
        import numpy as np

        x = np.random.default_rng(1).standard_normal((50, 128)).astype(np.float32)
        return [x[:n] for n in range(1, 51)]

    def calls(self, f, convert):
        batches = [convert(batch) for batch in self.batches()]
        return lambda: [f(batch) for batch in batches]

    def tf2(self, tf, function):
        def gelu(x):
            return 0.5 * x * (1.0 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

        return self.calls(function(gelu), tf.constant)

    def jax(self, jax):
        def gelu(x):
            return 0.5 * x * (1.0 + jax.numpy.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

        return self.calls(jax.jit(gelu), jax.numpy.asarray)

    def torch(self, torch, compile):
        def gelu(x):
            return torch.nn.functional.gelu(x, approximate="tanh")

        return self.calls(compile(gelu), torch.from_numpy)


MLP, CNN = ("mlp", 0), ("cnn", 0)

WORKLOADS = [
    Import("import"),
    FirstCall("first call, mlp step, cold", of=MLP),
    FirstCall("first call, mlp step, warm cache", of=MLP, warm=True),
    FirstCall("first call, cnn step, cold", of=CNN),
    FirstCall("first call, cnn step, warm cache", of=CNN, warm=True),
    BatchSizes("50 batch sizes, cold"),
]
