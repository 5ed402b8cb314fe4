"""The programs of the articles in the seeds, in their own names."""

import uuid
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.model_selection

import treadle.compat.v1 as tf

# -- 001: effective TensorFlow -------------------------------------------------------------------


def test_random_matrices() -> None:
    x = tf.random_normal([10, 10])
    y = tf.random_normal([10, 10])
    z = tf.matmul(x, y)
    assert str(z) == 'Tensor("MatMul:0", shape=(10, 10), dtype=float32)'
    assert tf.Session().run(z).shape == (10, 10)


def curve(x: Any, y: Any) -> Any:
    w = tf.get_variable("w", shape=[3, 1])
    f = tf.stack([tf.square(x), x, tf.ones_like(x)], 1)
    yhat = tf.squeeze(tf.matmul(f, w), 1)
    return tf.square(yhat - y)


def make_parallel(fn: Any, num_gpus: int, **kwargs: Any) -> Any:
    in_splits = {k: tf.split(v, num_gpus) for k, v in kwargs.items()}
    out_split = []
    for i in range(num_gpus):
        with (
            tf.device(tf.DeviceSpec(device_type="GPU", device_index=i)),
            tf.variable_scope(tf.get_variable_scope(), reuse=i > 0),
        ):
            out_split.append(fn(**{k: v[i] for k, v in in_splits.items()}))
    return tf.concat(out_split, axis=0)


@pytest.mark.parametrize("parallel", [False, True])
def test_polynomial_fit(parallel: bool) -> None:
    x = tf.placeholder(tf.float32)
    y = tf.placeholder(tf.float32)
    if parallel:
        x.set_shape([100])
        y.set_shape([100])
    loss = make_parallel(curve, 2, x=x, y=y) if parallel else curve(x, y)
    train_op = tf.train.AdamOptimizer(0.1).minimize(
        tf.reduce_mean(loss), colocate_gradients_with_ops=True
    )
    random = np.random.RandomState(0)
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    for _ in range(1000):
        x_val = random.uniform(-10.0, 10.0, size=100)
        _, loss_val = sess.run([train_op, loss], {x: x_val, y: 5 * np.square(x_val) + 3})
    (found,) = sess.run(tf.contrib.framework.get_variables_by_name("w"))
    assert found.shape == (3, 1) and np.mean(loss_val) < 5
    np.testing.assert_allclose(found[:2, 0], [5, 0], atol=0.1)


def test_names_and_scopes() -> None:
    a = tf.constant(1)
    b = tf.Variable(1)
    assert (a.name, b.name) == ("Const:0", "Variable:0")
    a = tf.constant(1, name="a")
    b = tf.Variable(1, name="b")
    assert (a.name, b.name) == ("a:0", "b:0")
    with tf.name_scope("scope"):
        a = tf.constant(1, name="a")
        b = tf.Variable(1, name="b")
        c = tf.get_variable(name="c", shape=[])
    assert (a.name, b.name, c.name) == ("scope/a:0", "scope/b:0", "c:0")
    with tf.variable_scope("vs"):
        a = tf.constant(1, name="a")
        b = tf.Variable(1, name="b")
        c = tf.get_variable(name="c", shape=[])
    assert (a.name, b.name, c.name) == ("vs/a:0", "vs/b:0", "vs/c:0")
    with tf.variable_scope("twice"):
        a1 = tf.get_variable(name="a", shape=[])
        with pytest.raises(ValueError, match="Variable twice/a already exists"):
            tf.get_variable(name="a", shape=[])
    with tf.variable_scope("twice", reuse=True):
        assert tf.get_variable(name="a", shape=[]) is a1


def test_shared_convolutions() -> None:
    image1, image2 = tf.random_uniform([2, 8, 8, 3]), tf.random_uniform([2, 8, 8, 3])
    tf.layers.conv2d(image1, filters=32, kernel_size=3, name="shared")
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        tf.layers.conv2d(image2, filters=32, kernel_size=3, name="shared")
    assert [v.name for v in tf.global_variables()] == ["shared/kernel:0", "shared/bias:0"]
    conv3x32 = tf.make_template("conv3x32", lambda x: tf.layers.conv2d(x, 32, 3))
    first, second = conv3x32(image1), conv3x32(image1)
    assert len(tf.global_variables()) == 4
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        a, b = sess.run([first, second])
        assert a.shape == (2, 6, 6, 32)
        np.testing.assert_array_equal(a, b)


