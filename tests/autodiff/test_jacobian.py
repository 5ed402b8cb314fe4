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


def test_large_jacobian_in_a_function_is_a_loop():
    def fn(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.tanh(x * x)
        return tape.jacobian(y, [x, w], unconnected_gradients="zero")

    x = np.linspace(-1.0, 1.0, 20)
    graph = td.function(fn, autograph=False)
    concrete = graph.get_concrete_function(td.constant(x), td.constant(W))
    assert [n.op.name for n in concrete.graph.nodes].count("while") == 1
    jx, jw = graph(td.constant(x), td.constant(W))
    np.testing.assert_allclose(jx, np.diag(2 * x * (1 - np.tanh(x * x) ** 2)), atol=1e-12)
    assert jw.shape == (20, 2, 3)
    assert not jw.numpy().any()


def test_jacobian_of_a_loop_by_a_loop():
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, td.sin(y)), (0, x))[1]
        return tape.batch_jacobian(y, x)

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
