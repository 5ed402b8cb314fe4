"""Traces that differ only in dims share one compiled program."""

import gc
import random
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle import keras
from treadle.runtime import compiler
from treadle.tracing import settings as tracing_settings
from treadle.tracing.programs import MOST_FAILURES, Programs, SharedExecutable


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """What cannot be compiled fails instead of being interpreted; retraces are no news."""
    monkeypatch.setenv("TREADLE_STRICT", "1")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* was traced .* times")
        yield


class Compilations:
    """Counts the native programs that this thread makes; others compile eager operations."""

    def __init__(self):
        self.count = 0
        self.original = compiler._compile
        self.thread = threading.get_ident()

    def __call__(self, *args):
        self.count += threading.get_ident() == self.thread
        return self.original(*args)


@pytest.fixture
def compilations(monkeypatch):
    counter = Compilations()
    monkeypatch.setattr(compiler, "_compile", counter)
    return counter


def array(*shape):
    rng = np.random.default_rng(sum(shape) + len(shape))
    return (rng.standard_normal(shape) * 0.5).astype(np.float32)


# -- what is shared ------------------------------------------------------------------------------


def forward():
    w, b, v = td.Variable(array(8, 16)), td.Variable(array(16)), td.Variable(array(16, 4))
    return lambda x: td.nn.softmax(td.nn.relu(x @ w + b) @ v), lambda n: [array(n, 8)]


def layer_norm():
    def f(x):
        mean = td.reduce_mean(x, -1, keepdims=True)
        variance = td.reduce_mean((x - mean) ** 2, -1, keepdims=True)
        return (x - mean) / td.sqrt(variance + 1e-5), td.reduce_sum(x, 0), td.reduce_mean(x)

    return f, lambda n: [array(n, 8)]


def batch_norm():
    def f(x):
        mean = td.reduce_mean(x, 0, keepdims=True)
        return (x - mean) / td.sqrt(td.reduce_mean((x - mean) ** 2, 0, keepdims=True) + 1e-5)

    return f, lambda n: [array(n, 8)]


def convolutions():
    k, w = td.Variable(array(3, 3, 1, 4)), td.Variable(array(36, 5))

    def f(x):
        y = td.nn.max_pool2d(td.nn.relu(td.nn.conv2d(x, k, 1, "VALID")), 2, 2, "VALID")
        return td.reshape(y, [x.shape[0], 36]) @ w

    return f, lambda n: [array(n, 8, 8, 1)]


def loop():
    def f(x):
        s, i = td.zeros([x.shape[0], 8]), td.constant(0)
        while td.reduce_sum(s) < 20.0 and i < 7:
            s = s + td.abs(td.tanh(x)) + 0.1
            i += 1
        return s, i

    return f, lambda n: [array(n, 8)]


def loop_over_the_batch():
    def f(x):
        total = td.zeros([8])
        for row in x:
            total = td.tanh(total + row)
        return total

    return f, lambda n: [array(n, 8)]


def branches():
    def f(x):
        if td.reduce_sum(x) > 0.0:
            y = x * 2.0
        else:
            y = td.reverse(x, [0]) - x[:1]
        return y

    return f, lambda n: [array(n, 8)]


def inner_gradient():
    w = td.Variable(array(8, 8))

    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            h = x
            for _ in td.range(3):
                h = td.tanh(h @ w)
            loss = td.reduce_sum((h - td.reduce_mean(h, 0, keepdims=True)) ** 2) / x.shape[0]
        return tape.gradient(loss, [x, w])

    return f, lambda n: [array(n, 8)]


def sequence():
    w = td.Variable(array(8, 8))

    def f(x):
        states = td.TensorArray(td.float32, size=5)
        h = td.zeros([x.shape[0], 8])
        for t in td.range(5):
            h = td.tanh(x[:, t] + h @ w)
            states = states.write(t, h)
        return td.transpose(states.stack(), [1, 0, 2])

    return f, lambda n: [array(n, 5, 8)]


