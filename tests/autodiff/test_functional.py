import numpy as np
import pytest

import treadle as td
from treadle.autodiff import functional


def test_derivatives_of_derivatives():
    f = lambda x: td.square(td.sin(x))
    df = functional.gradients_function(f)
    d2f = functional.gradients_function(lambda x: df(x)[0])
    d3f = functional.gradients_function(lambda x: d2f(x)[0])
    x = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(df(x)[0], np.sin(2 * x), atol=1e-12)
    np.testing.assert_allclose(d2f(x)[0], 2 * np.cos(2 * x), atol=1e-12)
    np.testing.assert_allclose(d3f(x)[0], -4 * np.sin(2 * x), atol=1e-12)


def test_value_and_gradients_of_chosen_arguments():
    f = lambda x, y: x * x * y
    value, grads = functional.value_and_gradients_function(f)(2.0, 3.0)
    assert (value.numpy(), [g.numpy() for g in grads]) == (12.0, [12.0, 4.0])
    for params in (["y"], [1]):
        (dy,) = functional.gradients_function(f, params)(2.0, 3.0)
        assert dy.numpy() == 4.0
    (dy,) = functional.gradients_function(f, ["y"])(2.0, 3.0, dy=10.0)
    assert dy.numpy() == 40.0
    with pytest.raises(ValueError, match="'z' is not an argument"):
        functional.gradients_function(f, ["z"])
    with pytest.raises(ValueError, match="twice"):
        functional.gradients_function(f, ["x", 0])


def test_implicit_gradients_find_the_variables():
    w, b = td.Variable(5.0), td.Variable(10.0)
    loss = lambda x: (w * x + b) ** 2
    value, pairs = functional.implicit_value_and_gradients(loss)(2.0)
    assert value.numpy() == 400.0
    assert [v for _, v in pairs] == [w, b]
    assert [g.numpy() for g, _ in pairs] == [80.0, 40.0]
    assert [g.numpy() for g, _ in functional.implicit_gradients(loss)(2.0)] == [80.0, 40.0]


def test_implicit_gradients_without_variables():
    with pytest.raises(ValueError, match="No trainable variables"):
        functional.implicit_gradients(lambda x: x)(td.constant(1.0))
    with pytest.raises(ValueError, match="returned None"):
        functional.implicit_gradients(lambda x: None)(td.constant(1.0))


def test_make_vjp():
    value, vjp = functional.make_vjp(lambda x: td.constant([1.0, 2.0]) * x)(3.0)
    np.testing.assert_array_equal(value, [3.0, 6.0])
    assert vjp(td.constant([1.0, 10.0]))[0].numpy() == 21.0
    assert vjp()[0].numpy() == 3.0
    with pytest.raises(ValueError, match="returns None"):
        functional.make_vjp(lambda x: None)(1.0)


class TestForwardAccumulator:
    def test_jacobian_vector_product(self):
        x = td.constant([2.0, 3.0])
        with td.autodiff.ForwardAccumulator(x, td.constant([1.0, 10.0])) as acc:
            y = td.reduce_sum(x * x * x)
            z = x * 2.0
        assert acc.jvp(y).numpy() == 12.0 + 270.0
        jvp = acc.jvp({"z": z, "x": x})
        np.testing.assert_array_equal(jvp["z"], [2.0, 20.0])
        np.testing.assert_array_equal(jvp["x"], [1.0, 10.0])

    def test_several_primals_and_a_variable(self):
        v, x = td.Variable(3.0), td.constant(2.0)
        with td.autodiff.ForwardAccumulator((v, x), (td.constant(1.0), td.constant(5.0))) as acc:
            y = v * x
        assert acc.jvp(y).numpy() == 2.0 + 15.0

    def test_unconnected(self):
        x, c = td.constant(2.0), td.constant(4.0)
        with td.autodiff.ForwardAccumulator(x, td.constant(1.0)) as acc:
            y = c * c
        assert acc.jvp(y) is None
        assert acc.jvp(y, unconnected_gradients="zero").numpy() == 0.0

    def test_forward_over_reverse(self):
        """A Hessian-vector product."""
        x = td.constant([1.0, 2.0])
        with td.autodiff.ForwardAccumulator(x, td.constant([1.0, -1.0])) as acc:
            with td.GradientTape() as tape:
                tape.watch(x)
                y = x[0] * x[0] * x[1] + x[1] ** 3
            gradient = tape.gradient(y, x)
        np.testing.assert_allclose(acc.jvp(gradient), [2 * 2.0 - 2.0, 2.0 - 12.0])

    def test_in_a_function_with_a_loop(self):
        def product(x, t):
            with td.autodiff.ForwardAccumulator(x, t) as acc:
                y = td.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1]
            return acc.jvp(y)

        x, t = td.constant([2.0, 3.0]), td.constant([1.0, 10.0])
        expected = 4 * x.numpy() ** 3 * t.numpy()
        np.testing.assert_allclose(product(x, t), expected)
        np.testing.assert_allclose(td.function(product, autograph=False)(x, t), expected)

    def test_wrong_tangents(self):
        x = td.constant([1.0, 2.0])
        with pytest.raises(ValueError, match=r"has shape \(3,\)"):
            td.autodiff.ForwardAccumulator(x, td.constant([1.0, 2.0, 3.0]))
        with pytest.raises(ValueError, match="Primals are floating point"):
            td.autodiff.ForwardAccumulator(td.constant(1), td.constant(1))
        with pytest.raises(ValueError, match="twice"):
            td.autodiff.ForwardAccumulator([x, x], [x, x])
