import warnings

import numpy as np
import pytest

import treadle as td

X = np.array([[1.0, 2.0], [3.0, 4.0]])
W = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, 1.0]])


def run(fn, *xs, traced):
    xs = [td.constant(x) for x in xs]
    return (td.function(fn, autograph=False) if traced else fn)(*xs)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_jacobian_of_matmul(traced):
    def fn(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.linalg.matmul(x, w)
        return tape.jacobian(y, [x, w])

    jx, jw = run(fn, X, W, traced=traced)
    assert jx.shape == (2, 3, 2, 2)
    assert jw.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(jx, np.einsum("ik,lj->ijkl", np.eye(2), W))
    np.testing.assert_allclose(jw, np.einsum("ik,jl->ijkl", X, np.eye(3)))


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_batch_jacobian(traced):
    def fn(x, w):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.linalg.matmul(x, w) ** 2
        return tape.batch_jacobian(y, x)

    expected = 2 * (X @ W)[:, :, None] * W.T[None]
    np.testing.assert_allclose(run(fn, X, W, traced=traced), expected)


def test_hessian():
    x = td.constant([1.0, 2.0])
    with td.GradientTape() as outer:
        outer.watch(x)
        with td.GradientTape() as inner:
            inner.watch(x)
            y = x[0] ** 2 * x[1] + x[1] ** 3
        g = inner.gradient(y, x)
    np.testing.assert_allclose(outer.jacobian(g, x), [[4.0, 2.0], [2.0, 12.0]])


def test_jacobian_of_a_scalar_and_empty_structures():
    x = td.constant([1.0, 2.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(x * x)
    result = tape.jacobian(y, {"x": x, "none": []})
    assert result["none"] == []
    np.testing.assert_array_equal(result["x"], [2.0, 4.0])


def test_unconnected():
    x, c = td.constant([1.0, 2.0]), td.constant([3.0])
    with td.GradientTape(persistent=True) as tape:
        tape.watch([x, c])
        y = x * x
    assert tape.jacobian(y, c) is None
    zero = tape.jacobian(y, c, unconnected_gradients="zero")
    np.testing.assert_array_equal(zero, np.zeros((2, 1)))


def test_tape_is_used_up():
    x = td.constant([1.0, 2.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.jacobian(y, x)
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.jacobian(y, x)


def test_batch_jacobian_refuses_other_batches():
    x = td.constant([[1.0, 2.0]])
    with td.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        s = td.reduce_sum(y)
    with pytest.raises(ValueError, match="Need first dimension of target shape"):
        tape.batch_jacobian(y, td.constant([[1.0], [2.0]]))
    with pytest.raises(ValueError, match="Need first dimension"):
        tape.batch_jacobian(s, x)


@pytest.mark.parametrize("at_once", [False, True])
def test_large_jacobian_in_a_function(at_once):
    """One backward pass for all elements of the target, or a loop."""

    def fn(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.tanh(x * x)
        return tape.jacobian(
            y, [x, w], unconnected_gradients="zero", experimental_use_pfor=at_once
        )

    x = np.linspace(-1.0, 1.0, 20)
    graph = td.function(fn, autograph=False)
    concrete = graph.get_concrete_function(td.constant(x), td.constant(W))
    assert [n.op.name for n in concrete.graph.nodes].count("while") == (not at_once)
    jx, jw = graph(td.constant(x), td.constant(W))
    np.testing.assert_allclose(jx, np.diag(2 * x * (1 - np.tanh(x * x) ** 2)), atol=1e-12)
    assert jw.shape == (20, 2, 3)
    assert not jw.numpy().any()


@pytest.mark.parametrize("at_once", [False, True])
def test_jacobian_of_a_loop(at_once):
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, td.sin(y)), (0, x))[1]
        return tape.batch_jacobian(y, x, experimental_use_pfor=at_once)

    x = td.constant(np.linspace(0.1, 1.0, 24).reshape(2, 12))
    traced = td.function(fn, autograph=False)(x)
    np.testing.assert_allclose(traced, fn(x), atol=1e-12)
    assert traced.shape == (2, 12, 12)


def test_target_of_open_shape():
    @td.function(autograph=False, input_signature=[td.TensorSpec([None])])
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.jacobian(y, x)

    for x in ([1.0, 2.0], [3.0], []):
        np.testing.assert_array_equal(fn(td.constant(x, td.float32)), np.diag(2.0 * np.array(x)))


V = td.Variable(np.array([[0.5, -1.0, 2.0], [1.5, 0.0, 1.0]]))
TABLE = td.Variable(np.linspace(-1.0, 1.0, 12).reshape(6, 2))


@td.custom_gradient
def scaled(x):
    return td.sin(x), lambda dy: dy * td.exp(x)


@td.function
def compiled(x):
    return td.nn.softmax(x @ V) * td.reduce_sum(x)


def branches(x):
    if td.reduce_sum(x) > 0.0:
        return td.exp(x)
    return x * x


def looped(x):
    total = x
    for i in td.range(3):
        if total[0, 0] > 1.0:
            total = total * td.tanh(x)
        else:
            total = total + td.sin(x) * td.cast(i, x.dtype)
    return total


def listed(x):
    rows = td.TensorArray(x.dtype, size=2)
    for i in td.range(2):
        rows = rows.write(i, x[i] * x[1 - i])
    return rows.stack()


def rows_of_a_table(x):
    return td.nn.embedding_lookup(TABLE, [1, 5, 1]) * td.reduce_sum(x)


def convolved(x):
    images = td.reshape(td.tile(x, [2, 4]), [1, 4, 8, 1])
    filters = td.reshape(td.tile(td.sin(x), [1, 2]), [2, 2, 1, 2])
    return td.nn.max_pool2d(td.nn.conv2d(images, filters, 1, "SAME"), 2, 2, "VALID")


PROGRAMS = {
    "dense": lambda x: td.nn.relu(x @ V - 1.0),
    "custom": scaled,
    "compiled": compiled,
    "branches": branches,
    "looped": looped,
    "listed": listed,
    "rows": rows_of_a_table,
    "solved": lambda x: td.linalg.solve(x + 3.0 * td.eye(2, dtype=x.dtype), x),
    "parts": lambda x: td.concat([x[1:], td.reverse(x, [0])[:, ::-1]], 0),
}


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_at_once_is_one_by_one(program, traced):
    def jacobians(x, at_once):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return tape.jacobian(
            y, [x, V, TABLE], unconnected_gradients="zero", experimental_use_pfor=at_once
        )

    fn = td.function(jacobians) if traced else jacobians
    x = td.constant(X)
    with warnings.catch_warnings(action="error"):  # a rule for every op
        found = fn(x, at_once=True)
    for a, b in zip(found, fn(x, at_once=False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore:GradientTape")
def test_images_and_filters_that_depend_on_the_source():
    """Filters that differ between rows have no rule: their part is a loop."""

    def fn(x, at_once):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = convolved(x)
        return tape.jacobian(y, x, experimental_use_pfor=at_once)

    x = td.constant(X)
    np.testing.assert_allclose(fn(x, True), fn(x, False), rtol=1e-12)
    np.testing.assert_allclose(td.function(fn)(x, True), fn(x, False), rtol=1e-12)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_what_has_no_rule_runs_in_a_loop_with_one_notice(traced):
    @td.custom_gradient
    def halved(x):
        def gradient(dy):
            return td.numpy_function(lambda g: g / 2, [dy], td.float64, shape=dy.shape)

        return x * 1.0, gradient

    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = halved(x) * x
        return tape.jacobian(y, x)

    x = td.constant([1.0, 2.0, 3.0], td.float64)
    with pytest.warns(UserWarning, match="GradientTape.jacobian runs .*numpy_function") as notices:
        found = (td.function(fn) if traced else fn)(x)
    assert len([n for n in notices if "GradientTape" in str(n.message)]) == 1
    np.testing.assert_allclose(found, np.diag([1.5, 3.0, 4.5]))


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_derivatives_of_a_jacobian(traced):
    def fn(x):
        with td.GradientTape() as outer:
            outer.watch(x)
            with td.GradientTape() as inner:
                inner.watch(x)
                y = x**3 * td.reduce_sum(x)
            first = inner.jacobian(y, x)
            total = td.reduce_sum(first * first)
        return outer.gradient(total, x)

    x = np.array([0.5, -1.0])

    def total(x):
        first = np.diag(3 * x**2 * x.sum()) + (x**3)[:, None]
        return (first * first).sum()

    steps = 1e-6 * np.eye(2)
    expected = [(total(x + s) - total(x - s)) / 2e-6 for s in steps]
    found = (td.function(fn) if traced else fn)(td.constant(x))
    np.testing.assert_allclose(found, expected, rtol=1e-7)
