"""Weights and other variables of Keras: paths, names and values as Keras 3.15 gives them."""

import numpy as np
import pytest

import treadle as td
from treadle import keras


@pytest.fixture(autouse=True)
def new_names():
    keras.utils.clear_session()


def paths(variables):
    return [v.path for v in variables]


def test_paths_of_a_sequential_and_of_what_trains_it():
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()]
    )
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 4)), np.ones((4, 3)), verbose=0)
    weights = ["dense/kernel", "dense/bias", "batch_normalization/gamma"]
    weights += ["batch_normalization/beta", "batch_normalization/moving_mean"]
    weights.append("batch_normalization/moving_variance")
    assert paths(model.weights) == [f"sequential/{w}" for w in weights]
    assert [w.name for w in model.weights] == [w.rpartition("/")[2] for w in weights]
    own = [f"sequential_{w.replace('/', '_')}" for w in weights[:4]]
    slots = [f"{w}_{slot}" for w in own for slot in ("momentum", "velocity")]
    expected = ["iteration", "learning_rate", *slots]
    assert [v.name for v in model.optimizer.variables] == expected
    assert paths(model.optimizer.variables) == [f"adam/{name}" for name in expected]
    tracked = ["loss/total", "loss/count", "mean_absolute_error/total", "mean_absolute_error/count"]
    assert paths(model.metrics_variables) == tracked


def test_paths_begin_with_what_builds_the_layer():
    class Block(keras.Model):
        def __init__(self):
            super().__init__()
            self.last, self.steps = keras.layers.Dense(2), keras.layers.LSTM(3)

        def call(self, x):
            return self.last(self.steps(x))

    with keras.name_scope("outer"):
        dense = keras.layers.Dense(2)
        dense.build((None, 3))
    assert (dense.kernel.path, dense.path) == ("outer/dense/kernel", "outer/dense")
    block = Block()
    block(td.ones([2, 3, 4]))
    cell = [f"block/lstm/lstm_cell/{name}" for name in ("kernel", "recurrent_kernel", "bias")]
    assert paths(block.weights) == ["block/dense_1/kernel", "block/dense_1/bias", *cell]


def test_both_directions_have_names_of_their_own():
    inputs = keras.Input((3, 4))
    model = keras.Model(inputs, keras.layers.Bidirectional(keras.layers.GRU(2))(inputs))
    assert paths(model.weights) == [
        f"bidirectional/{way}_gru/gru_cell/{name}"
        for way in ("forward", "backward") for name in ("kernel", "recurrent_kernel", "bias")
    ]  # fmt: skip


def test_the_value_is_an_attribute_and_that_of_other_variables_a_method():
    dense = keras.layers.Dense(2, kernel_initializer="ones")
    dense.build((None, 3))
    np.testing.assert_array_equal(dense.kernel.value, np.ones((3, 2)))
    assert isinstance(dense.kernel, keras.Variable)
    plain = td.Variable([1.0, 2.0])
    np.testing.assert_array_equal(plain.value(), [1.0, 2.0])
    np.testing.assert_array_equal(td.Variable.value(plain), [1.0, 2.0])
    assert plain.path is None and not isinstance(plain, keras.Variable)
    own = keras.Variable([1.0, 2.0], name="own")
    assert own.path == "own" and isinstance(own, keras.Variable)


def test_values_are_read_in_functions_and_from_arguments():
    dense = keras.layers.Dense(2, kernel_initializer="ones")
    dense.build((None, 3))
    read = td.function(lambda: td.reduce_sum(dense.kernel.value))
    assert float(read()) == 6.0
    given = td.function(lambda v: td.reduce_sum(v.value), autograph=False)
    assert float(given(dense.kernel)) == 6.0


def test_how_they_print():
    dense = keras.layers.Dense(2)
    dense.build((None, 3))
    text = "<Variable path=dense/bias, shape=(2,), dtype=float32, value=[0. 0.]>"
    assert repr(dense.bias) == str(dense.bias) == text
    assert repr(td.Variable(1.0, name="w")).startswith("<tf.Variable 'w:0' shape=() ")


def test_mirrored_weights_have_paths_too():
    strategy = td.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        dense = keras.layers.Dense(2, kernel_initializer="ones")
        dense.build((None, 3))
    assert dense.kernel.path == "dense/kernel"
    np.testing.assert_array_equal(dense.kernel.value, np.ones((3, 2)))


def test_variables_of_programs_in_the_scope_of_a_strategy():
    strategy = td.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        own = keras.Variable(np.ones(2, np.float32), name="own")
        summed = keras.Variable("zeros", shape=(), synchronization="on_read", aggregation="sum",
                                trainable=False)  # fmt: skip
        optimizer = keras.optimizers.SGD(0.5)
    assert isinstance(own, keras.Variable) and type(own).__name__ == "MirroredVariable"
    assert own.path == "own" and summed.aggregation is td.VariableAggregation.SUM
    strategy.run(lambda: optimizer.apply([td.ones(2)], [own]))
    assert (own * 2).numpy().tolist() == [1.0, 1.0]
    assert type(summed).__name__ == "SyncOnReadVariable"


def test_name_scopes_have_no_slashes():
    with pytest.raises(ValueError, match="cannot contain"):
        keras.name_scope("a/b")