def test_broadcasting_and_merging() -> None:
    a = tf.random_uniform([5, 3, 5])
    b = tf.random_uniform([5, 1, 6])
    tiled = tf.concat([a, tf.tile(b, [1, 3, 1])], 2)
    d = tf.layers.dense(tiled, 10, activation=tf.nn.relu)

    def merge(tensors: Any, units: int, activation: Any = tf.nn.relu, name: Any = None) -> Any:
        with tf.variable_scope(name, default_name="merge"):
            projs = [
                tf.layers.dense(t, units, activation=None, name=f"proj_{i}")
                for i, t in enumerate(tensors)
            ]
            result = projs.pop()
            for proj in projs:
                result = result + proj
            return activation(result) if activation else result

    merged = merge([tf.zeros([4, 1, 2]), tf.zeros([1, 5, 3])], 7)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(d).shape == (5, 3, 10) and sess.run(merged).shape == (4, 5, 7)
        c = tf.reduce_sum(tf.constant([[1.0], [2.0]]) + tf.constant([1.0, 2.0]))
        assert sess.run(c) == 12


def test_feeding_data() -> None:
    actual_data = np.random.default_rng(0).normal(size=[100])
    sess = tf.Session()
    data = tf.placeholder(tf.float32)
    prediction = tf.square(data) + 1
    found = sess.run(prediction, feed_dict={data: actual_data})
    np.testing.assert_allclose(found, actual_data.astype(np.float32) ** 2 + 1, rtol=1e-6)
    data = tf.py_func(lambda: actual_data, [], (tf.float64))
    np.testing.assert_array_equal(sess.run(data), actual_data)
    np.testing.assert_allclose(sess.run(tf.reduce_sum(data)), actual_data.sum())
    dataset = tf.contrib.data.Dataset.from_tensor_slices(actual_data)
    element = dataset.make_one_shot_iterator().get_next()
    assert [sess.run(element) for _ in range(3)] == actual_data[:3].tolist()
    dataset = dataset.cache().repeat().shuffle(50).map(lambda x: x * 2, num_threads=8).batch(10)
    batch = dataset.make_one_shot_iterator().get_next()
    assert sess.run(batch).shape == (10,) and batch.shape.as_list() == [None]


def test_slicing_is_fast_enough() -> None:
    x = tf.random_uniform([50, 10])
    z = tf.zeros([10])
    for i in range(50):
        z += x[i]
    w = tf.zeros([10])
    for row in tf.unstack(x):
        w += row
    a, b, c = tf.Session().run([z, w, tf.reduce_sum(x, axis=0)])
    np.testing.assert_allclose(a, c, rtol=1e-5)
    np.testing.assert_allclose(b, c, rtol=1e-5)


def test_operators() -> None:
    x, y = tf.constant([7, -7]), tf.constant([2, 2])
    p, q = tf.constant([True, False]), tf.constant([True, True])
    found = [-x, x + y, x - y, x * y, x / y, x // y, x % y, x**y, x > y, x >= y, x < y, x <= y,
             abs(x), p & q, p | q, p ^ q, ~p, 1 + x, 2 * x, tf.eye(2) @ tf.ones([2, 2])]
    a, b = np.array([7, -7]), np.array([2, 2])
    wanted = [-a, a + b, a - b, a * b, a / b, a // b, a % b, a**b, a > b, a >= b, a < b, a <= b,
              abs(a), [True, False], [True, True], [False, True], [False, True], 1 + a, 2 * a,
              np.ones([2, 2])]  # fmt: skip
    for f, w in zip(tf.Session().run(found), wanted, strict=True):
        np.testing.assert_array_equal(f, w)
    x += 1
    with pytest.raises(TypeError, match="bool"):
        if x:
            pass


def test_order_of_execution() -> None:
    sess = tf.Session()
    assert sess.run(tf.constant(1) + tf.constant(2)) == 3
    assert len(tf.contrib.graph_editor.get_tensors(tf.get_default_graph())) == 3
    a = tf.Variable(1)
    b = tf.constant(2)
    assign = tf.assign(a, a + b)
    sess.run(tf.global_variables_initializer())
    assert sess.run(assign) == 3
    a = tf.Variable(1)
    c = a + b
    with tf.control_dependencies([c]):
        assign = tf.assign(a, 5)
    for _ in range(10):
        sess.run(tf.global_variables_initializer())
        assert sess.run([assign, c]) == [5, 3]


