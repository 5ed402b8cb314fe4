"""What a call costs when the work is next to nothing."""

import numpy as np

from benchmarks.workload import Workload


def small(seed):
    return np.random.default_rng(seed).standard_normal(4).astype(np.float32)


def add_one(x):
    return x + 1.0


def multiply_add(x, y, z):
    return x * y + z


def add_one_to_list(xs):
    return [x + 1.0 for x in xs]


def add_one_to_dict(xs):
    return {name: x + 1.0 for name, x in xs.items()}


class Call(Workload):
    """A cached call of `function`; `arguments` are trees of NumPy arrays.

    The arrays become the library's tensors beforehand, unless `ndarrays` passes them as they are.
    """

    ndarrays = False

    def call(self, decorate, convert):
        keep = self.ndarrays
        return decorate(self.function), *(tree(a, convert, keep) for a in self.arguments)

    def tf2(self, tf, function):
        return self.call(function, tf.constant)

    def jax(self, jax):
        return self.call(jax.jit, jax.numpy.asarray)

    def torch(self, torch, compile):
        return None if self.ndarrays else self.call(compile, torch.from_numpy)


def tree(value, convert, keep):
    if isinstance(value, list):
        return [tree(item, convert, keep) for item in value]
    if isinstance(value, dict):
        return {name: tree(item, convert, keep) for name, item in value.items()}
    return value if keep else convert(value)


class EagerAdd(Workload):
    """x + y without any compiler."""

    without = ("treadle", "tf-xla", "torch-compile")

    def numpy(self, np):
        return np.add, small(0), small(1)

    def tf2(self, tf, function):
        return add_two, tf.constant(small(0)), tf.constant(small(1))

    def jax(self, jax):
        return add_two, jax.numpy.asarray(small(0)), jax.numpy.asarray(small(1))

    def torch(self, torch, compile):
        return add_two, torch.from_numpy(small(0)), torch.from_numpy(small(1))


def add_two(x, y):
    return x + y


TWENTY = [small(i) for i in range(20)]
ONE, THREE = [small(0)], [small(0), small(1), small(2)]

WORKLOADS = [
    EagerAdd("eager add, 4 floats"),
    Call("call, 1 tensor", function=add_one, arguments=ONE),
    Call("call, 1 ndarray", function=add_one, arguments=ONE, ndarrays=True, kinds=("CPU",)),
    Call("call, 3 tensors", function=multiply_add, arguments=THREE),
    Call(
        "call, 3 ndarrays", function=multiply_add, arguments=THREE, ndarrays=True, kinds=("CPU",)
    ),
    Call("call, list of 20", function=add_one_to_list, arguments=[TWENTY]),
    Call(
        "call, dict of 20",
        function=add_one_to_dict,
        arguments=[{f"x{i}": x for i, x in enumerate(TWENTY)}],
    ),
]
