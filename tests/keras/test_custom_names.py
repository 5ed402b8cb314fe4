"""Names that programs give their own initializers, activations and losses."""

import numpy as np
import pytest

import treadle as td

keras = td.keras
backend = keras.backend


class Threes(keras.initializers.Initializer):
    def __call__(self, shape, dtype=None, **kwargs):
        return td.fill(shape, td.cast(3.0, dtype))


def doubled(x):
    return 2.0 * x


def test_objects_of_programs_are_found_by_their_names():
    known = {"threes": Threes, "doubled": doubled, "far": lambda y, p: td.reduce_sum(p, -1)}
    with keras.utils.custom_object_scope(known):
        layer = keras.layers.Dense(2, activation="doubled", kernel_initializer="threes")
        assert isinstance(keras.initializers.get("threes"), Threes)
        assert keras.losses.get("far") is known["far"]
        assert keras.regularizers.get("doubled") is doubled is keras.constraints.get("doubled")
    np.testing.assert_array_equal(layer(np.ones((1, 2))), [[12.0, 12.0]])
    keras.utils.get_custom_objects()["threes"] = Threes
    try:
        assert isinstance(keras.initializers.get("threes"), Threes)
    finally:
        del keras.utils.get_custom_objects()["threes"]
    with pytest.raises(ValueError, match="Unknown initializer 'threes'"):
        keras.layers.Dense(2, kernel_initializer="threes")


def test_a_name_in_the_place_of_a_learning_rate_is_an_error():
    """As `super().__init__(name, **kwargs)` of programs of Keras 2 gives it."""
    with pytest.raises(ValueError, match="learning_rate is a number, a schedule or a function"):
        keras.optimizers.SGD("MyMomentumOptimizer")


def test_more_functions_of_the_backend():
    drawn = backend.random_bernoulli((1000,), 0.3).numpy()
    assert set(drawn) == {0.0, 1.0} and 0.2 < drawn.mean() < 0.4
    assert not backend.random_bernoulli((100,), 0.0).numpy().any()
    assert abs(backend.truncated_normal((500,)).numpy()).max() <= 2.0
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(backend.cumsum(x, 1), x.cumsum(1))
    np.testing.assert_array_equal(backend.cumprod(x), x.cumprod(0))
    np.testing.assert_array_equal(backend.repeat(x, 2), np.stack([x, x], 1))
    np.testing.assert_array_equal(backend.repeat_elements(x, 2, 1), x.repeat(2, 1))
    np.testing.assert_array_equal(backend.reverse(x, 1), x[:, ::-1])
    np.testing.assert_array_equal(backend.bias_add(x, [1.0, 2.0, 3.0]), x + [1, 2, 3])
    np.testing.assert_allclose(
        backend.hard_sigmoid([-3.0, 0.0, 1.0, 3.0]), [0.0, 0.5, 0.7, 1.0], rtol=1e-6
    )
    np.testing.assert_array_equal(backend.in_top_k(x, [2, 0], 1), [True, False])
    assert backend.cast_to_floatx([1, 2]).dtype == np.float32
    assert backend.count_params(td.constant(x)) == 6
    v = backend.eye(2)
    backend.update_add(v, [[1.0, 1.0], [1.0, 1.0]])
    backend.update_sub(v, [[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(v, [[2.0, 0.0], [0.0, 2.0]])
    backend.batch_set_value([(v, [[1, 2], [3, 4]])])
    backend.update(v, v + 1.0)
    np.testing.assert_array_equal(v, [[2.0, 3.0], [4.0, 5.0]])
    u = backend.random_uniform_variable((9,), 2.0, 3.0)
    n = backend.random_normal_variable((9,), 9.0, 1.0)
    assert u.numpy().min() >= 2.0 and n.numpy().min() > 3.0
    dropped = backend.dropout(np.ones(100, np.float32), 0.5).numpy()
    assert set(dropped) == {0.0, 2.0}
