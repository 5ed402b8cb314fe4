"""Graphs and sessions: what a name stands for, what a run computes, and where."""

import contextlib
import io

import numpy as np

import treadle.compat.v1 as tf


def main():
    # A call is a node of the graph: it has no value before a session runs it.
    a = tf.constant(1.0, name="const1")
    b = tf.constant(2.0, name="const2")
    total = tf.add(a, b)
    assert str(total) == 'Tensor("Add:0", shape=(), dtype=float32)'
    with tf.Session() as session:
        assert session.run(total) == total.eval() == 3.0

    # A session that is closed by hand.
    session = tf.Session()
    product = tf.matmul(tf.random_normal([10, 10]), tf.random_normal([10, 10]))
    assert session.run(product).shape == (10, 10)
    session.close()

    # Random numbers are drawn by each run; an array of NumPy stays as it is.
    drawn = tf.random_normal([1], name="random")
    with tf.Session() as session:
        assert len({float(session.run(drawn)[0]) for _ in range(5)}) == 5
        x, y = tf.Variable(tf.random_uniform([3])), tf.Variable(tf.random_uniform([3]))
        both = x + y
        session.run(tf.initialize_all_variables())
        np.testing.assert_allclose(session.run(x) + session.run(y), session.run(both))

    # Devices have names; a name that is not here means the processor.
    for name in ("/cpu:0", "/CPU:0", "/gpu:7"):
        with tf.device(name):
            v1 = tf.constant([1.0, 2.0, 3.0], shape=[3], name="v1")
            v2 = tf.constant([1.0, 2.0, 3.0], shape=[3], name="v2")
            v12 = v1 + v2
        config = tf.ConfigProto(log_device_placement=True, allow_soft_placement=True)
        config.gpu_options.per_process_gpu_memory_fraction = 0.4
        with tf.Session(config=config) as session:
            assert session.run(v12).tolist() == [2.0, 4.0, 6.0]

    # Placeholders are fed; where one is not, the error names it.
    x = tf.placeholder(tf.float32, [None, 1], name="x")
    square = tf.matmul(x, x)
    with tf.Session() as session:
        assert session.run(square, feed_dict={x: [[2.0]]}) == [[4.0]]
        try:
            session.run(square)
        except tf.errors.InvalidArgumentError as error:
            assert "placeholder tensor 'x'" in str(error)
        else:
            raise AssertionError("the placeholder was not fed")

    # Two graphs know nothing of each other.
    with tf.Graph().as_default() as other:
        tf.constant(1, name="only_here")
    assert [op.name for op in other.get_operations()] == ["only_here"]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        print(other.get_tensor_by_name("only_here:0"))
    print(shown.getvalue().strip())
    assert shown.getvalue() == 'Tensor("only_here:0", shape=(), dtype=int32)\n'


if __name__ == "__main__":
    main()