def test_conditions() -> None:
    a, b = tf.constant(1), tf.constant(2)
    x = tf.cond(tf.constant(True), lambda: a + b, lambda: a * b)
    sess = tf.Session()
    assert sess.run(x) == 3
    a, b = tf.constant([1, 1]), tf.constant([2, 2])
    p = tf.constant([True, False])
    assert sess.run(tf.where(p, a + b, a * b)).tolist() == [3, 2]


def test_relu_in_python_with_a_registered_gradient() -> None:
    def relu(inputs: Any) -> Any:
        def _relu(x: Any) -> Any:
            return np.maximum(x, 0.0)

        def _relu_grad(x: Any) -> Any:
            return np.float32(x > 0)

        def _relu_grad_op(op: Any, grad: Any) -> Any:
            x = op.inputs[0]
            return grad * tf.py_func(_relu_grad, [x], tf.float32)

        grad_name = "MyReluGrad_" + str(uuid.uuid4())
        tf.RegisterGradient(grad_name)(_relu_grad_op)
        g = tf.get_default_graph()
        with g.gradient_override_map({"PyFunc": grad_name}):
            return tf.py_func(_relu, [inputs], tf.float32)

    x = tf.random_normal([10])
    y = relu(x * x)
    with tf.Session():
        assert tf.test.compute_gradient_error(x, [10], y, [10]) < 0.01


def test_assertions(capfd: Any) -> None:
    a, b = tf.constant([[1.0], [2.0]]), tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="rank"):
        tf.assert_rank(a, 1)
    check = tf.assert_positive(a)
    with tf.control_dependencies([check]):
        c = tf.Print(a, [a, b], "seen: ") + b
    assert tf.Session().run(c).tolist() == [[2.0, 3.0], [3.0, 4.0]]
    assert capfd.readouterr().err == "seen: [[1][2]][1 2]\n"


def entropy(logits: Any, dim: int = -1) -> Any:
    probs = tf.nn.softmax(logits, dim)
    nplogp = probs * (tf.reduce_logsumexp(logits, dim, keep_dims=True) - logits)
    return tf.reduce_sum(nplogp, dim)


def test_checking_gradients() -> None:
    def non_differentiable_entropy(logits: Any) -> Any:
        probs = tf.nn.softmax(logits)
        return tf.nn.softmax_cross_entropy_with_logits(labels=probs, logits=logits)

    w = tf.get_variable("w", shape=[5])
    bad, y = -non_differentiable_entropy(w), -entropy(w)
    assert str(w.get_shape()) == "(5,)" and str(y.get_shape()) == "()"
    train_op = tf.train.AdamOptimizer(0.01).minimize(y)
    with tf.Session() as sess:
        assert tf.test.compute_gradient_error(w, [5], bad, []) > 0.02
        assert tf.test.compute_gradient_error(w, [5], y, []) < 0.001
        sess.run(tf.global_variables_initializer())
        for _ in range(600):
            sess.run(train_op)
        np.testing.assert_allclose(sess.run(tf.nn.softmax(w)), [0.2] * 5, atol=0.01)


def test_numerical_stability() -> None:
    def unstable_softmax(logits: Any) -> Any:
        exp = tf.exp(logits)
        return exp / tf.reduce_sum(exp)

    def softmax(logits: Any) -> Any:
        exp = tf.exp(logits - tf.reduce_max(logits))
        return exp / tf.reduce_sum(exp)

    def softmax_cross_entropy(labels: Any, logits: Any) -> Any:
        scaled = logits - tf.reduce_max(logits)
        return -tf.reduce_sum(labels * (scaled - tf.reduce_logsumexp(scaled)))

    sess = tf.Session()
    np.testing.assert_array_equal(sess.run(unstable_softmax([1000.0, 0.0])), [np.nan, 0.0])
    assert sess.run(softmax([1000.0, 0.0])).tolist() == [1.0, 0.0]
    labels, logits = tf.constant([0.5, 0.5]), tf.constant([1000.0, 0.0])
    assert sess.run(-tf.reduce_sum(labels * tf.log(softmax(logits)))) == np.inf
    xe = softmax_cross_entropy(labels, logits)
    assert sess.run(xe) == 500.0
    assert sess.run(tf.gradients(xe, logits))[0].tolist() == [0.5, -0.5]


