"""Random graphs: compiled programs give what the interpreter gives, and keep doing so."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, captures, native, trace
from treadle.core.spec import TensorSpec
from treadle.ops.control.control_flow import cond, while_loop

pytestmark = pytest.mark.thorough

UNARY = [
    td.tanh, td.sigmoid, td.abs, td.negative, td.square, lambda x: td.exp(td.minimum(x, 1.0)),
    lambda x: td.sqrt(td.abs(x) + 0.5), td.nn.relu, td.floor,
]  # fmt: skip
BINARY = [
    td.add, td.subtract, td.multiply, td.maximum, td.minimum,
    lambda x, y: x / (td.abs(y) + 1.0), lambda x, y: td.where(x > y, x, y * 0.5),
]  # fmt: skip
ROWS, COLUMNS = 5, 7


class Maker:
    """Builds a random function of tensors; the same choices for the same seed."""

    def __init__(self, seed, symbolic):
        self.rng = np.random.default_rng(seed)
        self.symbolic = symbolic

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def of_rank(self, values, rank):
        return [v for v in values if v.ndim == rank]

    def step(self, values, depth=0):
        """One more value computed from those there are."""
        kinds = ["unary"] * 3 + ["binary"] * 4 + ["row", "column", "total", "move", "soft", "bool"]
        if depth == 0:
            kinds += ["cond", "while", "matmul"]
        return getattr(self, self.pick(kinds))(values, depth)

    def unary(self, values, depth):
        return self.pick(UNARY)(self.pick(values))

    def binary(self, values, depth):
        return self.pick(BINARY)(self.pick(values), self.pick(values))

    def row(self, values, depth):
        reduce = self.pick([td.reduce_sum, td.reduce_max, td.reduce_mean])
        return reduce(self.matrix(values), -1, keepdims=True)

    def column(self, values, depth):
        return self.pick([td.reduce_mean, td.reduce_min])(self.matrix(values), 0)

    def total(self, values, depth):
        return self.pick([td.reduce_mean, td.reduce_max])(self.pick(values))

    def move(self, values, depth):
        x = self.matrix(values)
        return self.pick([
            lambda: td.reverse(x, [1]), lambda: td.transpose(td.transpose(x) * 0.5),
            lambda: td.concat([x[:, 3:], x[:, :3]], 1),
        ])()  # fmt: skip

    def soft(self, values, depth):
        return td.nn.softmax(self.matrix(values))

    def bool(self, values, depth):
        return td.cast(self.matrix(values) > self.pick(values), td.float32)

    def matmul(self, values, depth):
        x = self.matrix(values)
        return td.matmul(x, td.matmul(x, x, transpose_a=True)) * 0.01

    def cond(self, values, depth):
        x = self.pick(values)
        branches = [self.body(values, x), self.body(values, x)]
        return cond(td.reduce_mean(self.pick(values)) > 0.1, *branches)

    def body(self, values, like):
        """A function that gives something of the form of `like`."""
        picks = [self.step(values, 1) * 0.0 for _ in range(0)]
        seed = int(self.rng.integers(1 << 30))

        def run():
            inner = Maker(seed, self.symbolic)
            result = like
            for _ in range(2):
                step = inner.pick(UNARY)(
                    inner.pick([v for v in values if v.ndim <= like.ndim] or [like])
                )
                result = result * 0.5 + (step if step.dims == like.dims else td.reduce_mean(step))
            return result

        del picks
        return run

    def matrix(self, values):
        wide = [v for v in values if v.ndim == 2 and v.dims[1] == COLUMNS and v.dims[0] != 1]
        return self.pick(wide)

    def __getattr__(self, name):
        if name == "while":
            return self.loop
        raise AttributeError(name)

    def loop(self, values, depth):
        start = [self.pick(values), self.pick(values)]
        seed = int(self.rng.integers(1 << 30))
        count = int(self.rng.integers(4))

        def body(i, x, y):
            inner = Maker(seed, self.symbolic)
            a = inner.pick(UNARY)(x) * 0.5
            b = y * 0.25 + td.reduce_mean(a)
            if inner.rng.integers(2) and x.dims == y.dims:
                a, b = b, a
            return i + 1, a, b

        results = while_loop(lambda i, x, y: i < count, body, (td.constant(0), *start))
        return self.pick([results[1], results[2]])


def random_function(seed, symbolic, variables=()):
    def fn(x, v, s):
        maker = Maker(seed, symbolic)
        values = [x, v, s]
        for _ in range(int(maker.rng.integers(3, 14))):
            if variables and maker.rng.integers(3) == 0:
                use_variable(maker, values, variables)
            values.append(maker.step(values))
        count = int(maker.rng.integers(1, 4))
        return [maker.pick(values) for _ in range(count)] + [values[-1]]

    return fn


def use_variable(maker, values, variables):
    variable = maker.pick(variables)
    like = [v for v in values if tuple(v.dims) == tuple(variable.shape)]
    if maker.rng.integers(2) or not like:
        values.append(variable.value())
    else:
        variable.assign(maker.pick(like))


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    x, v, s = (rng.standard_normal(d).astype(np.float32) for d in ((ROWS, COLUMNS), (COLUMNS,), ()))
    symbolic = seed % 3 == 0
    spec = TensorSpec((None if symbolic else ROWS, COLUMNS))
    graph = trace(random_function(seed, symbolic), spec, TensorSpec((COLUMNS,)), TensorSpec(()))
    both(graph, x, v, s, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_with_variables(seed):
    rng = np.random.default_rng(seed)
    x, v, s = (rng.standard_normal(d).astype(np.float32) for d in ((ROWS, COLUMNS), (COLUMNS,), ()))
    variables = [
        td.Variable(rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)),
        td.Variable(rng.standard_normal(COLUMNS).astype(np.float32)),
        td.Variable(np.float32(0.5)),
    ]
    specs = [TensorSpec(np.shape(a)) for a in (x, v, s)]
    graph = trace(random_function(seed, False, variables), *specs)
    both(graph, x, v, s, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_a_second_run_gives_the_same_bits(seed):
    """Memory that is used again holds nothing that matters."""
    rng = np.random.default_rng(seed)
    x, v, s = (rng.standard_normal(d).astype(np.float32) for d in ((ROWS, COLUMNS), (COLUMNS,), ()))
    specs = [TensorSpec(np.shape(a)) for a in (x, v, s)]
    graph = trace(random_function(seed, False), *specs)
    executable = native(graph)
    values = [x, v, s.reshape(()) if isinstance(s, np.ndarray) else np.asarray(s), *captures(graph)]
    first = executable.run(values)
    executable.run([np.full_like(a, np.nan) for a in values])
    for a, b in zip(first, executable.run(values), strict=True):
        np.testing.assert_array_equal(a, b)
