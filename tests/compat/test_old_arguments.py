"""Functions of TensorFlow 1 that take other arguments than TensorFlow 2's, or mean others."""

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf


def run(*tensors):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def test_the_last_element_of_a_constant_is_repeated():
    (found,) = run(tf.constant([1, 2, 3], shape=[2, 3]))
    assert found.tolist() == [[1, 2, 3], [3, 3, 3]]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tf.constant([1, 2, 3], shape=[2, 3], verify_shape=True)
    with pytest.raises(ValueError):
        tf.constant([1, 2, 3], shape=[2])


def test_gradients_of_convolutions_by_name():
    rng = np.random.default_rng(0)
    x, w = (tf.constant(rng.random(s), tf.float32) for s in ([1, 4, 4, 3], [2, 2, 3, 5]))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    dy = tf.ones_like(y)
    wanted = tf.gradients(y, [x, w])
    by_name = [
        tf.nn.conv2d_backprop_input([1, 4, 4, 3], w, dy, [1, 1, 1, 1], "SAME"),
        tf.nn.conv2d_backprop_filter(x, [2, 2, 3, 5], dy, [1, 1, 1, 1], "SAME"),
    ]
    a, b, c, d = run(*wanted, *by_name)
    np.testing.assert_allclose(c, a, rtol=1e-6)
    np.testing.assert_allclose(d, b, rtol=1e-6)


def test_old_names_and_orders_of_arguments():
    image = tf.ones([1, 2, 2, 1])
    found = run(
        tf.math.in_top_k([[0.1, 0.9], [0.8, 0.2]], [1, 1], 1),
        tf.nn.space_to_batch(image, [[0, 0], [0, 0]], block_size=2),
        tf.nn.convolution(image, filter=tf.ones([2, 2, 1, 1]), padding="VALID"),
    )
    assert found[0].tolist() == [True, False]
    assert found[1].shape == (4, 1, 1, 1)
    assert found[2].reshape(-1).tolist() == [4.0]


def test_rows_of_parts_of_a_variable():
    variable = tf.Variable(np.zeros((2, 3), np.float32))
    with tf.Session() as session:
        session.run(variable.initializer)
        changed = tf.batch_scatter_update(variable, [[0, 1], [2, 0]], [[1.0, 2.0], [3.0, 4.0]])
        assert session.run(changed).tolist() == [[1, 2, 0], [4, 0, 3]]


@pytest.mark.parametrize("known", [True, False])
def test_weights_that_do_not_broadcast_are_refused(known):
    weights = tf.ones([2]) if known else tf.placeholder_with_default(tf.ones([2]), [None])
    with pytest.raises(td.errors.InvalidArgumentError, match="weights can not be broadcast"):
        run(tf.losses.mean_squared_error(tf.zeros([2, 3]), tf.ones([2, 3]), weights))


def test_weights_of_sparse_labels_lose_their_last_axis():
    logits = tf.constant([[10.0, 0.0], [0.0, 10.0]])
    weights = tf.constant([[1.0], [0.0]])
    loss = tf.losses.sparse_softmax_cross_entropy(tf.constant([1, 1]), logits, weights)
    np.testing.assert_allclose(run(loss), [10.0], rtol=1e-4)


def test_functions_of_tensorflow_2_with_own_gradients_take_tensors_of_graphs():
    @td.custom_gradient
    def product(x, y):
        return x * y, lambda dy: (dy * 10.0, dy * 20.0)

    @td.recompute_grad
    def square(x, y):
        return x * y

    x, y = tf.constant(3.0), tf.constant(5.0)
    found = run(*tf.gradients(product(x, y), [x, y]), *tf.gradients(square(x, x), [x]))
    assert found == [10.0, 20.0, 6.0]


def test_nothing_runs_at_once_where_a_graph_is_the_default():
    assert not td.executing_eagerly()


def test_old_names_of_windows():
    image = tf.constant(np.arange(36, dtype=np.float32).reshape(1, 6, 6, 1) % 7)
    window, ones = tf.constant(np.arange(4, dtype=np.float32).reshape(2, 2, 1)), [1, 1, 1, 1]
    found = run(
        tf.nn.pool(image, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]),
        tf.nn.pool(image, [2, 2], "MAX", "VALID", [1, 1], [2, 2]),
        tf.nn.dilation2d(image, filter=window, strides=ones, rates=[1, 2, 2, 1], padding="VALID"),
        tf.nn.erosion2d(image, window, ones, [1, 2, 2, 1], "VALID"),
    )
    x, w = (np.asarray(a).reshape(a.shape[1:3]) for a in run(image, window[None]))
    taps = [(w[i, j], x[2 * i : 2 * i + 4, 2 * j : 2 * j + 4]) for i in (0, 1) for j in (0, 1)]
    np.testing.assert_array_equal(found[0].reshape(4, 4), np.max([t for _, t in taps], axis=0))
    steps = np.max([x[i : i + 5 : 2, j : j + 5 : 2] for i in (0, 1) for j in (0, 1)], axis=0)
    np.testing.assert_array_equal(found[1].reshape(3, 3), steps)
    np.testing.assert_array_equal(found[2].reshape(4, 4), np.max([t + a for a, t in taps], axis=0))
    turned = [t - a for (a, _), (_, t) in zip(reversed(taps), taps, strict=True)]
    np.testing.assert_array_equal(found[3].reshape(4, 4), np.min(turned, axis=0))