def gaussian_kl(q: Any, p: Any = (0.0, 0.0)) -> Any:
    mu1, log_sigma1_sq = q
    mu2, log_sigma2_sq = p
    return tf.reduce_sum(
        0.5 * (
            log_sigma2_sq - log_sigma1_sq + tf.exp(log_sigma1_sq - log_sigma2_sq)
            + tf.square(mu1 - mu2) / tf.exp(log_sigma2_sq) - 1
        ),
        axis=-1,
    )  # fmt: skip


def test_divergence() -> None:
    mu, log_var = tf.constant([1.0, 2.0]), tf.constant([0.5, -0.5])
    expected = 0.5 * np.sum(np.exp([0.5, -0.5]) + np.square([1.0, 2.0]) - 1)
    np.testing.assert_allclose(tf.Session().run(gaussian_kl((mu, log_var))), expected, rtol=1e-6)


def get_shape(tensor: Any) -> Any:
    static_shape = tensor.shape.as_list()
    dynamic_shape = tf.unstack(tf.shape(tensor))
    return [s[1] if s[0] is None else s[0] for s in zip(static_shape, dynamic_shape, strict=True)]


def batch_gather(tensor: Any, indices: Any) -> Any:
    shape = get_shape(tensor)
    flat_first = tf.reshape(tensor, [shape[0] * shape[1], *shape[2:]])
    indices = tf.convert_to_tensor(indices)
    offset_shape = [shape[0]] + [1] * (indices.shape.ndims - 1)
    offset = tf.reshape(tf.range(shape[0]) * shape[1], offset_shape)
    return tf.gather(flat_first, indices + offset)


def rnn_beam_search(
    update_fn: Any, initial_state: Any, sequence_length: int, beam_width: int, begin_token_id: int,
    end_token_id: int, name: str = "rnn",
) -> Any:  # fmt: skip
    batch_size = initial_state.shape.as_list()[0]
    state = tf.tile(tf.expand_dims(initial_state, axis=1), [1, beam_width, 1])
    sel_sum_logprobs = tf.log([[1.0] + [0.0] * (beam_width - 1)])
    ids = tf.tile([[begin_token_id]], [batch_size, beam_width])
    sel_ids = tf.expand_dims(ids, axis=2)
    mask = tf.ones([batch_size, beam_width], dtype=tf.float32)
    for i in range(sequence_length):
        with tf.variable_scope(name, reuse=True if i > 0 else None):
            state, logits = update_fn(state, ids)
            logits = logits - tf.reduce_logsumexp(logits, axis=-1, keep_dims=True)
            sum_logprobs = tf.expand_dims(sel_sum_logprobs, axis=2) + (
                logits * tf.expand_dims(mask, axis=2)
            )
            num_classes = logits.shape.as_list()[-1]
            sel_sum_logprobs, indices = tf.nn.top_k(
                tf.reshape(sum_logprobs, [batch_size, num_classes * beam_width]), k=beam_width
            )
            ids = indices % num_classes
            beam_ids = indices // num_classes
            state = batch_gather(state, beam_ids)
            sel_ids = tf.concat(
                [batch_gather(sel_ids, beam_ids), tf.expand_dims(ids, axis=2)], axis=2
            )
            mask = batch_gather(mask, beam_ids) * tf.to_float(tf.not_equal(ids, end_token_id))
    return sel_ids, sel_sum_logprobs


def test_beam_search() -> None:
    classes, beams = 4, 3
    table = np.log(np.random.RandomState(1).dirichlet(np.ones(classes), size=classes))

    def update(state: Any, ids: Any) -> Any:
        scores = tf.get_variable("scores", initializer=table.astype(np.float32))
        return state, tf.gather(scores, ids)

    ids, logprobs = rnn_beam_search(update, tf.zeros([2, 5]), 3, beams, 0, classes)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found, scores = sess.run([ids, logprobs])
    paths = {
        (a, b, c): table[0, a] + table[a, b] + table[b, c]
        for a in range(classes) for b in range(classes) for c in range(classes)
    }  # fmt: skip
    # A beam that is wide enough finds the best path; its probability is what was summed.
    for row in range(2):
        best = tuple(found[row, 0, 1:])
        np.testing.assert_allclose(scores[row, 0], paths[best], rtol=1e-5)


# -- 003: TensorFlow's basics --------------------------------------------------------------------


