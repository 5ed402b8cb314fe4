"""Gradients through cond and while: traced = eager Python loops = finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle.autodiff.checking import check_gradients
from treadle.ops.collections.tensor_array import TensorArray

X = np.array([0.5, -0.3])
W = np.array([1.5, 0.7])


def traced(fn):
    return td.function(fn, autograph=False)


def simple_cond(x, w):
    return td.cond(td.reduce_sum(x) > 0.0, lambda: td.tanh(x) * w * w, lambda: x * 3.0)


def cond_with_matmul(x, w):
    def then():
        y = td.linalg.matmul(td.reshape(x, [1, 2]), td.reshape(w, [2, 1]))
        return y * y, td.exp(y)

    def otherwise():
        return td.reshape(td.reduce_sum(w), [1, 1]), td.reshape(x[0], [1, 1])

    a, b = td.cond(td.reduce_sum(x) > 0.0, then, otherwise)
    return a * b


def cond_of_constants(x, w):
    return td.cond(td.reduce_sum(x) > 0.0, lambda: w, lambda: td.zeros([2], td.float64))


def three_steps(x, w):
    return td.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, td.tanh(y * w) + y), (0, x))[1]


def until_large(x, w):
    return td.while_loop(
        lambda i, y: td.reduce_sum(y * y) < 20.0,
        lambda i, y: (i + 1, y * w + y * 0.2 + td.sin(y)),
        (0, x),
    )[1]


def no_iterations(x, w):
    return td.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * w), (0, x))[1] * w


def linear_body(x, w):
    """Nothing is saved but the number of iterations."""
    return td.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * 2.0 + y), (0, x))[1] * w


def with_break(x, w):
    """A loop as AutoGraph writes one with ``break``: a flag among the conditions."""

    def body(i, y, done):
        y = y * w + 0.1
        return i + 1, y, td.reduce_max(td.abs(y)) > 1.2

    return td.while_loop(
        lambda i, y, done: td.logical_and(i < 10, td.logical_not(done)),
        body,
        (0, x, td.constant(False)),
    )[1]


def swapped_state(x, w):
    """Carried values that change places, and one that passes through."""
    a, b, c, _ = td.while_loop(
        lambda a, b, c, i: i < 3,
        lambda a, b, c, i: (b * c, a + c, c, i + 1),
        (x, w, x * w, 0),
    )
    return a * b + c


def nested_loops(x, w):
    def body(i, y):
        z = td.while_loop(
            lambda j, z: j <= i, lambda j, z: (j + 1, td.tanh(z * w)), (td.constant(0), y)
        )[1]
        return i + 1, z + y

    return td.while_loop(lambda i, y: i < 3, body, (td.constant(0), x))[1]


def cond_in_loop(x, w):
    def body(i, y):
        positive = td.reduce_sum(y) > 0.3
        return i + 1, td.cond(positive, lambda: td.sin(y) * w, lambda: y * y + w)

    return td.while_loop(lambda i, y: i < 4, body, (td.constant(0), x))[1]


def loop_in_cond(x, w):
    return td.cond(td.reduce_sum(x) > 0.0, lambda: three_steps(x, w), lambda: cond_in_loop(x, w))


def loop_in_cond_in_loop(x, w):
    def body(i, y):
        return i + 1, td.cond(td.reduce_sum(y) > 0.3, lambda: three_steps(y, w), lambda: y * y + w)

    return td.while_loop(lambda i, y: i < 3, body, (td.constant(0), x))[1]


FUNCTIONS = [
    simple_cond, cond_with_matmul, cond_of_constants, three_steps, until_large, no_iterations,
    linear_body, with_break, swapped_state, nested_loops, cond_in_loop, loop_in_cond,
    loop_in_cond_in_loop,
]  # fmt: skip


@pytest.mark.parametrize("sign", [1, -1], ids=["first", "second"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_first_and_second_order(fn, sign):
    check_gradients(fn, X * sign, W, order=2, rtol=1e-4, atol=1e-5)
    check_gradients(fn, X * sign, W, order=2, rtol=1e-4, atol=1e-5, wrap=traced)


def test_third_order_through_a_loop():
    check_gradients(three_steps, X, W, order=3, rtol=1e-3, atol=1e-3, wrap=traced)


def gradients(fn):
    def compute(*xs):
        with td.GradientTape() as tape:
            tape.watch(list(xs))
            y = fn(*xs)
        return tape.gradient(y, list(xs))

    return compute


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_trip_count_is_an_argument(count):
    def fn(n, x, w):
        return td.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, td.tanh(y) * w), (td.constant(0), x)
        )[1]

    @traced
    def graph(n, x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = fn(n, x, w)
        return tape.gradient(y, [x, w], unconnected_gradients="zero")

    x, w = td.constant(X), td.constant(W)
    with td.GradientTape() as tape:
        tape.watch([x, w])
        y = x
        for _ in range(count):
            y = td.tanh(y) * w
    expected = tape.gradient(y, [x, w], unconnected_gradients="zero")
    for got, want in zip(graph(td.constant(count), x, w), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_persistent_tape_through_one_loop():
    @traced
    def graph(x, w):
        with td.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            y = three_steps(x, w)
            z = td.reduce_sum(y * y)
        return tape.gradient(y, x), tape.gradient(z, w), tape.gradient(z, x)

    x, w = td.constant(X), td.constant(W)
    first, second, third = graph(x, w)
    square = lambda x, w: three_steps(x, w) ** 2
    np.testing.assert_allclose(first, gradients(three_steps)(x, w)[0])
    np.testing.assert_allclose(second, gradients(square)(x, w)[1])
    np.testing.assert_allclose(third, gradients(square)(x, w)[0])


def test_variables_read_in_a_loop():
    v = td.Variable(W)
    frozen = td.Variable(W, trainable=False)

    @traced
    def graph(x):
        with td.GradientTape() as tape:
            y = td.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, td.tanh(y * v) + frozen), (0, x)
            )[1]
        assert tape.watched_variables() == (v,)
        return tape.gradient(y, [v, frozen])

    def plain(x, w):
        for _ in range(3):
            x = td.tanh(x * w) + frozen
        return x

    dv, none = graph(td.constant(X))
    assert none is None
    expected = gradients(plain)(td.constant(X), td.constant(W))[1]
    np.testing.assert_allclose(dv, expected, rtol=1e-12)


def test_variable_read_and_assigned_in_a_loop():
    """Each read is of another value; its gradient goes to the variable, as in TensorFlow."""
    v = td.Variable(W)

    @traced
    def graph(x):
        v.assign(W)
        with td.GradientTape() as tape:
            tape.watch(x)

            def body(i, y):
                y = y * v
                v.assign_add([1.0, 1.0])
                return i + 1, y

            y = td.while_loop(lambda i, y: i < 3, body, (0, x))[1]
        return tape.gradient(y, [x, v])

    dx, dv = graph(td.constant(X))
    factors = [W, W + 1, W + 2]
    np.testing.assert_allclose(dx, np.prod(factors, axis=0), rtol=1e-12)
    np.testing.assert_allclose(dv, X * sum(np.prod(factors, axis=0) / f for f in factors))
    np.testing.assert_allclose(v, W + 3)


def test_variable_in_a_branch():
    v = td.Variable(W)

    @traced
    def graph(x):
        with td.GradientTape() as tape:
            y = td.cond(td.reduce_sum(x) > 0.0, lambda: x * v * v, lambda: x)
        return tape.gradient(y, v)

    np.testing.assert_allclose(graph(td.constant(X)), 2 * X * W)
    np.testing.assert_allclose(graph(td.constant(-X)), [0.0, 0.0])


def test_random_numbers_in_a_loop_are_drawn_once():
    """The gradient uses the numbers that the forward loop drew."""

    @traced
    def graph(x):
        with td.GradientTape() as tape:
            tape.watch(x)

            def body(i, y, product):
                r = td.random.uniform([2], 1.0, 2.0, td.float64)
                return i + 1, y * r, product * r

            _, y, product = td.while_loop(
                lambda i, *_: i < 4, body, (0, x, td.ones([2], td.float64))
            )
        return tape.gradient(y, x), product

    for _ in range(3):
        dx, product = graph(td.constant(X))
        np.testing.assert_allclose(dx, product)
        assert product.numpy()[0] != product.numpy()[1]


def test_random_numbers_in_a_branch_are_drawn_once():
    @traced
    def graph(x):
        with td.GradientTape() as tape:
            tape.watch(x)

            def then():
                r = td.random.uniform([2], 1.0, 2.0, td.float64)
                return x * r, r

            y, r = td.cond(td.reduce_sum(x) > 0.0, then, lambda: (x * 5.0, x))
        return tape.gradient(y, x), r

    dx, r = graph(td.constant(X))
    np.testing.assert_allclose(dx, r)
    np.testing.assert_allclose(graph(td.constant(-X))[0], [5.0, 5.0])


def test_random_numbers_in_nested_loops_are_drawn_once():
    @traced
    def graph(x):
        with td.GradientTape() as tape:
            tape.watch(x)

            def inner(j, y, product):
                r = td.random.uniform([2], 1.0, 2.0, td.float64)
                return j + 1, y * r, product * r

            def outer(i, y, product):
                _, y, product = td.while_loop(
                    lambda j, *_: j < i, inner, (td.constant(0), y, product)
                )
                return i + 1, y, product

            _, y, product = td.while_loop(
                lambda i, *_: i < 4, outer, (td.constant(0), x, td.ones([2], td.float64))
            )
        return tape.gradient(y, x), product

    dx, product = graph(td.constant(X))
    np.testing.assert_allclose(dx, product)


def test_growing_shape():
    def fn(x, w):
        y = td.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, td.concat([y * y[0], x * w], 0)),
            (0, x),
            shape_invariants=(td.TensorShape([]), td.TensorShape([None])),
        )[1]
        return td.reduce_sum(y * y)

    check_gradients(fn, X, W, rtol=1e-4, atol=1e-5)
    check_gradients(fn, X, W, rtol=1e-4, atol=1e-5, wrap=traced)


def test_gradient_taken_inside_a_loop():
    """A tape in every iteration: what a training loop inside a function does."""

    @traced
    def descend(x):
        def body(i, x):
            with td.GradientTape() as tape:
                tape.watch(x)
                y = td.reduce_sum((x - 3.0) ** 2)
            return i + 1, x - 0.25 * tape.gradient(y, x)

        return td.while_loop(lambda i, x: i < 20, body, (0, x))[1]

    np.testing.assert_allclose(descend(td.constant(X)), [3.0, 3.0], atol=1e-4)


def test_gradient_of_an_outer_loop_taken_inside_a_branch():
    """The forward loop stands in an outer region and is extended there."""

    @traced
    def graph(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = three_steps(x, w)
        return td.cond(
            td.reduce_sum(y) > -100.0, lambda: tape.gradient(y, w), lambda: td.zeros_like(w)
        )

    x, w = td.constant(X), td.constant(W)
    np.testing.assert_allclose(graph(x, w), gradients(three_steps)(x, w)[1])


def test_unconnected_through_control_flow():
    @traced
    def graph(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * 2.0), (0, x))[1]
        none = tape.gradient(y, w)
        return 0 if none is None else 1

    assert graph(td.constant(X), td.constant(W)).numpy() == 0


def test_integer_results_of_branches():
    @traced
    def graph(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            n, y = td.cond(td.reduce_sum(x) > 0.0, lambda: (1, x * 2.0), lambda: (2, x * 3.0))
        return n, tape.gradient(y, x)

    n, dx = graph(td.constant(X))
    assert n.numpy() == 1
    np.testing.assert_allclose(dx, [2.0, 2.0])


def test_list_elements_read_in_a_loop():
    """A TensorArray's gradient is one list, updated element by element."""

    def fn(x, w):
        items = TensorArray(td.float64, size=0, dynamic_size=True, element_shape=[])
        for i in range(2):
            items = items.write(i, x[i] * w[i])

        def body(i, total):
            return i + 1, total * 0.5 + items.read(i) * items.read(i)

        return td.while_loop(lambda i, t: i < 2, body, (0, td.constant(0.0, td.float64)))[1]

    check_gradients(fn, X, W, wrap=traced)


