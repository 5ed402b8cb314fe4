"""td.nn: convolutions and pools along one axis, separable ones, moments, normalization, losses."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import program, raised

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(2, 7, 3)).astype(np.float32)
FILTERS = RNG.normal(size=(3, 3, 4)).astype(np.float32)
IMAGES = RNG.normal(size=(2, 5, 6, 4))
DEPTH, POINTS = RNG.normal(size=(2, 3, 4, 2)), RNG.normal(size=(1, 1, 8, 3))


def slope(tf, fn, *args):
    """The value, and the gradients of the sum of its squares."""
    operands = [tf.constant(a) for a in args]
    with tf.GradientTape() as tape:
        tape.watch(operands)
        value = fn(*operands)
        loss = tf.reduce_sum(value**2)
    return value, tape.gradient(loss, operands)


@program
def conv1d(tf):
    c = tf.nn.conv1d
    return [
        slope(tf, lambda x, w: c(x, w, 1, "SAME"), ROWS, FILTERS),
        slope(tf, lambda x, w: c(x, w, 2, "VALID"), ROWS, FILTERS),
        c(ROWS, FILTERS, [1, 2, 1], "SAME"), c(ROWS, FILTERS, 1, "SAME", dilations=2),
        tf.function(lambda x: c(x, FILTERS, 1, "VALID"),
                    input_signature=[tf.TensorSpec([None, None, 3])])(ROWS),
        raised(c, ROWS, FILTERS[:, :2], 1, "SAME"), raised(c, ROWS[0], FILTERS, 1, "SAME"),
    ]  # fmt: skip


@program
def conv1d_transpose(tf):
    w = np.transpose(FILTERS, (0, 2, 1))
    t = tf.nn.conv1d_transpose
    return [
        slope(tf, lambda x, f: t(x, f, [2, 14, 4], 2, "SAME"), ROWS, w),
        t(ROWS, w, [2, 9, 4], 1, "VALID"),
    ]  # fmt: skip


@program
def pool1d(tf):
    n = tf.nn
    return [
        slope(tf, lambda x: n.max_pool1d(x, 2, 2, "VALID"), ROWS),
        slope(tf, lambda x: n.avg_pool1d(x, 3, 2, "SAME"), ROWS),
        n.max_pool1d(ROWS, [3], [1], "SAME"), n.avg_pool1d(ROWS, 2, 1, "VALID"),
    ]  # fmt: skip


@program
def separable(tf):
    depth, points, strides = DEPTH, POINTS, [1, 1, 1, 1]
    return [
        slope(tf, lambda x, d, p: tf.nn.separable_conv2d(x, d, p, strides, "SAME"),
              IMAGES, depth, points),
        tf.nn.atrous_conv2d(IMAGES, depth, 2, "SAME"),
    ]  # fmt: skip


@program
def moments(tf):
    n = tf.nn
    weights = np.abs(ROWS[:, :, :1])
    found = n.sufficient_statistics(ROWS, [0, 1], shift=0.5)
    plain = n.sufficient_statistics(ROWS, [0, 1], keepdims=True)
    return [
        n.weighted_moments(ROWS, [0, 1], weights),
        n.weighted_moments(ROWS, [1], weights, keepdims=True),
        found, plain, n.normalize_moments(*found), n.normalize_moments(*plain),
    ]  # fmt: skip


@program
def activations(tf):
    small = IMAGES.astype(np.float32)
    return [
        slope(tf, tf.nn.crelu, ROWS), tf.nn.crelu(ROWS, axis=1),
        slope(tf, lambda x: tf.nn.local_response_normalization(x, 1, 2.0, 0.5, 0.75), small),
        tf.nn.local_response_normalization(small),
    ]  # fmt: skip


@program
def log_poisson_loss(tf):
    targets, inputs = np.float32([0.0, 1.0, 3.0, 10.0]), np.float32([0.5, -1.0, 1.0, 2.0])
    return [
        slope(tf, lambda x: tf.nn.log_poisson_loss(targets, x), inputs),
        tf.nn.log_poisson_loss(targets, inputs, compute_full_loss=True),
    ]  # fmt: skip