def test_fused_batch_norm_of_halves_volumes_and_running_moments():
    rng = np.random.default_rng(0)
    scale, offset, mean = rng.normal(size=(3, 2)).astype(np.float32)
    variance = rng.random(2).astype(np.float32) + 1
    for shape, kind, first in (
        ((2, 3, 3, 2), np.float16, False), ((2, 2, 3, 2, 2), np.float32, False),
        ((2, 2, 3, 2, 3), np.float32, True),
    ):  # fmt: skip
        x = rng.normal(size=shape).astype(kind)
        last = np.moveaxis(x, 1, -1) if first else x
        axes = tuple(range(x.ndim - 1))
        own, count = (last.astype("f").mean(axes), last.astype("f").var(axes)), last.size // 2
        layout = {4: "NHWC", 5: "NCDHW" if first else "NDHWC"}[x.ndim]
        for training, factor in ((True, 1.0), (True, 0.25), (False, 1.0)):
            made = tf.nn.fused_batch_norm(
                tf.constant(x), scale, offset, mean, variance, data_format=layout,
                is_training=training, exponential_avg_factor=factor,
            )  # fmt: skip
            y, *moments = run(*made)
            m, v = own if training else (mean, variance)
            expected = (last - m) / np.sqrt(v + 0.001) * scale + offset
            expected = np.moveaxis(expected, -1, 1) if first else expected
            assert y.dtype == kind and moments[0].dtype == np.float32
            tolerance = 3e-3 if kind is np.float16 else 1e-5
            np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
            told = (own[0], own[1] * count / (count - 1)) if training else (mean, variance)
            for found, new, old in zip(moments, told, (mean, variance), strict=True):
                np.testing.assert_allclose(found, old + factor * (new - old), rtol=1e-4)
    with pytest.raises(ValueError, match="must be given"):
        tf.nn.fused_batch_norm(x, scale, offset, is_training=False)


def test_old_names_and_places_of_arguments():
    words, ones = [["a", "b"], ["c", "d"]], tf.ones([2, 3])
    rows = tf.constant([[1, 2, 3], [4, 5, 6]])
    joined = [
        tf.reduce_join(words, 0, keep_dims=True), tf.reduce_join(words, reduction_indices=1),
        tf.strings.reduce_join(words, axis=1, keepdims=True, separator="-"),
    ]  # fmt: skip
    found = run(
        *joined, tf.strings.length(["ab", "c"], "name"), tf.substr(["hello"], 1, 2, "name"),
        tf.reverse_sequence(rows, [1, 2], seq_dim=1, batch_dim=0),
        tf.linalg.norm(ones, axis=0, keep_dims=True), tf.math.reduce_sum(rows, 1, keep_dims=True),
        *tf.nn.weighted_moments(ones, [0], ones, "name", keep_dims=True),
    )  # fmt: skip
    lists = [x.tolist() for x in found[:3]]
    assert lists == [[[b"ac", b"bd"]], [b"ab", b"cd"], [[b"a-b"], [b"c-d"]]]
    assert found[3].tolist() == [2, 1] and found[4].tolist() == [b"el"]
    assert found[5].tolist() == [[1, 2, 3], [5, 4, 6]]
    np.testing.assert_allclose(found[6], np.full((1, 3), np.sqrt(2)), rtol=1e-6)
    assert found[7].tolist() == [[6], [15]]
    assert found[8].tolist() == [[1.0, 1.0, 1.0]] and found[9].shape == (1, 3)
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.reverse_sequence(rows, [1, 2], 1, 0, seq_dim=1)


