"""`td.constant_initializer` and its like: TensorFlow's, which layers take, too.

The outcomes are TensorFlow 2.21's.
"""

import numpy as np
import pytest

import treadle as td


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, None, "int32"), (2.5, None, "float32"), (np.float64(2.0), None, "float64"),
        (True, None, "bool"), ("a", None, "string"), (3, td.float16, "float16"),
    ],
)  # fmt: skip
def test_a_constant_has_the_dtype_of_its_value(value: object, dtype: object, expected: str) -> None:
    made = td.constant_initializer(value)([2], dtype)
    assert made.dtype.name == expected and made.shape == [2]
    assert (made == td.constant(value, made.dtype)).numpy().all()


def test_uniform_integers() -> None:
    made = td.random_uniform_initializer(2, 5)([100], td.int32).numpy()
    assert made.dtype == np.int32 and set(made) == {2, 3, 4}


def test_layers_write_them_as_keras_does() -> None:
    layer = td.keras.layers.Dense(
        2, kernel_initializer=td.constant_initializer(3.0),
        bias_initializer=td.random_uniform_initializer(0, 1),
    )  # fmt: skip
    config = layer.get_config()
    assert config["kernel_initializer"]["class_name"] == "Constant"
    assert config["bias_initializer"]["class_name"] == "RandomUniform"
    same = td.keras.layers.Dense.from_config(config)
    same(td.ones([1, 2]))
    assert (same.kernel.numpy() == 3.0).all() and same.kernel.dtype == "float32"
