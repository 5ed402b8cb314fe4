import numpy as np
import pytest

import treadle as td
from treadle.autodiff.checking import check_gradients
from treadle.autodiff.functional import gradients_function


@td.custom_gradient
def log1pexp(x):
    e = td.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return td.math.log(1 + e), grad


def traced(fn):
    return td.function(fn, autograph=False)


@pytest.mark.parametrize("wrap", [lambda f: f, traced], ids=["eager", "traced"])
def test_stable_gradient_of_log1pexp(wrap):
    derivative = wrap(gradients_function(log1pexp))
    assert derivative(td.constant(0.0))[0].numpy() == 0.5
    assert derivative(td.constant(100.0))[0].numpy() == 1.0  # exp(100)**2 overflows


@pytest.mark.parametrize("wrap", [None, traced], ids=["eager", "traced"])
def test_second_order_goes_through_the_gradient_function(wrap):
    check_gradients(log1pexp, np.array([0.3, -1.0, 2.0]), order=2, wrap=wrap, rtol=1e-4)


def test_the_given_gradient_is_what_counts():
    @td.custom_gradient
    def f(x, y):
        return x * y, lambda dz: (dz * 10.0, None)

    x, y = td.constant(2.0), td.constant(3.0)
    with td.GradientTape() as tape:
        tape.watch([x, y])
        z = f(x, y)
    assert z.numpy() == 6.0
    dx, dy = tape.gradient(z, [x, y])
    assert dx.numpy() == 10.0
    assert dy is None


def test_structured_results_and_arguments():
    @td.custom_gradient
    def f(pair, scale):
        a, b = pair
        result = {"sum": a + b, "scaled": [a * scale]}

        def grad(*dys):  # in the order of the flattened result: scaled, sum
            return [dys[0] * 100.0, dys[1]], None

        return result, grad

    a, b = td.constant(1.0), td.constant(2.0)
    with td.GradientTape() as tape:
        tape.watch([a, b])
        out = f([a, b], 5.0)
        total = out["sum"] * 2.0 + out["scaled"][0] * 3.0
    da, db = tape.gradient(total, [a, b])
    assert (da.numpy(), db.numpy()) == (300.0, 2.0)


def test_variables_reach_the_gradient_function():
    v = td.Variable(3.0)

    @td.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            assert variables == [v]
            return dy * 7.0, [dy * 11.0]

        return x * v, grad

    def run(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y, *tape.gradient(y, [x, v])

    for call in (run, traced(run)):
        y, dx, dv = call(td.constant(2.0))
        assert (y.numpy(), dx.numpy(), dv.numpy()) == (6.0, 7.0, 11.0)


def test_variables_need_a_gradient_function_that_takes_them():
    v = td.Variable(3.0, name="scale")

    @td.custom_gradient
    def f(x):
        return x * v, lambda dy: dy

    with pytest.raises(TypeError, match=r"must accept keyword argument 'variables'.*scale"):
        f(td.constant(1.0))


def test_a_variable_argument_is_no_hidden_variable():
    v = td.Variable(3.0)

    @td.custom_gradient
    def f(w):
        return w * 2.0, lambda dy: dy * 5.0

    with td.GradientTape() as tape:
        y = f(v)
    assert tape.gradient(y, v).numpy() == 5.0


def test_wrong_number_of_gradients():
    @td.custom_gradient
    def f(x, y):
        return x * y, lambda dz: dz

    x = td.constant(1.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        z = f(x, x)
    with pytest.raises(ValueError, match="expected to return 2 gradients, but returned 1"):
        tape.gradient(z, x)


def test_must_return_a_pair():
    with pytest.raises(TypeError, match="must return"):
        td.custom_gradient(lambda x: x)(td.constant(1.0))


def test_keyword_arguments_pass_through():
    @td.custom_gradient
    def power(x, exponent=2):
        return x**exponent, lambda dy: dy * exponent * x ** (exponent - 1)

    x = td.constant(3.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = power(x, exponent=3)
    assert y.numpy() == 27.0
    assert tape.gradient(y, x).numpy() == 27.0


def test_inside_a_loop():
    def fn(x):
        return td.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, log1pexp(y)), (td.constant(0), x)
        )[1]

    check_gradients(fn, np.array([0.3, -1.0]), wrap=traced, rtol=1e-4)


def test_stop_gradient():
    x = td.constant(3.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.stop_gradient(x * x) * x
    assert tape.gradient(y, x).numpy() == 9.0


def test_recompute_grad_runs_again_and_keeps_the_gradient():
    calls = []
    v = td.Variable([2.0, 3.0])

    def layer(x):
        calls.append(1)
        return td.tanh(x * v)

    x = td.constant([0.1, 0.2])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.recompute_grad(layer)(x)
    assert len(calls) == 1
    dx, dv = tape.gradient(y, [x, v])
    assert len(calls) == 2
    with td.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    for got, want in zip((dx, dv), tape.gradient(y, [x, v]), strict=True):
        np.testing.assert_allclose(got, want)


def test_recompute_grad_of_variables_in_functions():
    v = td.Variable([2.0, 3.0])
    x = td.constant([0.1, 0.2])

    def gradients(layer):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(layer(x) ** 2)
        return tape.gradient(y, [x, v])

    def inner(x):
        return td.tanh(x * v)

    once = td.recompute_grad(inner)
    twice = td.recompute_grad(lambda x: once(x) + v)
    for got, plain in ((once, inner), (twice, lambda x: inner(x) + v)):
        expected = gradients(plain)
        for found in (gradients(got), td.function(gradients)(got)):
            for own, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-6)


def test_grad_pass_through():
    x = td.constant(1.7)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.grad_pass_through(td.round)(x) * 3.0
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (6.0, 3.0)


@td.custom_gradient
def tripled(x, y):
    """The product, with a gradient that is not its own."""
    return x * y, lambda dz: (dz * 3.0 * y, dz * x * 100.0)


def run_tripled(fn):
    x, y = td.constant(2.0), td.constant(5.0)
    with td.GradientTape() as tape:
        tape.watch([x, y])
        z = fn(x, y)
    return [g.numpy() for g in tape.gradient(z, [x, y])]


def test_custom_gradient_of_a_function_called_under_a_tape():
    assert run_tripled(tripled) == [15.0, 200.0]
    assert run_tripled(traced(tripled)) == [15.0, 200.0]
    inner = traced(tripled)
    assert run_tripled(traced(lambda x, y: inner(x, y) * 2.0)) == [30.0, 400.0]


def test_custom_gradient_in_loops_and_branches():
    def loop(x, y):
        return td.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, tripled(z, y)), (0, x))[1]

    expected = run_tripled(lambda x, y: tripled(tripled(x, y), y))
    assert run_tripled(traced(loop)) == expected
    branch = lambda x, y: td.cond(x > 0.0, lambda: tripled(x, y), lambda: x)
    assert run_tripled(traced(branch)) == [15.0, 200.0]


