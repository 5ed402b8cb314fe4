"""Activation functions: values, special values, dtypes, gradients and lowering."""

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.lowered import check_lowering
from treadle.ops.registry import OPS

X = np.linspace(-6.3, 6.9, 45)
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805

REFERENCES = {
    "relu": (td.nn.relu, {}, lambda x: np.maximum(x, 0)),
    "relu6": (td.nn.relu6, {}, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": (td.nn.leaky_relu, {"alpha": 0.3}, lambda x: np.where(x > 0, x, 0.3 * x)),
    "elu": (td.nn.elu, {"alpha": 1.0}, lambda x: np.where(x > 0, x, np.expm1(x))),
    "selu": (td.nn.selu, {}, lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x))),
    "silu": (td.nn.silu, {"beta": 1.5}, lambda x: x * special.expit(1.5 * x)),
    "gelu": (td.nn.gelu, {"approximate": False}, lambda x: x * special.ndtr(x)),
    "gelu tanh": (
        td.nn.gelu, {"approximate": True},
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "softplus": (td.nn.softplus, {}, lambda x: np.logaddexp(x, 0)),
    "softsign": (td.nn.softsign, {}, lambda x: x / (1 + np.abs(x))),
}  # fmt: skip
SMOOTH = [n for n in REFERENCES if not n.startswith("relu") and n != "leaky_relu"]


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_values_and_lowering(name, dtype):
    fn, attrs, reference = REFERENCES[name]
    tolerance = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    x = X.astype(getattr(ml_dtypes, dtype, dtype) if dtype == "bfloat16" else dtype)
    y = fn(td.constant(x), **attrs)
    assert y.dtype == dtype
    expected = reference(x.astype(np.float64))
    np.testing.assert_allclose(
        y.numpy().astype(np.float64), expected, rtol=tolerance, atol=tolerance
    )
    check_lowering(name.split()[0], x, tolerance=tolerance, **attrs)


@pytest.mark.parametrize("name", REFERENCES)
def test_gradients(name):
    fn, attrs, _ = REFERENCES[name]
    x = np.array([[-5.2, -1.3, -0.4], [0.3, 1.7, 7.1]])
    check_gradients(lambda t: fn(t, **attrs), x, second=name in SMOOTH)


@pytest.mark.parametrize("name", REFERENCES)
def test_special_values(name):
    fn, attrs, _ = REFERENCES[name]
    y = fn(td.constant([np.nan, np.inf, 0.0]), **attrs).numpy()
    assert np.isnan(y[0])
    if name != "softsign":  # inf / inf, as in TensorFlow
        assert y[1] == {"relu6": 6.0}.get(name, np.inf)
    assert y[2] == (np.float32(np.log(2)) if name == "softplus" else 0.0)


def test_relu_slope_at_zero_is_zero_and_integers_work():
    x = td.constant([-1.0, 0.0, 2.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.nn.relu(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [0, 0, 1])
    np.testing.assert_array_equal(td.nn.relu([-3, 4]), [0, 4])
    np.testing.assert_array_equal(td.nn.relu6([-3, 4, 9]), [0, 4, 6])


def test_relu_grad_lowers_to_a_select():
    dy, y = np.array([1.0, np.inf, -2.0], "f"), np.array([3.0, 0.0, 1.0], "f")
    np.testing.assert_array_equal(check_lowering("relu_grad", dy, y), [1.0, 0.0, -2.0])


@pytest.mark.parametrize("name", ["elu", "selu", "silu", "gelu", "softplus", "softsign"])
def test_integers_are_refused(name):
    with pytest.raises(TypeError, match=rf"{name}\(i32\[2\]\).*int32.*\n.*test_activations.py"):
        getattr(td.nn, name)([1, 2])


def test_every_activation_is_one_op():
    for name in REFERENCES:
        op = OPS[name.split()[0]]
        assert op.eager and op.gradient and op.lower


def test_log_sigmoid_slope_at_zero():
    x = td.constant([0.0, -200.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.math.log_sigmoid(x)
    np.testing.assert_allclose(y, [-np.log(2), -200.0], rtol=1e-6)
    np.testing.assert_array_equal(tape.gradient(y, x), [0.5, 1.0])


def test_the_gradient_of_a_sum_of_relu_in_a_function():
    """The sum's gradient is one number, which passes leave one number."""
    x = np.linspace(-1, 1, 32 * 64, dtype=np.float32).reshape(32, 64)
    w = np.linspace(-1, 2, 64 * 48, dtype=np.float32).reshape(64, 48)

    @td.function(autograph=False)
    def gradient(x, w):
        with td.GradientTape() as tape:
            tape.watch(x)
            loss = td.reduce_sum(td.nn.relu(td.matmul(x, w)))
        return tape.gradient(loss, x)

    found = gradient(td.constant(x), td.constant(w)).numpy()
    np.testing.assert_allclose(found, (x @ w > 0).astype(np.float32) @ w.T, rtol=1e-4, atol=1e-3)