def test_arguments_by_position_stand_as_in_tensorflow_1():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    image = tf.reshape(x, [1, 2, 2, 1])
    found = run(
        tf.pad(x, [[0, 1], [0, 0]], "CONSTANT", "padded", 7.0),
        tf.gather(x, [0], None, "columns", 1),
        tf.gather_nd(x, [[1, 0]], "element"),
        tf.boolean_mask(x, [True, False], "rows", 1),
        tf.confusion_matrix([0, 1], [1, 1], 2, tf.float32, "table", [2.0, 3.0]),
        tf.nn.crelu(x, "both", 0),
        tf.space_to_depth(image, 2, "deep"),
        tf.sparse_segment_sum(x, [0, 1], [0, 0], "sum"),
        tf.extract_image_patches(
            image, ksizes=[1, 1, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID"
        ),
        tf.string_to_number(string_tensor=["3"]),
        tf.nn.depthwise_conv2d_native(
            image, tf.ones([1, 2, 1, 1]), [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1], "conv"
        ),
        tf.nn.sigmoid_cross_entropy_with_logits(tf.ones([1]), tf.zeros([1])),
        tf.strings.split(["a b", "c"], " ").values,
        tf.image.crop_and_resize(image, [[0.0, 0.0, 1.0, 1.0]], box_ind=[0], crop_size=[1, 1]),
    )
    wanted = [
        [[1, 2], [3, 4], [7, 7]], [[1], [3]], [3], [[1], [3]], [[0, 2], [0, 3]],
        [[1, 2], [3, 4], [0, 0], [0, 0]], [[[[1, 2, 3, 4]]]], [[4, 6]], [[[[1, 2]], [[3, 4]]]],
        [3], [[[[3]], [[7]]]], [np.log(2.0)], [b"a", b"b", b"c"], [[[[2.5]]]],
    ]  # fmt: skip
    for value, right in zip(found, wanted, strict=True):
        if value.dtype == object:
            assert value.tolist() == right
        else:
            np.testing.assert_allclose(value, right, rtol=1e-6)
    assert tf.pad(x, [[0, 0], [0, 0]], "CONSTANT", "again").op.name == "again"
    checks = [tf.assert_rank(x, 2, [x], 3, "rank"), tf.assert_equal(x, x, [x], 3, "same")]
    with tf.Session() as session:
        session.run(checks)
    with pytest.raises(TypeError, match="pad got multiple values for 'mode'"):
        tf.pad(x, [[0, 0], [0, 0]], "CONSTANT", mode="CONSTANT")


def test_numpys_numbers_take_the_dtype_of_the_tensor():
    x = tf.placeholder(tf.float32, [3])
    number, row = np.sqrt(2.0), np.arange(3.0)
    for y in (number * x, x * number, number - x, row * x, row + x, number / x):
        assert y.dtype == tf.float32
    with tf.Session() as session:
        found = session.run([number * x, row - x], {x: [1.0, 2.0, 3.0]})
    np.testing.assert_allclose(found[0], number * np.array([1.0, 2.0, 3.0]), rtol=1e-6)
    np.testing.assert_allclose(found[1], [-1.0, -1.0, -1.0])


def test_channels_first_are_flattened_behind_the_positions():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    (found,) = run(tf.layers.flatten(tf.constant(x), data_format="channels_first"))
    assert found.tolist() == x.transpose(0, 2, 1).reshape(2, 12).tolist()


def test_the_unbiased_variance_is_kept_where_the_fused_kernel_is_taken():
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 3)).astype(np.float32)
    for options, axes, freedom in (
        ({}, (0, 1, 2), 1), ({"axis": 1}, (0, 2, 3), 1), ({"axis": 2}, (0, 1, 3), 0),
        ({"fused": False}, (0, 1, 2), 0),
    ):  # fmt: skip
        with tf.Graph().as_default(), tf.Session() as session:
            tf.layers.batch_normalization(
                tf.constant(x), momentum=0.5, training=True, name="norm", **options
            )
            session.run(tf.global_variables_initializer())
            session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
            kept = session.run("norm/moving_variance:0")
        np.testing.assert_allclose(kept, 0.5 + 0.5 * x.var(axes, ddof=freedom), rtol=1e-4)


def test_states_of_cells_side_by_side():
    cell = tf.nn.rnn_cell.MultiRNNCell(
        [tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.BasicRNNCell(2)], state_is_tuple=False
    )
    assert cell.state_size == 5
    output, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 4, 1]), dtype=tf.float32)
    output, state = run(output, state)
    assert state.shape == (2, 5)
    np.testing.assert_allclose(state[:, 3:], output[:, -1])
    with pytest.raises(ValueError, match="state_is_tuple is not set"):
        tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(3)], state_is_tuple=False)


