"""Static and dynamic shapes: what a graph knows of a tensor, and what only a run knows."""

import numpy as np

import treadle.compat.v1 as tf


def sizes(tensor):
    """The size of each axis: a number where the graph knows it, else a tensor."""
    known = tensor.shape.as_list()
    return [n if n is not None else tf.shape(tensor)[axis] for axis, n in enumerate(known)]


def product(numbers):
    """The product of sizes, a number where all of them are."""
    if all(isinstance(n, int) for n in numbers):
        return int(np.prod(numbers))
    return tf.reduce_prod(tf.stack(numbers))


def merge_axes(tensor, groups):
    """Join neighbouring axes: `groups` has an axis, or a list of those that become one."""
    given = sizes(tensor)
    return tf.reshape(
        tensor, [given[g] if isinstance(g, int) else product([given[a] for a in g]) for g in groups]
    )


def main():
    a = tf.placeholder(tf.float32, [None, 128])
    assert a.shape.as_list() == [None, 128]
    with tf.Session() as session:
        assert session.run(tf.shape(a), {a: np.zeros([7, 128])}).tolist() == [7, 128]
    a.set_shape([32, 128])
    assert a.get_shape().as_list() == [32, 128]
    a.set_shape([None, 128])  # what is known stays known
    assert a.shape.as_list() == [32, 128]
    assert tf.reshape(a, [32, 64, 2]).shape == (32, 64, 2)

    b = tf.placeholder(tf.float32, [None, 10, 32])
    rows, columns = merge_axes(b, [0, [1, 2]]), merge_axes(b, [[0, 1], 2])
    assert rows.shape.as_list() == [None, 320] and columns.shape.as_list() == [None, 32]
    whole = merge_axes(tf.zeros([2, 3, 4]), [[0, 1, 2]])
    assert whole.shape.as_list() == [24]
    given = np.arange(5 * 320, dtype=np.float32).reshape(5, 10, 32)
    with tf.Session() as session:
        found = session.run([rows, columns], {b: given})
    np.testing.assert_array_equal(found[0], given.reshape(5, 320))
    np.testing.assert_array_equal(found[1], given.reshape(50, 32))
    print("axes are joined for known and unknown sizes")


if __name__ == "__main__":
    main()
