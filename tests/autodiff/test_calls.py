"""Compiled functions called under tapes, and the graphs they are split into."""

import threading

import numpy as np
import pytest

import treadle as td
from treadle.autodiff.checking import check_gradients
from treadle.autodiff.function_gradient import build_gradient
from treadle.graph.verifier import verify

X = np.array([0.5, -0.3])
W = np.array([1.5, 0.7])


def compiled(fn):
    return td.function(fn, autograph=False)


def loop(x, w):
    return td.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, td.tanh(y * w) + y), (0, x))[1]


def branch(x, w):
    return td.cond(td.reduce_sum(x) > 0.0, lambda: td.tanh(x) * w * w, lambda: x * 3.0)


@pytest.mark.parametrize(
    "fn",
    [lambda x, w: td.tanh(x) * w, lambda x, w: (td.exp(x), x * w * w), loop, branch],
    ids=["product", "two results", "loop", "cond"],
)
def test_gradients_of_a_compiled_function(fn):
    """The tape is outside: forward and backward run as two programs, also for second order."""
    check_gradients(compiled(fn), X, W, order=2, rtol=1e-4, atol=1e-5)


def test_third_order():
    check_gradients(compiled(lambda x: td.exp(x * x)), X, order=3, rtol=1e-3, atol=1e-3)


def test_captured_variables_and_tensors():
    v, c = td.Variable(W), td.constant(X)

    @compiled
    def f(x):
        return x * v * v * c

    x = td.constant([2.0, 3.0], td.float64)
    with td.GradientTape() as outer:
        with td.GradientTape() as tape:
            tape.watch(c)
            y = f(x)
        assert tape.watched_variables() == (v,)
        dv, dc, dx = tape.gradient(y, [v, c, x])
    np.testing.assert_allclose(dv, 2 * np.array([2.0, 3.0]) * W * X)
    np.testing.assert_allclose(dc, np.array([2.0, 3.0]) * W * W)
    assert dx is None
    np.testing.assert_allclose(outer.gradient(dv, v), 2 * np.array([2.0, 3.0]) * X)


def test_gradient_uses_the_value_at_the_call():
    v = td.Variable(W)
    f = compiled(lambda x: x * v * v)
    x = td.constant(X)
    with td.GradientTape() as tape:
        y = f(x)
        v.assign(W * 100.0)
    np.testing.assert_allclose(tape.gradient(y, v), 2 * X * W)


def test_effects_happen_once():
    counter = td.Variable(0.0)

    @compiled
    def f(x):
        counter.assign_add(1.0)
        noise = td.random.uniform([2], dtype=td.float64)
        return x * noise, noise

    x = td.constant(X)
    for calls in (1, 2):
        with td.GradientTape() as tape:
            tape.watch(x)
            y, noise = f(x)
        np.testing.assert_allclose(tape.gradient(y, x), noise)
        assert counter.numpy() == calls


def test_only_some_results_are_used():
    f = compiled(lambda x, w: (td.tanh(x), x * w, td.argmax(x)))
    x, w = td.constant(X), td.constant(W)
    with td.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        a, b, n = f(x, w)
    assert n.numpy() == 0
    np.testing.assert_allclose(tape.gradient(b, x), W)
    np.testing.assert_allclose(tape.gradient([a, b], x), 1 - np.tanh(X) ** 2 + W)
    np.testing.assert_allclose(tape.gradient(a, w, unconnected_gradients="zero"), [0.0, 0.0])


def test_function_in_function_is_inlined():
    inner = compiled(loop)

    @compiled
    def outer(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = inner(x, w) * inner(w, x)
        return tape.gradient(y, [x, w])

    x, w = td.constant(X), td.constant(W)
    with td.GradientTape() as tape:
        tape.watch([x, w])
        y = loop(x, w) * loop(w, x)
    for got, want in zip(outer(x, w), tape.gradient(y, [x, w]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_persistent_tape_second_order():
    f = compiled(lambda x: x**3)
    x = td.constant(X)
    with td.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        dy = tape.gradient(y, x)
    np.testing.assert_allclose(tape.gradient(dy, x), 6 * X)


def test_symbolic_batch():
    f = td.function(
        lambda x: td.reduce_sum(td.tanh(x) ** 2, 1),
        autograph=False,
        input_signature=[td.TensorSpec([None, 2], td.float64)],
    )
    for rows in (1, 3):
        x = td.constant(np.arange(rows * 2).reshape(rows, 2) / 5.0)
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        t = np.tanh(x.numpy())
        np.testing.assert_allclose(tape.gradient(y, x), 2 * t * (1 - t * t))


def test_many_threads():
    f = compiled(lambda x: td.reduce_sum(td.tanh(x) * x))
    results = {}

    def work(k):
        x = td.constant(X * k)
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        results[k] = tape.gradient(y, x).numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, got in results.items():
        t = np.tanh(X * k)
        np.testing.assert_allclose(got, t + X * k * (1 - t * t))
    assert len(results) == 8


def split(fn, needs, *args):
    graph = compiled(fn).get_concrete_function(*map(td.constant, args)).graph
    parts = build_gradient(graph, needs)
    if parts is not None:
        verify(parts.forward)
        verify(parts.backward)
    return parts


def ops(graph):
    return [n.op.name for n in graph.walk()]


def test_split_saves_what_the_gradient_reads():
    parts = split(lambda x, w: td.tanh(x * w), [True, True], X, W)
    assert (parts.kept, parts.targets, parts.sources) == ((0, 1), (0,), (0, 1))
    assert "tanh" in ops(parts.forward)
    assert "tanh" not in ops(parts.backward)


def test_split_for_one_source():
    parts = split(lambda x, w: x * w, [True, False], X, W)
    assert (parts.kept, parts.sources) == ((1,), (0,))
    assert len(parts.forward.results) == 1


def test_linear_function_saves_nothing():
    parts = split(lambda x: x * 3.0 + 1.0, [True], X)
    assert parts.kept == ()
    assert len(parts.forward.results) == parts.results == 1


def test_nothing_to_split():
    assert split(lambda x: td.argmax(x), [True], X) is None
    assert split(lambda x: td.stop_gradient(x), [True], X) is None
    assert split(lambda x: x * 2.0, [False], X) is None


def test_cheap_values_are_computed_again():
    """The mask of relu is a comparison of what is there anyway."""
    parts = split(lambda x, w: td.nn.relu(x * w), [True, True], X, W)
    assert len(parts.forward.results) == 1 + len(parts.backward.params) - len(parts.kept) - 1
    assert all(v.spec.dtype is not td.bool for v in parts.forward.results)
