"""Layers as functions: names of variables as TensorFlow 1 gives them, arguments by scopes."""

import numpy as np
import pytest

import treadle.compat.v1 as tf

slim = tf.contrib.slim


def test_slim():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 8, 8, 3])
        penalty = slim.l2_regularizer(0.01)
        with slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_regularizer=penalty, normalizer_fn=slim.batch_norm,
        ):  # fmt: skip
            net = slim.repeat(x, 2, slim.conv2d, 4, [3, 3], scope="conv1")
            net = slim.max_pool2d(net, [2, 2], scope="pool1")
            net = slim.flatten(net)
            net = slim.stack(net, slim.fully_connected, [8, 4], scope="fc")
        y = slim.fully_connected(net, 2, activation_fn=None, scope="out")
        names = [v.op.name for v in slim.get_model_variables() if v.op.name.endswith("weights")]
        assert names == [
            "conv1/conv1_1/weights", "conv1/conv1_2/weights", "fc/fc_1/weights", "fc/fc_2/weights",
            "out/weights",
        ]  # fmt: skip
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 4
        session.run(tf.global_variables_initializer())
        assert session.run(y, {x: np.zeros((5, 8, 8, 3))}).shape == (5, 2)


def test_layer_norm():
    x = np.random.default_rng(0).normal(3.0, 2.0, (4, 6)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.contrib.layers.layer_norm(x)
        assert [v.op.name for v in tf.trainable_variables()] == [
            "LayerNorm/beta", "LayerNorm/gamma",
        ]  # fmt: skip
        session.run(tf.global_variables_initializer())
        found = session.run(y)
    wanted = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_convolution_in_the_other_direction():
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.contrib.layers.conv2d_transpose(np.ones((1, 4, 4, 2), np.float32), 3, [3, 3], 2)
        shapes = {v.op.name: v.shape.as_list() for v in tf.trainable_variables()}
        assert shapes == {
            "Conv2d_transpose/weights": [3, 3, 3, 2], "Conv2d_transpose/biases": [3],
        }  # fmt: skip
        session.run(tf.global_variables_initializer())
        assert session.run(y).shape == (1, 8, 8, 3) and session.run(y).min() >= 0.0


def test_a_linear_layer_has_no_activation():
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.contrib.layers.linear(np.eye(3, dtype=np.float32), 40)
        session.run(tf.global_variables_initializer())
        assert session.run(y).min() < 0.0


def test_texts_of_both_pythons():
    assert tf.compat.as_bytes("é") == "é".encode() and tf.compat.as_text(b"a") == "a"
    assert tf.compat.as_str_any(3) == "3" and tf.compat.as_str(b"x") == "x"
    with pytest.raises(TypeError, match="Expected binary or unicode string"):
        tf.compat.as_text(3)


def test_partitioners_are_refused():
    with pytest.raises(AttributeError, match="not divided into parts"):
        tf.fixed_size_partitioner(2)


def test_a_saver_makes_the_folder(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=3.0)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "some" / "where" / "model.ckpt"))
        session.run(v.assign(4.0))
        saver.restore(session, path)
        assert session.run(v) == 3.0


def test_batches_of_dataframes():
    pandas = pytest.importorskip("pandas")
    x = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4, 5, 6]})
    give = tf.estimator.inputs.pandas_input_fn(
        x, pandas.Series([0, 1, 0]), batch_size=2, shuffle=False
    )
    with tf.Graph().as_default(), tf.Session() as session:
        features, labels = session.run(give())
    np.testing.assert_array_equal(features["a"], [1.0, 2.0])
    np.testing.assert_array_equal(features["b"], [4, 5])
    np.testing.assert_array_equal(labels, [0, 1])