def test_what_is_dropped_of_states():
    cells = tf.nn.rnn_cell

    class Ones(cells.RNNCell):
        state_size = output_size = 6

        def call(self, inputs, state):
            return tf.ones_like(state), tf.ones_like(state)

    def last(cell):
        with tf.variable_scope(None, "cell"):
            output, state = tf.nn.dynamic_rnn(cell, tf.ones([3, 5, 2]), dtype=tf.float32)
        return run(output, state)

    always = cells.DropoutWrapper(
        Ones(), output_keep_prob=0.5, state_keep_prob=0.5, variational_recurrent=True,
        dtype=tf.float32, seed=1,
    )  # fmt: skip
    output, state = last(always)
    assert np.array_equal(output, np.broadcast_to(output[:1, :1], output.shape))
    assert set(np.unique(output)) <= {0.0, 2.0} and set(np.unique(state)) <= {0.0, 2.0}
    each = last(cells.DropoutWrapper(Ones(), output_keep_prob=0.5, seed=1))[0]
    assert not np.array_equal(each, np.broadcast_to(each[:1, :1], each.shape))
    for options in ({}, {"dropout_state_filter_visitor": lambda s: False}):
        kept = cells.DropoutWrapper(cells.LSTMCell(8), state_keep_prob=1e-4, **options)
        state = last(kept)[1]
        assert (state.c != 0.0).all() and (state.h != 0.0).all() == bool(options)
    with pytest.raises(ValueError, match="dtype must be provided"):
        cells.DropoutWrapper(Ones(), variational_recurrent=True)
    with pytest.raises(ValueError, match="input_size must be provided"):
        cells.DropoutWrapper(
            Ones(), input_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
        )


def test_arguments_by_position_in_the_order_of_tensorflow_1():
    """The values and names are TensorFlow's."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    moved, size = tf.transpose(x, [2, 0, 1], "moved"), tf.size(x, "size", tf.int64)
    with tf.op_scope([x], "scope"):
        inner = tf.identity(x, "inner")
    with tf.variable_op_scope([x], None, "variables"):
        held = tf.get_variable("held", [])
    assert [t.name for t in (moved, size, tf.shape(x, "dims"), inner, held)] == [
        "moved:0", "size:0", "dims:0", "scope/inner:0", "variables/held:0",
    ]  # fmt: skip
    along = tf.math.softmax(x, None, "along", 1)
    places = tf.arg_max(x, 1, tf.int32, "places")
    draws = tf.random.stateless_multinomial(np.ones((2, 3), "f"), 5, [1, 2], tf.int32, "draws")
    glimpse = tf.image.extract_glimpse(x[None, ..., None][0], [1, 1], [[0.0, 0.0]] * 2, True, True,
                                       False, "glimpse")  # fmt: skip
    found = run(moved, size, along, places, draws, glimpse, tf.div(x, 2.0, "halves"))
    assert found[0].shape == (4, 2, 3) and found[1] == 24 and found[1].dtype == np.int64
    np.testing.assert_allclose(found[2].sum(1), np.ones((2, 4)), rtol=1e-6)
    assert found[3].tolist() == [[2] * 4] * 2 and found[3].dtype == np.int32
    assert found[4].shape == (2, 5) and found[4].dtype == np.int32
    np.testing.assert_array_equal(found[5].ravel(), [5, 17])
    np.testing.assert_array_equal(found[6], x / 2)


def test_images_that_are_fitted_are_sampled_as_in_tensorflow_1():
    images = np.arange(70, dtype=np.float32).reshape(2, 5, 7, 1)
    fitted = [tf.image.resize_image_with_pad(images, 8, 9, method) for method in (0, 1, 2)]
    corners = tf.image.resize_image_with_pad(images, 8, 9, 0, True)
    single = tf.image.resize_image_with_pad(images[0], 3, 9)
    found = run(*fitted, corners, single)
    wanted = [3777.33350, 3438.0, 3788.47070, 3726.0, 171.5]  # TensorFlow's
    np.testing.assert_allclose([image.sum() for image in found], wanted, rtol=1e-6)
    np.testing.assert_allclose(found[0].ravel()[:4], [0.0, 0.7778, 1.5556, 2.3333], rtol=1e-4)
    assert found[4].shape == (3, 9, 1)
    with pytest.raises(ValueError, match="not implemented"):
        tf.image.resize_image_with_pad(images, 8, 9, 7)


def test_times_of_hooks_by_position():
    timer = tf.train.SecondOrStepTimer(None, 3)
    assert timer.should_trigger_for_step(0) and timer.last_triggered_step() is None
    assert timer.update_last_triggered_step(0) == (None, None)
    assert [timer.should_trigger_for_step(step) for step in (0, 2, 3)] == [False, False, True]
    seconds, steps = timer.update_last_triggered_step(3)
    assert steps == 3 and seconds >= 0
    timer.reset()
    assert timer.should_trigger_for_step(3)