def _weights():
    """A float one [1, 1] and an integer one 0, as a layer makes them."""
    layer = keras.layers.Dense(2)
    ones = layer.add_weight(shape=(2,), initializer="ones")
    return ones, layer.add_weight(shape=(), initializer="zeros", dtype="int32")


def test_assigned_values_take_the_dtype_of_a_variable_of_keras():
    floats, number = _weights()
    assert floats.assign_add(td.constant([1, 2])).numpy().tolist() == [2, 3]
    assert floats.assign(np.array([3, 4])).numpy().tolist() == [3, 4]
    assert floats.assign_sub(td.constant([1, 1])).numpy().tolist() == [2, 3]
    assert int(number.assign_add(1.7)) == 1
    assert int(number.assign(2.9)) == 2
    assert int(number.assign_sub(td.constant(0.5))) == 1
    assert int(number.assign(td.constant(7.9))) == 7

    @td.function
    def step(x):
        floats.assign_add(x)
        number.assign_sub(td.constant(0.5))

    step(td.constant([5, 6]))
    assert floats.numpy().tolist() == [7, 9] and int(number) == 6
    assert floats.dtype == "float32" and number.dtype == "int32"


def test_operators_of_a_variable_of_keras_promote():
    floats, number = _weights()
    ints = td.constant([1, 2])
    for found in (floats + ints, floats * td.constant(2), floats**td.constant(2), floats / ints):
        assert found.dtype == td.float32
    assert (number + 1.5).dtype == td.float32 and (number * td.constant(2.5)).dtype == td.float32
    assert (floats < ints).numpy().tolist() == [False, True]
    assert (number / 2).dtype == td.float32 and (number // 2).dtype == td.int32
    assert (ints - floats).dtype == td.float32 and (ints * floats).numpy().tolist() == [1, 2]
    with pytest.raises(TypeError, match="cast"):
        td.Variable([1.0, 1.0]) + ints


def test_operators_have_the_common_dtypes_of_keras():
    whole = keras.Variable([1, 2, 3])
    small = keras.Variable(np.ones(3, np.int8), dtype="int8")
    half = keras.Variable(lambda shape, dtype: np.ones(shape), shape=(3,), dtype="float16")
    assert whole.dtype == td.int32 and half.dtype == td.float16 and whole.ndim == 1
    for found, dtype, value in (
        (whole + small, "int32", [2, 3, 4]), (half * whole, "float16", [1, 2, 3]),
        (2.5 - whole, "float32", [1.5, 0.5, -0.5]), (whole // small, "int32", [1, 2, 3]),
        (np.ones(3, np.float32) / half, "float32", [1, 1, 1]), (whole >= half, "bool", [1, 1, 1]),
        (small == whole, "bool", [1, 0, 0]),
    ):  # fmt: skip
        assert found.dtype.name == dtype
        np.testing.assert_array_equal(found, value)
    with td.GradientTape() as tape:
        loss = td.reduce_sum(td.cast(half * whole, td.float32))
    np.testing.assert_array_equal(tape.gradient(loss, half), [1, 2, 3])


class Doubled(td.Variable):
    """Another variable, whose value is read doubled, as libraries for Keras 2 quantize it."""

    def __init__(self, inside):
        self.inside = inside

    def __getattr__(self, name):
        return getattr(self.inside, name)

    def read_value(self):
        return 2.0 * self.inside.read_value()

    value = read_value

    def __tf_tensor__(self, dtype=None, name=None):
        return self.read_value()

    def assign(self, *args, **kwargs):
        return self.inside.assign(*args, **kwargs)

    def assign_sub(self, *args, **kwargs):
        return self.inside.assign_sub(*args, **kwargs)


class WithDoubled(td.keras.layers.Dense):
    def _add_variable_with_custom_getter(self, name, **given):
        if name != "kernel":
            return super()._add_variable_with_custom_getter(name, **given)
        make = given.pop("getter")
        found = super()._add_variable_with_custom_getter(
            name, getter=lambda **more: Doubled(make(**more)), **given
        )
        assert given["shape"] == (4, 3) and given["trainable"]
        return found


def test_a_layer_may_put_another_variable_around_its_weight():
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    layer = WithDoubled(3, use_bias=False, kernel_initializer="ones")
    np.testing.assert_array_equal(layer(x), 2 * x.sum(1, keepdims=True).repeat(3, 1))
    assert type(layer.kernel) is Doubled and layer.trainable_variables == [layer.kernel]

    def gradient(x):
        with td.GradientTape() as tape:
            loss = td.reduce_sum(layer(x))
        return tape.gradient(loss, layer.kernel)

    for function in (gradient, td.function(gradient)):
        np.testing.assert_array_equal(function(x), 2 * x.sum(0)[:, None].repeat(3, 1))
    model = td.keras.Sequential([layer])
    model.compile(td.keras.optimizers.SGD(0.25), lambda y, found: td.reduce_sum(found))
    model.fit(x, x[:, :3], epochs=1, verbose=0, shuffle=False)
    wanted = 1 - 0.25 * 2 * x.sum(0)[:, None].repeat(3, 1)
    np.testing.assert_allclose(layer.kernel.inside, wanted)
    np.testing.assert_allclose(layer(x), 2 * x @ wanted)