def test_tensor_array_written_in_a_loop():
    def fn(x, w):
        items = TensorArray(td.float64, size=3, element_shape=[2])

        def body(i, y, items):
            y = td.tanh(y * w)
            return i + 1, y, items.write(i, y * y)

        items = td.while_loop(lambda i, *_: i < 3, body, (0, x, items))[2]
        return items.stack()

    check_gradients(fn, X, W, order=2, rtol=1e-4, atol=1e-5, wrap=traced)


SCALE = st.floats(0.2, 1.5)


@settings(max_examples=20, deadline=None)
@given(
    count=st.integers(0, 5),
    limit=st.floats(0.1, 3.0),
    a=SCALE,
    b=SCALE,
    branch=st.floats(-1.0, 1.0),
)
def test_random_loops_equal_python(count, limit, a, b, branch):
    def step(y, w, chosen):
        return td.sin(y * w) + a * y if chosen else y * y * b - w

    def python(x, w):
        i, y = 0, x
        while i < count and float(np.sum(np.abs(np.asarray(y)))) < limit * 5:
            y = step(y, w, bool(np.asarray(y)[0] > branch))
            i += 1
        return y

    def graph(x, w):
        def body(i, y):
            return i + 1, td.cond(
                y[0] > branch, lambda: step(y, w, True), lambda: step(y, w, False)
            )

        return td.while_loop(
            lambda i, y: td.logical_and(i < count, td.reduce_sum(td.abs(y)) < limit * 5),
            body,
            (0, x),
        )[1]

    x, w = td.constant(X), td.constant(W)
    expected = gradients(python)(x, w)
    for got, want in zip(traced(gradients(graph))(x, w), expected, strict=True):
        want = np.zeros(2) if want is None else want
        np.testing.assert_allclose(got if got is not None else np.zeros(2), want, rtol=1e-9)


