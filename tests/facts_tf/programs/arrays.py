"""Sequences, partitions, uniques, blocks, shapes and small numeric functions."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.helpers import both
from tests.facts_tf.registry import outcome, program, raised

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def slope(tf, fn, *args):
    operands = [tf.constant(a, tf.float32) for a in args]
    with tf.GradientTape() as tape:
        tape.watch(operands)
        value = fn(*operands)
    return value, tape.gradient(value, operands)


@program
def sequence_mask(tf):
    return (
        both(tf, lambda n: tf.sequence_mask(n), np.int32([1, 3, 2])),
        both(tf, lambda n: tf.sequence_mask(n, 5), np.int32([[1, 3], [0, 2]])),
        both(tf, lambda n, m: tf.sequence_mask(n, m, tf.float32), np.int32([1, 3]), np.int32(2)),
        tf.sequence_mask(2, 4), tf.sequence_mask([], 2).shape.as_list(),
        raised(tf.sequence_mask, [1], [2]),
    )  # fmt: skip


@program
def reverse_sequence(tf):
    def rows(x, n):
        return tf.reverse_sequence(x, n, seq_axis=1)

    def columns(x, n):
        return tf.reverse_sequence(x, n, seq_axis=0, batch_axis=2)

    return (
        both(tf, rows, X, np.int32([2, 3])), both(tf, columns, X, np.int64([0, 1, 2, 2])),
        both(tf, rows, X, np.int32([4, 1]))[0], both(tf, rows, X, np.int32([-1, 1]))[0],
        slope(tf, lambda x: rows(x, [1, 3]) * X, X),
        raised(tf.reverse_sequence, X, [1, 1]),
    )  # fmt: skip


@program
def dynamic_partition(tf):
    def parts(x, p):
        return tf.dynamic_partition(x, p, 3)

    return (
        both(tf, parts, X[0], np.int32([2, 0, 2])),
        both(tf, parts, X, np.int32([[0, 0, 1], [2, 1, 1]])),
        both(tf, parts, X[0], np.int32([2, 0, 3])), both(tf, parts, X[0], np.int32([-1, 0, 1])),
        slope(tf, lambda x: parts(x, [1, 0, 1])[1] ** 2, X[0]),
    )  # fmt: skip


@program
def dynamic_stitch(tf):
    def joined(i, j, x, y):
        return tf.dynamic_stitch([i, j], [x, y])

    i, j = np.int32([0, 3]), np.int32([[1], [2]])
    return (
        both(tf, joined, i, j, X[0, :2], X[1, :2].reshape(2, 1, 4)),
        tf.dynamic_stitch([[0, 1, 1], [0]], [[1.0, 2.0, 3.0], [4.0]]),
        raised(tf.dynamic_stitch, [[0, 1]], [[1.0]]),
        slope(tf, lambda x: tf.dynamic_stitch([[1, 0]], [x]) * X[0, :2], X[0, :2]),
    )


@program
def unique(tf):
    return (
        both(tf, tf.unique, np.int32([3, 1, 3, 7, 1])), both(tf, tf.unique, np.float32([])),
        both(tf, lambda x: tf.unique(x, tf.int64), np.float32([0.5, 0.25, 0.5])),
        both(tf, tf.unique_with_counts, np.int64([3, 1, 3, 7, 1])),
        tf.unique([True, False, True]), raised(tf.unique, [[1, 2]]),
        tf.unique(tf.constant([np.nan, 1.0, np.nan])),
    )  # fmt: skip


@program
def unravel_index(tf):
    return (
        both(tf, tf.unravel_index, np.int32([2, 5, 7]), np.int32([3, 3])),
        both(tf, tf.unravel_index, np.int64(22), np.int64([2, 3, 4])),
        raised(tf.unravel_index, [9], [3, 3]),
    )


@program
def invert_permutation(tf):
    fn = tf.math.invert_permutation
    return (
        both(tf, fn, np.int32([3, 4, 0, 2, 1])), both(tf, fn, np.int64([])),
        both(tf, fn, np.int32([0, 0])), both(tf, fn, np.int32([0, 2])),
    )  # fmt: skip


@program
def batches_of_blocks(tf):
    x = np.arange(32, dtype=np.float32).reshape(2, 4, 4, 1)
    spread = tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])
    padded = tf.space_to_batch(x, [3, 2], [[1, 1], [2, 0]])
    return (
        spread, padded, tf.batch_to_space(spread, [2, 2], [[0, 0], [0, 0]]),
        tf.batch_to_space(padded, [3, 2], [[1, 1], [2, 0]]),
        tf.space_to_batch(X, [3], [[0, 0]]), tf.batch_to_space(X, [2], [[1, 0]]),
        raised(tf.space_to_batch, x, [3, 2], [[0, 0], [0, 0]]),
        raised(tf.batch_to_space, x, [3, 1], [[0, 0], [0, 0]]),
        tf.required_space_to_batch_paddings([5, 6], [2, 3]),
        tf.required_space_to_batch_paddings([5, 6], [2, 4], [[1, 1], [0, 1]]),
    )  # fmt: skip


@program
def depths(tf):
    x = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4)
    deep = tf.nn.space_to_depth(x, 2)
    return (
        deep, tf.nn.depth_to_space(deep, 2), tf.nn.depth_to_space(x, 2),
        raised(tf.nn.space_to_depth, x, 3),
        slope(tf, lambda y: tf.nn.space_to_depth(y, 2) * deep, x),
    )  # fmt: skip


@program
def common_shapes(tf):
    shape = tf.TensorShape
    return (
        tf.broadcast_static_shape(shape([2, 1]), shape([3])).as_list(),
        tf.broadcast_static_shape(shape([]), shape([3, None])).as_list(),
        raised(tf.broadcast_static_shape, shape([2]), shape([3])),
        tf.broadcast_dynamic_shape([2, 1], [5, 1, 3]),
        tf.function(lambda x, y: tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y)))(X, X[0]),
        raised(tf.broadcast_dynamic_shape, [2], [3]),
    )


@program
def confusion_matrix(tf):
    fn = tf.math.confusion_matrix
    return (
        fn([1, 2, 4], [2, 2, 4]), fn([1, 0], [0, 0], num_classes=3),
        outcome(fn, [[1], [0]], [[1], [1]]), outcome(fn, [[1], [0]], [1, 1]),
        fn([1, 0, 1], [0, 0, 0], weights=[0.5, 1.0, 2.0], dtype=tf.float32),
        raised(fn, [1, -1], [0, 0]), raised(fn, [1, 3], [0, 0], num_classes=3),
        both(tf, fn, np.int32([0, 1, 1]), np.int32([1, 1, 0])),
    )  # fmt: skip


@program
def rising(tf):
    values = [[1, 2, 2], [1, 2, 3], [3, 1], [], [5]]
    return [
        [tf.math.is_non_decreasing(v), tf.math.is_strictly_increasing(v)] for v in values
    ]  # fmt: skip


@program
def small_functions(tf):
    return (
        slope(tf, lambda x: tf.math.polyval([tf.constant(2.0), 3.0, 4.0], x), [1.0, -2.0]),
        tf.math.polyval([], tf.constant([1.0])), raised(tf.math.polyval, 1.0, 2.0),
        slope(tf, lambda x: tf.scalar_mul(3.0, x), [1.0, 2.0]),
        raised(tf.scalar_mul, [1.0, 2.0], tf.constant([1.0])),
        slope(tf, lambda x: tf.math.reduce_euclidean_norm(x, 1), X[0]),
        tf.math.reduce_euclidean_norm([[3.0], [4.0]], keepdims=True),
        slope(tf, tf.math.nextafter, [1.0, 2.0], [2.0, 0.0]),
        tf.math.accumulate_n([tf.constant([1.0]), tf.constant([2.0])]),
        tf.identity_n([tf.constant(1), tf.constant([2.0])]),
        tf.realdiv(3.0, 2.0),
        tf.function(lambda: tf.parallel_stack([tf.constant([1]), tf.constant([2])]))(),
    )  # fmt: skip


@program
def bools_as_axes(tf):
    x = tf.reshape(tf.range(24), [2, 3, 4])

    def along(*axes):
        sums = [tf.reduce_sum(x, axis) for axis in axes]
        picked = tf.argmax(x, axes[0]), tf.split(x, [1, 2], axes[0])[0], tf.stack([x, x], axes[0])
        moved = tf.expand_dims(x, axes[0]), tf.concat([x, x], axes[0]), tf.cumsum(x, axes[0])
        return sums, picked, moved, tf.squeeze(x[:1, :1], [0, True]), tf.reverse(x, [True])

    eager = along(True, [True], [True, False], np.array([True]))
    return eager, tf.function(lambda: along(True, [True], [True, False]))()


@program
def ranges_of_floats(tf):
    bounds = [(0.0, 1.0, 0.1), (-2.0, 1.0, 0.3), (-2.0, 1.0, 0.00375), (1.0, 0.1, -0.3)]
    bounds += [(0.25, 2.9, 0.053), (3.0, -1.1, -0.41), (-1.3, 2.4, 0.37)]
    found = []
    for dtype in (tf.float32, tf.float64, tf.float16):
        for given in bounds:
            start, limit, delta = (tf.constant(n, dtype) for n in given)
            found.append(
                (tf.range(start, limit, delta)[-3:], tf.size(tf.range(*given, dtype=dtype)))
            )
            found.append(tf.function(lambda *n: tf.range(*n))(start, limit, delta)[-2:])
    return found
