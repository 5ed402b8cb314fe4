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


def test_other_numbers_in_each_call_without_a_seed() -> None:
    for kind in (td.random_uniform_initializer, td.random_normal_initializer):
        for seed, same in ((None, False), (3, True)):
            draw = kind(seed=seed)
            twice = td.function(lambda draw=draw: (draw([3]), draw([3])))
            for found in ((draw([3]), draw([3])), twice(), (twice()[0], twice()[0])):
                assert np.array_equal(*found) is same
    td.random.set_seed(5)
    expected = td.random.uniform([3], -0.05, 0.05).numpy()
    td.random.set_seed(5)
    assert (td.random_uniform_initializer()([3]).numpy() == expected).all()


def test_parts_and_refusals() -> None:
    part = {"partition_shape": (2, 2), "partition_offset": (0, 0)}
    for make in (
        td.zeros_initializer, td.ones_initializer, td.random_normal_initializer,
        td.random_uniform_initializer,
    ):  # fmt: skip
        found = make()((4, 2), td.float32, **part)
        assert found.dtype is td.float32 and found.shape == [2, 2]
    assert td.constant_initializer(2.0, support_partition=True)((4, 2), **part).shape == [4, 2]
    with pytest.raises(ValueError, match="partition-related"):
        td.constant_initializer(2.0)([4, 2], **part)
    with pytest.raises(TypeError, match="Unknown keyword"):
        td.zeros_initializer()([2], td.float32, parts=1)
    for kind, dtype in (
        (td.zeros_initializer, td.string), (td.random_normal_initializer, td.int32),
        (td.random_uniform_initializer, td.bool),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Argument `dtype`"):
            kind()([2], dtype)
    for value in (td.constant(1.0), {}, td.Variable(1.0)):
        with pytest.raises(TypeError, match="Invalid type for initial value"):
            td.constant_initializer(value)
