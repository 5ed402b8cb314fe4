"""treadle's own functions, variables and Keras layers with tensors of graphs of TensorFlow 1."""

from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf

GIVEN = np.float32([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])

# What td's function gives in a graph, and what it gives for the array.
CALLS: dict[str, Any] = {
    "add": lambda x: td.add(x, 1.0),
    "reduce_mean": lambda x: td.reduce_mean(x, axis=1, keepdims=True),
    "an array times it": lambda x: td.constant([1.0, 2.0, 3.0]) * x,
    "an array below it": lambda x: td.constant([1.0, 2.0, 3.0]) < x,
    "a matrix by it": lambda x: td.ones([4, 2]) @ x,
    "it by an array": lambda x: x / td.constant(2.0),
    "concat": lambda x: td.concat([x, td.zeros([1, 3]), x], axis=0),
    "a named one": lambda x: td.stack([x, x], name="both"),
    "relu": lambda x: td.nn.relu(x),
    "where": lambda x: td.where(x > 0.0, x, td.constant(-1.0)),
    "where of rows": lambda x: td.where(td.constant([True, False, True]), x, 0.0),
    "cond": lambda x: td.cond(td.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: td.exp(x)),
    "while_loop": lambda x: td.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (td.constant(0), x)
    )[1],
    "map_fn": lambda x: td.map_fn(lambda row: td.reduce_max(row) + row, x),
    "convert": lambda x: td.convert_to_tensor(x),
    "norm": lambda x: td.linalg.norm(x, axis=0),
    "resize": lambda x: td.image.resize(td.reshape(x, [1, 2, 3, 1]), [4, 6]),
    "einsum": lambda x: td.einsum("ij,kj->ik", x, x),
    "loss": lambda x: td.keras.losses.mean_squared_error(td.ones([2, 3]), x),
    "keras.ops": lambda x: td.keras.ops.sum(td.keras.ops.square(x), axis=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_are_written_down(name: str) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    made = CALLS[name](x)
    assert type(made) is tf.Tensor
    with tf.Session() as session:
        found = session.run(made, {x: GIVEN})
    np.testing.assert_allclose(found, CALLS[name](td.constant(GIVEN)), rtol=1e-6)


def test_operations_are_named_as_in_tensorflow() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert td.reduce_mean(x).name == "Mean:0"
    assert td.add(x, x, name="total").name == "total:0"
    assert td.cast(x, td.float32) is x and td.convert_to_tensor(x) is x


def test_a_variable_is_shared_by_sessions() -> None:
    v = td.Variable([1.0, 2.0, 3.0], name="v")
    x = tf.placeholder(tf.float32, [3])
    product = td.reduce_sum(v * x)
    (shared,) = tf.trainable_variables()
    assert (shared.name, shared.shape.as_list()) == ("v:0", [3])
    (gradient,) = tf.gradients(product, [shared])
    step = tf.train.GradientDescentOptimizer(0.5).minimize(product)
    with tf.Session() as session:
        assert session.run(product, {x: [1.0, 1.0, 1.0]}) == 6.0  # it has a value
        session.run(tf.global_variables_initializer())
        assert session.run(gradient, {x: [1.0, 0.0, 2.0]}).tolist() == [1.0, 0.0, 2.0]
        session.run(step, {x: [2.0, 0.0, 4.0]})
    assert v.numpy().tolist() == [0.0, 2.0, 1.0]
    v.assign([5.0, 5.0, 5.0])
    with tf.Session() as session:
        assert session.run(shared).tolist() == [5.0, 5.0, 5.0]
        assert session.run(product, {x: [1.0, 1.0, 1.0]}) == 15.0
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(td.multiply(tf.constant(2.0), v)).tolist() == [10.0] * 3


def test_keras_layers_and_models() -> None:
    td.keras.utils.set_random_seed(1)
    inputs = td.keras.Input((3,))
    hidden = td.keras.layers.Dense(4, activation="tanh", name="hidden")(inputs)
    model = td.keras.Model(inputs, td.keras.layers.Dense(1, name="out")(hidden))
    x = tf.placeholder(tf.float32, [None, 3])
    y = model(x)
    assert y.shape.as_list() == [None, 1]
    assert {v.name for v in tf.trainable_variables()} == {
        "hidden/kernel:0", "hidden/bias:0", "out/kernel:0", "out/bias:0"
    }  # fmt: skip
    normal = td.keras.layers.BatchNormalization()
    dropped = td.keras.layers.Dropout(0.5)(x, training=True)
    both = td.keras.layers.Concatenate()([x, normal(x, training=False)])
    assert len(tf.global_variables()) - len(tf.trainable_variables()) == 2
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, joined, zeros = session.run([y, both, dropped], {x: GIVEN})
    np.testing.assert_allclose(found, model(GIVEN), rtol=1e-6)
    np.testing.assert_allclose(joined, np.hstack([GIVEN, GIVEN / np.sqrt(1.001)]), rtol=1e-5)
    assert set(np.unique(np.abs(zeros / GIVEN))) <= {0.0, 2.0}


def test_a_saver_saves_what_is_shared(tmp_path: Any) -> None:
    layer = td.keras.layers.Dense(2, name="dense")
    layer(tf.placeholder(tf.float32, [None, 3]))
    before = layer.get_weights()
    with tf.Session() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        layer.set_weights([w + 1 for w in before])
        tf.train.Saver().restore(session, path)
    for now, then in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_traced_functions_are_operations_of_the_graph() -> None:
    x = tf.placeholder(tf.float32, [2])
    doubled, size = td.function(lambda y, n: (y * n, y.shape[0]))(x, 2)
    assert (doubled.name, doubled.shape.as_list()) == ("PartitionedCall:0", [2])
    with tf.Session() as session:
        found = session.run([doubled, size, *tf.gradients(doubled, [x])], {x: [1.0, 3.0]})
    assert [np.asarray(f).tolist() for f in found] == [[2.0, 6.0], 2, [2.0, 2.0]]


def test_what_is_refused() -> None:
    x = tf.placeholder(tf.float32)
    with pytest.raises(TypeError, match="a td.function that is traced cannot take it"):
        td.function(lambda: x * 2)()
    with pytest.raises(ValueError, match="give the placeholder one"):
        td.keras.layers.Dense(2)(x)
    with pytest.raises(TypeError, match="has a value when a session runs it"):
        td.Variable(x)
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with pytest.raises(ValueError, match="must be from the same graph"):
        td.add(x, other)


def test_layers_in_graphs_drop_other_elements_in_each_run():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 64])
        dropped = tf.keras.layers.Dropout(0.5)(x, training=True)
        assert tf.global_variables() == []
        with tf.Session() as session:
            one, two = (session.run(dropped, {x: np.ones((1, 64))}) for _ in range(2))
    assert not np.array_equal(one, two)
