import numpy as np
import pytest

import treadle as td
from treadle.autodiff.checking import GradientError, check_gradients, compute_gradient, max_error

X = np.array([[0.5, -1.0], [2.0, 0.25]])


def test_compute_gradient_gives_both_jacobians():
    theoretical, numeric = td.test.compute_gradient(
        lambda x, y: td.reduce_sum(x * y, 1), [X, td.constant([3.0, 4.0], td.float64)]
    )
    assert [j.shape for j in theoretical] == [(2, 4), (2, 2)]
    np.testing.assert_array_equal(theoretical[0], [[3.0, 4.0, 0, 0], [0, 0, 3.0, 4.0]])
    assert max_error(theoretical, numeric) < 1e-9


def test_compute_gradient_of_complex():
    z = np.array([1.0 + 2.0j, -0.5j])
    theoretical, numeric = compute_gradient(lambda z: z * z, [z])
    assert theoretical[0].shape == (4, 4)
    assert max_error(theoretical, numeric) < 1e-8


def test_compute_gradient_of_nothing():
    theoretical, numeric = compute_gradient(lambda x: x * 2.0, [np.zeros((0, 3))])
    assert max_error(theoretical, numeric) == 0.0


def test_compute_gradient_wants_a_list():
    with pytest.raises(ValueError, match="list or tuple"):
        compute_gradient(lambda x: x, td.constant(1.0))


@td.custom_gradient
def wrong(x):
    return x * x, lambda dy: dy * x


def test_a_wrong_gradient_is_reported():
    with pytest.raises(GradientError, match=r"order 1, argument 0: 4 of 4 .* at index \[1, 0\]"):
        check_gradients(wrong, X)


def test_a_wrong_second_derivative_is_reported():
    @td.custom_gradient
    def f(x):
        def grad(dy):
            return dy * 3.0 * td.stop_gradient(x) ** 2

        return x**3, grad

    check_gradients(f, X)
    with pytest.raises(GradientError, match="order 2"):
        check_gradients(f, X, order=2)


def test_wrap_is_what_is_checked():
    """A wrapper that breaks gradients is caught."""
    broken = lambda f: lambda *xs: [g * 2.0 for g in f(*xs)]
    check_gradients(td.tanh, X, wrap=lambda f: td.function(f, autograph=False))
    with pytest.raises(GradientError):
        check_gradients(td.tanh, X, wrap=broken)


def test_integer_arguments_and_results_are_left_out():
    def f(x, i):
        return td.gather(x, i), i

    check_gradients(f, X, np.array([1, 0, 1]))


def test_a_function_without_gradients():
    with pytest.raises(ValueError, match="no floating point"):
        check_gradients(lambda x: td.cast(x, td.int32), X)
