"""Operators of tensors, and three ways to add up rows: by slices, unstacked, and at once."""

import numpy as np

import treadle.compat.v1 as tf

ROWS = 100


def main():
    rows = tf.random_uniform([ROWS, 10])
    by_slices = by_parts = tf.zeros([10])
    for i in range(ROWS):
        by_slices += rows[i]
    for row in tf.unstack(rows):
        by_parts += row
    with tf.Session() as session:
        sums = session.run([by_slices, by_parts, tf.reduce_sum(rows, axis=0)])
        np.testing.assert_allclose(sums[0], sums[2], rtol=1e-5)
        np.testing.assert_allclose(sums[1], sums[2], rtol=1e-5)
        np.testing.assert_array_equal(*session.run([rows[2:5], rows[2:5]]))

        x, y = tf.constant([7, -7]), tf.constant([2, 2])
        p, q = tf.constant([True, False]), tf.constant([True, True])
        pairs = [
            (-x, tf.negative(x)), (x + y, tf.add(x, y)), (x - y, tf.subtract(x, y)),
            (x * y, tf.mul(x, y)), (x // y, tf.floordiv(x, y)), (x % y, tf.mod(x, y)),
            (x ** y, tf.pow(x, y)), (x > y, tf.greater(x, y)), (x >= y, tf.greater_equal(x, y)),
            (x < y, tf.less(x, y)), (x <= y, tf.less_equal(x, y)), (abs(x), tf.abs(x)),
            (p & q, tf.logical_and(p, q)), (p | q, tf.logical_or(p, q)),
            (p ^ q, tf.logical_xor(p, q)), (~p, tf.logical_not(p)),
            (x[:1], tf.slice(x, [0], [1])), (tf.eye(2) @ tf.ones([2, 2]), tf.ones([2, 2])),
        ]  # fmt: skip
        for operator, function in session.run(pairs):
            np.testing.assert_array_equal(operator, function)
        # Dividing integers gives floats; tf.div rounds down, as Python 2 did.
        assert session.run(x / y).tolist() == [3.5, -3.5]
        assert session.run(tf.div(x, y)).tolist() == [3, -4]
        assert session.run([tf.equal(x, y), tf.not_equal(x, y)])[1].all()
    try:
        if x > y:
            pass
    except TypeError as error:
        print(str(error).splitlines()[0])
    else:
        raise AssertionError("a tensor of a graph is no bool of Python")


if __name__ == "__main__":
    main()