def custom_gradient():
    @td.custom_gradient
    def clipped(x):
        return x * 2.0, lambda dy: td.clip_by_value(dy, -0.1, 0.1)

    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            loss = td.reduce_sum(clipped(x) ** 2)
        return tape.gradient(loss, x)

    return f, lambda n: [array(n, 8)]


def attention():
    def f(x):
        b, t, d = x.shape
        y = td.transpose(td.reshape(x, [b, t, 2, d // 2]), [0, 2, 1, 3])
        later = td.range(t)[:, None] < td.range(t)[None]
        scores = td.where(later, -1e9, y @ td.transpose(y, [0, 1, 3, 2]))
        return td.reshape(td.transpose(td.nn.softmax(scores) @ y, [0, 2, 1, 3]), [b, t, d])

    return f, lambda n: [array(n, n + 1, 8)]


def two_sizes():
    return lambda x, y: (td.concat([x, y], 0), td.shape(x)), lambda n: [
        array(n, 3),
        array(n + 2, 3),
    ]


FUNCTIONS = [
    forward, layer_norm, batch_norm, convolutions, loop, loop_over_the_batch, branches,
    inner_gradient, sequence, custom_gradient, attention, two_sizes,
]  # fmt: skip


def agree(found, expected):
    for a, b in zip(td.nest.flatten(found), td.nest.flatten(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("order", ["up", "down", "mixed"])
@pytest.mark.parametrize("make", FUNCTIONS, ids=lambda f: f.__name__)
def test_fifty_sizes_are_two_programs(make, order, compilations):
    python, arguments = make()
    f = td.function(python)
    sizes = list(range(1, 51))
    if order != "up":
        sizes.reverse()
    if order == "mixed":
        random.Random(0).shuffle(sizes)
    for n in sizes:
        f(*arguments(n))
    assert f.experimental_get_tracing_count() == 50
    assert compilations.count <= 2
    for n in (1, 2, 13, 50):
        agree(f(*arguments(n)), python(*map(td.constant, arguments(n))))


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(FUNCTIONS), st.lists(st.integers(1, 40), min_size=2, max_size=4))
def test_results_are_those_of_eager_execution(make, sizes):
    python, arguments = make()
    f = td.function(python)
    for n in sizes:
        agree(f(*arguments(n)), python(*map(td.constant, arguments(n))))


def test_empty_batches(compilations):
    python, arguments = forward()
    f = td.function(python)
    for n in (3, 0, 5, 1):
        agree(f(*arguments(n)), python(*map(td.constant, arguments(n))))
    assert compilations.count == 2


def test_results_are_the_same_bits_where_the_order_of_sums_is():
    x = [array(n, 8) for n in (2, 5, 11)]

    def f(x):
        return td.nn.softmax(td.tanh(x)), td.reduce_sum(x, 0)

    shared = td.function(f)
    for a in x:
        alone = td.function(f)
        for found, expected in zip(shared(a), alone(a), strict=True):
            np.testing.assert_array_equal(found, expected)


# -- training ------------------------------------------------------------------------------------


def trainer():
    td.random.set_seed(1)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)])
    model(td.zeros([1, 8]))
    optimizer = keras.optimizers.Adam(1e-2)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step, model


def run_training(sizes):
    step, model = trainer()
    losses = [float(step(array(n, 8), np.arange(n) % 3)) for n in sizes]
    return losses, [v.numpy() for v in model.trainable_variables]


def test_a_train_step_for_fifty_batch_sizes(compilations):
    run_training(range(50, 0, -1))
    assert compilations.count <= 2


def test_shared_programs_train_as_own_ones(compilations, monkeypatch):
    sizes = [32, 7, 1, 32, 7, 50, 2]
    losses, weights = run_training(sizes)
    assert compilations.count == 2
    monkeypatch.setattr(tracing_settings, "share_programs", False)
    wanted, wanted_weights = run_training(sizes)
    assert compilations.count == 2 + 5
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    for a, b in zip(weights, wanted_weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_forward_and_backward_programs_under_a_tape_are_shared(compilations):
    w = td.Variable(array(8, 4))

    def python(x):
        return td.reduce_mean(td.tanh(x @ w) ** 2, 0, keepdims=True) - x[:1, :4]

    f = td.function(python)
    for n in range(1, 21):
        x = td.constant(array(n, 8))
        gradients = []
        for fn in (f, python):
            with td.GradientTape() as tape:
                tape.watch(x)
                loss = td.reduce_sum(fn(x))
            gradients.append(tape.gradient(loss, [x, w]))
        agree(*gradients)
    assert compilations.count <= 4  # two of each
    report = str(f.explain())
    assert "python_forward shares the program of trace 2: B = dim 0 of x" in report
    assert "python_backward shares the program of trace 2" in report


def test_gradients_of_loops_save_lists_and_are_shared(compilations):
    w = td.Variable(array(8, 8))

    def python(x):
        i = td.constant(0)
        while td.reduce_sum(x * x) > 0.1 and i < 6:
            x = td.tanh(x @ w)
            i += 1
        return td.reduce_sum(x, 0)

    f = td.function(python)
    for n in (3, 1, 7, 2, 12):
        gradients = []
        for fn in (f, python):
            with td.GradientTape() as tape:
                loss = td.reduce_sum(fn(td.constant(array(n, 8))) ** 2)
            gradients.append(tape.gradient(loss, w))
        agree(*gradients)
    assert compilations.count <= 4


# -- what is not ---------------------------------------------------------------------------------


def test_python_code_that_looks_at_the_shape_is_compiled_for_it(compilations):
    @td.function
    def f(x):
        for _ in range(x.shape[0]):
            x = td.tanh(x)
        return x

    sizes = range(1, MOST_FAILURES + 3)
    for n in sizes:
        agree(f(array(n, 3)), f.python_function(td.constant(array(n, 3))))
    assert compilations.count == len(sizes)
    assert "shares no program: the graphs differ" in str(f.explain())


def test_a_stretched_dim_is_not_taken_for_an_equal_one(compilations):
    f = td.function(lambda x, y: x * 2.0 + y)
    for n, m in ((4, 4), (5, 5), (6, 6), (1, 7), (7, 1), (1, 8), (9, 1), (1, 1), (3, 3)):
        agree(f(array(n, 2), array(m, 2)), array(n, 2) * 2 + array(m, 2))
    for concrete in f.concrete_functions:
        assert concrete.executable.mode == "native"
    assert compilations.count <= 6


def test_a_fixed_size_that_fits_by_chance_needs_no_interpreter(monkeypatch):
    """x of one row is stretched to five, x of five rows is not, and both give five rows."""
    y = array(5, 2)
    f = td.function(lambda x: x + y)
    monkeypatch.setattr("treadle.runtime.interpreter.run", None)
    for n in (1, 5):
        agree(f(array(n, 2)), array(n, 2) + y)


def test_state_of_python_may_be_a_number_in_the_graph(compilations):
    calls = []

    @td.function
    def f(x):
        calls.append(x)
        return x * float(len(calls))

    for n in (2, 3, 4, 9, 6):  # at first the number of the trace looks like the size
        agree(f(array(n, 2)), array(n, 2) * np.float32(len(calls)))
    assert len(calls) == 5


def test_other_python_arguments_are_other_families():
    @td.function
    def f(x, k):
        return x * k

    for n, k in ((2, 2.0), (3, 3.0), (4, 2.0), (5, 3.0), (5, 2.0)):
        agree(f(array(n, 2), k), array(n, 2) * np.float32(k))


def test_switched_off(compilations, monkeypatch):
    monkeypatch.setattr(tracing_settings, "share_programs", False)
    f = td.function(lambda x: x * 2.0)
    for n in (2, 3, 4):
        f(array(n, 2))
    assert compilations.count == 3
    assert "symbolic dims" not in str(f.explain())


def test_what_cannot_be_compiled_with_symbolic_dims_is_compiled_without(monkeypatch):
    from treadle.runtime.schedule.facts import Unsupported
    from treadle.tracing import programs

    def refuse(graph):
        raise Unsupported("a test says so")

    monkeypatch.setattr(programs, "compile_native", refuse)
    f = td.function(lambda x: x * 2.0)
    for n in (2, 3, 4):
        agree(f(array(n, 2)), array(n, 2) * 2)
    assert "shares no program: a test says so" in str(f.explain())


# -- around it -----------------------------------------------------------------------------------


def test_explain_and_stages_name_the_shared_program():
    f = td.function(lambda x: td.nn.softmax(x))
    for n in (4, 5, 6):
        f(array(n, 3))
    lines = [line.strip() for line in str(f.explain()).split("\n")]
    assert lines[4] == "compiled with symbolic dims: B = dim 0 of x"
    assert lines[-1] == "shares the program of trace 2: B = dim 0 of x"
    stages = td.inspect.stages(f, array(6, 3))
    assert stages["shared program"].endswith("(here B = 6)")
    assert "f32[6, 3]" in stages["graph"] and "f32[B, 3]" in stages["graph after passes"]


def test_programs_go_with_the_function():
    f = td.function(lambda x: td.tanh(x) * 2.0)
    for n in (4, 5, 6):
        f(array(n, 3))
    concrete = f.get_concrete_function(array(6, 3))
    assert isinstance(concrete.executable, SharedExecutable)
    program = weakref.ref(concrete.executable.program)
    graph = weakref.ref(concrete.graph)
    del f, concrete
    gc.collect()
    assert program() is None and graph() is None


def test_families_of_dead_traces_are_forgotten():
    from treadle.tracing import programs

    f = td.function(lambda x, k: x * k)
    f._programs._most = 5
    for k in range(20):
        f(array(3), float(k))
        f.clear_traces()  # as an eviction does
        gc.collect()  # traces are parts of cycles
    assert len(f._programs._families) < 20
    assert programs._FEW_FAMILIES == f._programs._most


def test_open_dims_and_known_ones_do_not_mix():
    f = td.function(lambda x: td.reshape(x, [-1]) * 2.0, reduce_retracing=True)
    for n in (2, 3, 5, 1):
        agree(f(array(n, 4)), array(n, 4).reshape(-1) * 2)
    assert f.experimental_get_tracing_count() == 2


def test_a_trace_that_is_compiled_again_shares_the_program_made_of_it_alone(compilations):
    # An interrupt between compiling and noting the trace leaves its graph as a sample, whose
    # symbols a second trace of the same signature has, too.
    f = td.function(
        lambda x, y: td.reduce_sum(x * 2.0) + td.reduce_sum(y),
        input_signature=[td.TensorSpec([None, 3]), td.TensorSpec([None])],
    )
    graph = f.get_concrete_function().graph
    programs = Programs()
    programs.compile(graph)
    again = programs.compile(graph)
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(5, np.float32)
    assert again.run([x, y])[0] == 35.0
    (first, second) = (p.spec.dims[0] for p in graph.params)
    assert isinstance(again, SharedExecutable)
    assert again.sizes == {str(first): first, str(second): second}


def test_threads_share_too(compilations):
    python, arguments = forward()
    f = td.function(python)
    wrong = []

    def work(first):
        for n in range(first, first + 12):
            try:
                agree(f(*arguments(n)), python(*map(td.constant, arguments(n))))
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(1 + 6 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert compilations.count <= 2


def test_a_variable_as_an_argument():
    f = td.function(lambda v, x: v.assign_add(td.reduce_sum(x, 0)))
    for n in (2, 3, 4):
        v = td.Variable(array(3))
        before = v.numpy().copy()
        f(v, array(n, 3))
        np.testing.assert_allclose(v.numpy(), before + array(n, 3).sum(0), rtol=1e-5, atol=1e-6)
