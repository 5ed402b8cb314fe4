"""Results are bitwise the same for 1 to 64 threads, which may be many more than there are
processors, over all kinds of kernels."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import captures, inputs, native, trace_like
from treadle.core import processors
from treadle.runtime.cpu.threads import pool

COUNTS = (1, 2, 3, 4, 7, 8, 16, 64)


@pytest.fixture(params=[2, 7, 64], ids=lambda n: f"compiled for {n}")
def compiled_for(request, monkeypatch):
    """The number of threads when a program is compiled: it plans its workspace for these. Of 64 as
    many run as there are processors; otherwise all do, which then wait for processors."""
    if request.param < 64:
        monkeypatch.setattr(processors, "usable", lambda: 64)
    before = pool().threads
    pool().set_threads(request.param)
    yield
    pool().set_threads(before)


def agree(graph, *arrays):
    """Run the program with every number of threads, its variables as at the start each time."""
    executable = native(graph)
    held = captures(graph)
    variables = [v for v in held if isinstance(v, td.Variable)]
    start = [v.numpy().copy() for v in variables]
    found = {}
    for count in COUNTS:
        pool().set_threads(count)
        for variable, array in zip(variables, start, strict=True):
            variable.assign(array)
        for _ in range(2):
            results = executable.run([*arrays, *held])
        found[count] = [r.tobytes() for r in results] + [v.numpy().tobytes() for v in variables]
    for count in COUNTS[1:]:
        assert found[count] == found[1], f"{count} threads"


def elementwise(x):
    y = td.tanh(x) * td.exp(-td.square(x)) + td.math.erf(x)
    return y, td.where(y > 0, y, -x), td.cast(x * 100, td.int32) // 7, td.transpose(y) * 2.0


def reductions(x):
    return [
        r
        for axis in (0, 1, None)
        for r in (
            td.reduce_sum(x, axis), td.reduce_max(x, axis), td.math.reduce_logsumexp(x, axis),
            td.math.reduce_variance(x, axis), td.reduce_prod(1 + x * 1e-3, axis),
        )
    ] + [td.argmax(x, 1), td.argmin(x, 0), td.cumsum(x), td.cumsum(x, 1)]  # fmt: skip


def rows(x):
    centred = x - td.reduce_mean(x, 1, keepdims=True)
    normal = centred * td.math.rsqrt(td.reduce_mean(centred * centred, 1, keepdims=True) + 1e-5)
    return td.nn.softmax(x), td.nn.log_softmax(x), normal


@pytest.mark.parametrize("fn", [elementwise, reductions, rows])
@pytest.mark.parametrize("shape", [(700, 301), (3, 90_001), (60_000, 5)], ids=str)
def test_kernels(compiled_for, fn, shape):
    (x,) = inputs(shape)
    agree(trace_like(fn, x), x)


PRODUCTS = [
    ((64, 70), (70, 65)), ((50, 784), (784, 100)), ((513, 129), (129, 257)), ((3000, 40), (40, 7)),
    ((5, 900), (900, 1200)), ((1, 3000), (3000, 500)), ((4, 60, 90), (4, 90, 110)),
    ((3, 200, 64), (64, 300)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("a", "b"), PRODUCTS, ids=str)
def test_products_in_every_orientation(compiled_for, a, b, dtype):
    def fn(x, y):
        last = list(range(len(a) - 2))
        xt = td.identity(td.transpose(x, [*last, len(a) - 1, len(a) - 2]))
        return (
            td.matmul(x, y),
            td.nn.relu(td.matmul(xt, y, transpose_a=True) + 1.0),
            td.matmul(x, td.linalg.matrix_transpose(y), transpose_b=True),
        )

    x, y = (array.astype(dtype) for array in inputs(a, b))
    agree(trace_like(fn, x, y), x, y)


CONVOLUTIONS = [
    ((6, 28, 28, 1), (5, 5, 1, 32), 1, "SAME"), ((5, 14, 14, 32), (5, 5, 32, 64), 1, "SAME"),
    ((4, 30, 31, 8), (3, 3, 8, 24), 2, "VALID"), ((8, 16, 16, 40), (1, 1, 40, 70), 1, "SAME"),
]  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions_and_both_gradients(compiled_for, case):
    shape, filters, stride, padding = case

    def fn(x, w):
        with td.GradientTape() as tape:
            tape.watch((x, w))
            y = td.nn.conv2d(x, w, stride, padding)
            loss = td.reduce_sum(td.sin(y))
        return y, *tape.gradient(loss, (x, w))

    x, w = inputs(shape, filters)
    agree(trace_like(fn, x, w), x, w)


def test_depthwise_convolutions(compiled_for):
    def fn(x, w):
        with td.GradientTape() as tape:
            tape.watch((x, w))
            y = td.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")
            loss = td.reduce_sum(td.sin(y))
        return y, *tape.gradient(loss, (x, w))

    x, w = inputs((4, 30, 30, 33), (3, 3, 33, 1))
    agree(trace_like(fn, x, w), x, w)


@pytest.mark.parametrize("pool2d", [td.nn.max_pool2d, td.nn.avg_pool2d])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pooling_and_its_gradient(compiled_for, pool2d, padding):
    def fn(x, bias):
        with td.GradientTape() as tape:
            tape.watch((x, bias))
            y = pool2d(td.nn.relu(x + bias), 2, 2, padding)
            loss = td.reduce_sum(y * y)
        return y, *tape.gradient(loss, (x, bias))

    x, bias = inputs((16, 29, 28, 32), (32,))
    agree(trace_like(fn, x, bias), x, bias)


def test_gathers_and_scatters(compiled_for):
    ids = np.random.default_rng(3).integers(0, 3000, 20_000)

    def fn(table, ids):
        with td.GradientTape() as tape:
            tape.watch(table)
            loss = td.reduce_sum(td.tanh(td.gather(table, ids)))
        one = td.one_hot(ids[:400], 300)
        return tape.gradient(loss, table), td.matmul(one, table[:300])

    (table,) = inputs((3000, 65))
    agree(trace_like(fn, table, ids), table, ids)


def test_loops(compiled_for):
    def fn(x, u, w):
        with td.GradientTape() as tape:
            tape.watch((u, w))
            h = td.zeros([48, 64])
            total = td.zeros([48, 64])
            for t in td.range(12):
                h = td.tanh(td.matmul(x[t], u) + td.matmul(h, w))
                total += h * h
            loss = td.reduce_sum(total)
        return h, *tape.gradient(loss, (u, w))

    arrays = inputs((12, 48, 40), (40, 64), (64, 64))
    arrays = [arrays[0], arrays[1] * 0.1, arrays[2] * 0.1]
    converted = td.autograph.to_graph(fn)
    agree(trace_like(converted, *arrays), *arrays)


def test_random_numbers(compiled_for):
    generator = td.random.Generator.from_seed(7)

    def fn(x):
        return generator.normal([300, 500]) + x, generator.uniform([100_000])

    (x,) = inputs((500,))
    graph = trace_like(fn, x)
    agree(graph, x)


def test_a_training_step_of_a_network(compiled_for):
    model = td.keras.Sequential([
        td.keras.layers.Conv2D(16, 3, activation="relu"), td.keras.layers.MaxPooling2D(),
        td.keras.layers.Flatten(), td.keras.layers.Dense(120, activation="relu"),
        td.keras.layers.Dense(10),
    ])  # fmt: skip
    images = inputs((40, 20, 20, 3))[0]
    labels = np.random.default_rng(1).integers(0, 10, 40)
    optimizer = td.keras.optimizers.Adam(1e-2)

    def step(x, y):
        with td.GradientTape() as tape:
            logits = model(x, training=True)
            losses = td.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            loss = td.reduce_mean(losses)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss, logits

    model(images)
    optimizer.build(model.trainable_variables)
    agree(trace_like(step, images, labels), images, labels)