@pytest.mark.parametrize("shapes", [((4, 7), (1, 4, 7)), ((1, 4, 7), (4, 7)), ((2, 2, 7), (4, 7))])
def test_labels_in_axes_of_another_number(shapes):
    """TensorFlow takes logits and labels as rows of classes; the loss has the axes of logits."""
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(4, 7)).astype(np.float32)
    labels = np.eye(7, dtype=np.float32)[[0, 3, 6, 3]]
    wanted = np.log(np.exp(logits).sum(1)) - logits[np.arange(4), [0, 3, 6, 3]]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, *shapes[0][1:]])
        given = tf.constant(labels.reshape(shapes[1]))
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=given, logits=x)
        found = session.run(loss, {x: logits.reshape(shapes[0])})
    assert found.shape == shapes[0][:-1]
    np.testing.assert_allclose(found.reshape(-1), wanted, 1e-5)


X = np.random.RandomState(0).randn(8, 4, 4, 2).astype(np.float32)


# Recorded with tf_slim on TensorFlow 2.21: losses of two steps, one of inference, and means that
# layers keep.
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("collection", [None, "moves", tf.GraphKeys.UPDATE_OPS])
def test_means_of_batches_change_where_it_is_said(data_format, collection):
    layers = tf.contrib.layers
    with tf.Graph().as_default(), tf.Session() as session:
        train = tf.placeholder(tf.bool, [])
        x = tf.constant(X if data_format == "NHWC" else X.transpose(0, 3, 1, 2))
        y = layers.batch_norm(
            x, 0.8, updates_collections=collection, is_training=train, data_format=data_format,
            variables_collections=["mine"], outputs_collections="ends",
            param_initializers={"beta": tf.constant_initializer(0.5)},
        )  # fmt: skip
        y = layers.avg_pool2d(
            layers.max_pool2d(y, 2, 1, data_format=data_format), 3, data_format=data_format
        )
        assert y.shape.as_list() == ([8, 1, 1, 2] if data_format == "NHWC" else [8, 2, 1, 1])
        assert len(tf.get_collection("mine")) == 3 and len(tf.get_collection("ends")) == 1
        session.run(tf.global_variables_initializer())
        session.run(y, {train: True})
        moved = {} if collection is None else {"moves": tf.get_collection(collection)}
        assert len(moved.get("moves", [])) == (0 if collection is None else 2)
        session.run(moved, {train: True})
        mean, variance = (
            session.run(v) for v in tf.global_variables() if "moving" in v.op.name
        )
        flat = X.reshape(-1, 2)
        np.testing.assert_allclose(mean, 0.2 * flat.mean(0), rtol=1e-5)
        np.testing.assert_allclose(variance, 0.8 + 0.2 * flat.var(0, ddof=1), rtol=1e-5)
        outputs = session.run(y, {train: False}).reshape(8, 2)
        normal = (X - mean) / np.sqrt(variance + 0.001) + 0.5
        windows = [normal[:, i : i + 3, j : j + 3] for i in (0, 1) for j in (0, 1)]
        np.testing.assert_allclose(
            outputs, np.max(windows, 0).mean((1, 2)), rtol=1e-4, atol=1e-5
        )  # fmt: skip


def test_a_loss_is_optimized_as_its_arguments_say():
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.Variable(2.0, name="a"), tf.Variable(3.0, name="b")
        count = tf.Variable(0, trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1))
        step = tf.train.get_or_create_global_step()
        train = tf.contrib.layers.optimize_loss(
            a + b, step, 1.0, "SGD", gradient_multipliers={"b": 4.0},
            learning_rate_decay_fn=lambda rate, step: rate / (1.0 + tf.cast(step, tf.float32)),
            clip_gradients=lambda pairs: [(tf.minimum(g, 3.0), v) for g, v in pairs],
        )  # fmt: skip
        session.run(tf.global_variables_initializer())
        session.run(train)
        session.run(train)
        assert session.run([a, b, count, step]) == [0.5, -1.5, 2, 2]
        with pytest.raises(NotImplementedError, match="gradient_noise_scale"):
            tf.contrib.layers.optimize_loss(a, step, 0.1, "SGD", gradient_noise_scale=1.0)