@pytest.mark.parametrize("kind", ["cond", "while"])
@pytest.mark.parametrize("order", [1, 2])
def test_a_tape_inside_a_body_knows_outer_tensors_that_inner_regions_capture(kind, order):
    """Regions stand for captured tensors by parameters: the tape watches the tensors."""
    eager = td.constant([2.0, 0.5], td.float64)

    def target(x):
        if kind == "cond":
            return td.cond(x[0] > 0.0, lambda: x * x * x * eager, lambda: x * eager)
        return td.while_loop(lambda j, y: j < 2, lambda j, y: (j + 1, y * x * eager), (0, x))[1]

    def program(x):
        def body(i, total):
            with td.GradientTape() as outer:
                outer.watch(x)
                with td.GradientTape() as tape:
                    tape.watch([x, eager])
                    y = target(x)
                first = tape.gradient(y, [x, eager])
            if order == 2:
                first = [outer.gradient(first[0], x), first[1]]
            return i + 1, total + first[0] * 3.0 + first[1]

        return td.while_loop(lambda i, t: i < 2, body, (0, td.zeros_like(x)))[1]

    np.testing.assert_allclose(traced(program)(td.constant(X)), program(td.constant(X)), rtol=1e-9)


def test_a_tape_in_a_function_knows_eager_tensors_that_a_branch_captures():
    weights = td.constant([2.0, 3.0])

    def program(x):
        with td.GradientTape() as tape:
            tape.watch(weights)
            y = td.cond(x > 0.0, lambda: weights * x, lambda: weights)
        return tape.gradient(y, weights)

    np.testing.assert_array_equal(traced(program)(td.constant(5.0)), [5.0, 5.0])