def test_custom_gradient_with_a_variable_in_a_loop():
    v = td.Variable(3.0)

    @td.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            return dy * 7.0, [dy * 11.0]

        return x * v, grad

    @traced
    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, scaled(y)), (0, x))[1]
        return tape.gradient(y, [x, v])

    dx, dv = f(td.constant(1.0))
    assert (dx.numpy(), dv.numpy()) == (49.0, 11.0 + 77.0)


def test_second_order_of_a_custom_gradient_in_a_loop():
    def fn(x):
        return td.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, log1pexp(y)), (td.constant(0), x)
        )[1]

    x = np.array([0.3, -1.0])
    check_gradients(fn, x, order=2, wrap=traced, rtol=1e-4)
    check_gradients(traced(fn), x, order=2, rtol=1e-4)


@td.custom_gradient
def sine(x):
    return td.sin(x), lambda dy: dy * cosine(x)


@td.custom_gradient
def cosine(x):
    return td.cos(x), lambda dy: -dy * sine(x)


def derivatives(fn, x, orders):
    """The function's value and its derivatives."""
    if not orders:
        return [fn(x)]
    with td.GradientTape() as tape:
        tape.watch(x)
        found = derivatives(fn, x, orders - 1)
    return [*found, tape.gradient(found[-1], x)]


@pytest.mark.parametrize("way", [lambda f: f, traced])
def test_a_custom_gradient_that_calls_its_own_function(way):
    x = td.constant(0.7, td.float64)
    found = way(lambda x: derivatives(sine, x, 3))(x)
    expected = [np.sin(0.7), np.cos(0.7), -np.sin(0.7), -np.cos(0.7)]
    np.testing.assert_allclose([y.numpy() for y in found], expected)


def test_derivatives_of_such_a_function_that_are_not_traced_are_refused():
    x = td.constant(0.7, td.float64)
    with pytest.raises(NotImplementedError, match="derivatives in a td.function"):
        traced(lambda x: derivatives(sine, x, 8))(x)
    np.testing.assert_allclose(derivatives(sine, x, 4)[-1].numpy(), np.sin(0.7))


def test_such_a_function_in_a_loop_and_for_each_example():
    def loop(x):
        return td.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, sine(y)), (0, x))[1]

    x = td.constant([0.3, 0.7], td.float64)
    for fn in (loop, lambda x: td.vectorized_map(sine, x)):
        value, first, second = traced(lambda x, fn=fn: derivatives(fn, x, 2))(x)
        plain = (lambda x: td.sin(td.sin(x))) if fn is loop else td.sin
        expected = derivatives(plain, x, 2)
        for a, b in zip((value, first, second), expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy())


def test_results_of_integers_in_functions():
    @td.custom_gradient
    def kept(x, count):
        return (x * 2.0, count), lambda dx, dcount: (dx * 10.0, dcount)

    v = td.Variable(1.0)
    with td.GradientTape() as tape:
        y, count = td.function(kept)(v, td.constant(3))
    assert float(tape.gradient(y, v)) == 10.0 and int(count) == 3