def test_variables_are_printed_and_added() -> None:
    v1 = tf.Variable(tf.random_uniform([3]))
    v2 = tf.Variable(tf.random_uniform([3]))
    sum2 = tf.add(v1, v2)
    assert str(sum2) == 'Tensor("Add:0", shape=(3,), dtype=float32)'
    assert "tf.Variable 'Variable_1:0' shape=(3,)" in str(v2)
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as sess:
        sess.run(tf.initialize_all_variables())
        a, b, c = sess.run(v1), sess.run(v2), sess.run(sum2)
        np.testing.assert_allclose(a + b, c)
    with tf.device("/CPU:0"):
        both = tf.constant([1.0, 2.0], shape=[2], name="v1") + tf.constant([1.0, 2.0])
    assert both.device == "/device:CPU:0" and tf.Session().run(both).tolist() == [2.0, 4.0]


def test_linear_regression_beside_scikit_learn() -> None:
    random = np.random.RandomState(0)
    x = random.rand(200, 4).astype(np.float32)
    y = (x @ [[1.0], [-2.0], [3.0], [0.5]] + 0.7 + 0.01 * random.randn(200, 1)).astype(np.float32)
    x_train, x_test, y_train, y_test = sklearn.model_selection.train_test_split(
        x, y, test_size=0.2, random_state=0
    )
    data = tf.placeholder(tf.float32, [None, 4])
    real_label = tf.placeholder(tf.float32, [None, 1])
    weight = tf.Variable(tf.random_normal([4, 1]), dtype=tf.float32)
    bias = tf.Variable(tf.ones([1]), dtype=tf.float32)
    y_label = tf.add(tf.matmul(data, weight), bias)
    loss = tf.reduce_mean(tf.square(real_label - y_label))
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(1000):
            sess.run(train, feed_dict={data: x_train, real_label: y_train})
        forecast = sess.run(y_label, feed_dict={data: x_test})
        found = sess.run(weight)
    known = sklearn.linear_model.LinearRegression().fit(x_train, y_train)
    np.testing.assert_allclose(found.T, known.coef_, atol=0.01)
    np.testing.assert_allclose(forecast, known.predict(x_test), atol=0.01)


def test_saver_and_frozen_graph(tmp_path: Any) -> None:
    save_file = str(tmp_path / "model")
    with tf.Graph().as_default():
        x = tf.Variable(tf.random_uniform([3]))
        y = tf.Variable(tf.random_uniform([3]))
        z = tf.add(x, y, name="op_to_store")
        saver = tf.train.Saver(max_to_keep=4, keep_checkpoint_every_n_hours=2)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            expected = sess.run(z)
            assert saver.save(sess, save_file, global_step=1000) == f"{save_file}-1000"
            frozen = tf.graph_util.convert_variables_to_constants(
                sess, sess.graph_def, ["op_to_store"]
            )
            with tf.gfile.FastGFile(f"{save_file}.pb", mode="wb") as f:
                f.write(frozen.SerializeToString())
    with tf.Graph().as_default():
        x = tf.Variable(tf.random_uniform([3]))
        y = tf.Variable(tf.random_uniform([3]))
        z = tf.add(x, y)
        with tf.Session() as sess:
            tf.train.Saver().restore(sess, tf.train.latest_checkpoint(str(tmp_path)))
            np.testing.assert_array_equal(sess.run(z), expected)
    with tf.Graph().as_default(), tf.Session() as sess:
        saver = tf.train.import_meta_graph(f"{save_file}-1000.meta")
        saver.restore(sess, f"{save_file}-1000")
        z = sess.graph.get_tensor_by_name("op_to_store:0")
        np.testing.assert_array_equal(sess.run(z), expected)
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.gfile.FastGFile(f"{save_file}.pb", "rb") as f:
            graph_def = tf.GraphDef()
            graph_def.ParseFromString(f.read())
        tf.import_graph_def(graph_def, name="")
        sess.run(tf.global_variables_initializer())
        z = sess.graph.get_tensor_by_name("op_to_store:0")
        np.testing.assert_array_equal(sess.run(z), expected)
        assert not any(op.type == "VariableV2" for op in sess.graph.get_operations())


def test_placeholder_of_the_eager_article() -> None:
    x = tf.placeholder(tf.float32, shape=[1, 1])
    m = tf.matmul(x, x)
    with tf.Session() as sess:
        assert sess.run(m, feed_dict={x: [[2.0]]}) == [[4.0]]
    dataset = tf.data.Dataset.range(10)
    next_element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        for i in range(10):
            assert sess.run(next_element) == i
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(next_element)
