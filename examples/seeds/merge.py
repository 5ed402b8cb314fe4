"""Broadcasting: features of different shapes are merged without tiling, and where it misleads."""

import functools

import numpy as np

import treadle.compat.v1 as tf


def merge(tensors, units, activation=tf.nn.relu, name=None):
    """A dense layer over the concatenation of tensors that broadcast against one another.

    The sum of the tensors' own projections is the projection of their concatenation: nothing is
    tiled.
    """
    with tf.variable_scope(name, default_name="merge"):
        parts = [
            tf.layers.dense(tensor, units, name=f"proj_{i}") for i, tensor in enumerate(tensors)
        ]
        total = functools.reduce(tf.add, parts)
        return activation(total) if activation else total


def main():
    a, b = tf.random_uniform([5, 3, 5]), tf.random_uniform([5, 1, 6])
    tiled = tf.concat([a, tf.tile(b, [1, 3, 1])], axis=2)
    merged = merge([a, b], 10, name="both")
    with tf.variable_scope("both", reuse=True):
        kernels = [tf.get_variable(f"proj_{i}/kernel") for i in range(2)]
    by_hand = tf.nn.relu(tf.tensordot(tiled, tf.concat(kernels, axis=0), 1))
    wide = merge([tf.zeros([4, 1, 2]), tf.zeros([1, 5, 3])], 7)
    assert wide.shape.as_list() == [4, 5, 7]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, expected = session.run([merged, by_hand])  # biases are zeros at first
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

        # A column and a row give a matrix: the sum is of four numbers.
        column, row = tf.constant([[1.0], [2.0]]), tf.constant([1.0, 2.0])
        assert session.run(tf.reduce_sum(column + row)) == 12.0
        assert session.run(tf.reduce_sum(column + row, axis=0)).tolist() == [5.0, 7.0]
        b = tf.constant([[1.0], [2.0]])
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        np.testing.assert_array_equal(*session.run([a + b, a + tf.tile(b, [1, 2])]))
    print(f"merged {found.shape}, {len(tf.global_variables())} variables")


if __name__ == "__main__":
    main()
