"""td.nn: convolutions and pools of any rank, dilation and erosion, argmax of pools."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

RNG = np.random.default_rng(11)
ROWS = RNG.integers(-9, 9, (2, 7, 3)).astype(np.float32)
IMAGES = RNG.integers(-9, 9, (2, 5, 6, 2)).astype(np.float32)
DISTINCT = RNG.permutation(240).reshape(2, 4, 3, 5, 2).astype(np.float32) - 100
VOLUMES = RNG.integers(-9, 9, (2, 4, 3, 5, 2)).astype(np.float32)
FILTERS = RNG.integers(-5, 5, (2, 3, 2, 2, 3)).astype(np.float32)


def slope(tf, fn, *args):
    """The value, and the gradients of a weighted sum of it, eagerly and in a function."""

    def run(*operands):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            value = fn(*operands)
            count = tf.cast(tf.range(tf.size(value)), value.dtype)
            loss = tf.reduce_sum(value * tf.reshape(count % 7 - 3, tf.shape(value)))
        return value, tape.gradient(loss, operands)

    operands = [tf.constant(a) for a in args]
    return [outcome(run, *operands), outcome(tf.function(run), *operands)]


def open_sizes(tf, fn, x):
    """The value where batch and spatial sizes are known only when it runs."""
    spec = tf.TensorSpec([None] * (x.ndim - 1) + [x.shape[-1]], x.dtype)
    return tf.function(fn, input_signature=[spec])(x)


@program
def conv3d(tf):
    c = tf.nn.conv3d
    ones = [1, 1, 1, 1, 1]
    return [
        slope(tf, lambda x, w: c(x, w, ones, "SAME"), VOLUMES, FILTERS),
        slope(tf, lambda x, w: c(x, w, [1, 2, 1, 2, 1], "VALID"), VOLUMES, FILTERS),
        slope(tf, lambda x, w: c(x, w, [1, 2, 2, 2, 1], "SAME"), VOLUMES, FILTERS),
        c(VOLUMES, FILTERS[:1], ones, "SAME"), c(VOLUMES, FILTERS[:, :1, :1], ones, "VALID"),
        c(VOLUMES.astype(np.float64), FILTERS.astype(np.float64), ones, "SAME"),
        c(VOLUMES[None], FILTERS, ones, "SAME"),
        open_sizes(tf, lambda x: c(x, FILTERS, ones, "SAME"), VOLUMES),
        open_sizes(tf, lambda x: c(x, FILTERS, [1, 3, 1, 2, 1], "VALID"), VOLUMES),
        raised(c, VOLUMES, FILTERS[..., :1, :].repeat(3, 3), ones, "SAME"),
        raised(c, VOLUMES, FILTERS[0], ones, "SAME"), raised(c, VOLUMES[0], FILTERS, ones, "SAME"),
        raised(c, VOLUMES, FILTERS, ones, "NONE"),
        raised(c, VOLUMES, FILTERS, [1, 0, 1, 1, 1], "SAME"),
        raised(c, VOLUMES, FILTERS, [2, 1, 1, 1, 1], "SAME"),
        raised(c, VOLUMES.astype(int), FILTERS.astype(int), ones, "SAME"),
    ]  # fmt: skip


@program
def conv3d_transpose(tf):
    t = tf.nn.conv3d_transpose
    w = np.transpose(FILTERS, (0, 1, 2, 4, 3))
    return [
        slope(tf, lambda x, f: t(x, f, [2, 4, 3, 5, 3], 1, "SAME"), VOLUMES, w),
        slope(tf, lambda x, f: t(x, f, [2, 8, 6, 10, 3], 2, "SAME"), VOLUMES, w),
        t(VOLUMES, w, [2, 5, 5, 6, 3], [1, 1, 1, 1, 1], "VALID"),
        t(VOLUMES, w, [2, 8, 7, 11, 3], [1, 2, 2, 2, 1], "VALID"),
        tf.nn.conv_transpose(VOLUMES, w, [2, 4, 3, 5, 3], 1),
        raised(t, VOLUMES, w, [2, 4, 3, 5, 4], 1, "SAME"),
        raised(t, VOLUMES, w, [2, 9, 3, 5, 3], 1, "SAME"),
    ]  # fmt: skip


@program
def convolution(tf):
    c, t = tf.nn.convolution, tf.nn.conv_transpose
    two, one = FILTERS[0], FILTERS[0, 0]
    turned = np.transpose(two, (0, 1, 3, 2))
    wide = np.concatenate([ROWS, ROWS[..., :1]], -1)[..., :2]
    return [
        slope(tf, lambda x, w: c(x, w), IMAGES, two), c(VOLUMES, FILTERS), c(wide, one),
        c(wide, one, padding="SAME", strides=2), c(wide, one, padding="SAME", dilations=2),
        c(IMAGES, two, padding="SAME", strides=[2, 1]),
        slope(tf, lambda x, w: c(x, w, padding="SAME", dilations=[2, 1]), IMAGES, two),
        c(IMAGES, two, dilations=[1, 2]),
        slope(tf, lambda x, w: c(x, w, padding="SAME", dilations=[2, 1, 2]), VOLUMES, FILTERS),
        c(VOLUMES, FILTERS, dilations=[2, 1, 1]), c(VOLUMES, FILTERS, strides=[1, 1, 2]),
        c(IMAGES[None], two), c(IMAGES, two, padding="SAME", data_format="NHWC"),
        t(IMAGES, turned, [2, 10, 12, 3], 2),
        t(wide, np.transpose(one, (0, 2, 1)), [2, 14, 3], 2),
        tf.nn.atrous_conv2d_transpose(IMAGES, turned, [2, 5, 6, 3], 2, "SAME"),
        tf.nn.atrous_conv2d_transpose(IMAGES, turned, [2, 9, 8, 3], 2, "VALID"),
        raised(c, IMAGES, one), raised(c, np.ones((2, 3), "f"), np.ones((2, 3), "f")),
        raised(t, IMAGES, two, [2, 3], 1),
    ]  # fmt: skip


@program
def pools_of_volumes(tf):
    n = tf.nn
    return [
        slope(tf, lambda x: n.max_pool3d(x, 2, 2, "VALID"), DISTINCT),
        slope(tf, lambda x: n.max_pool3d(x, [2, 3, 2], 1, "SAME"), DISTINCT),
        slope(tf, lambda x: n.avg_pool3d(x, 2, 2, "VALID"), VOLUMES),
        slope(tf, lambda x: n.avg_pool3d(x, 3, [2, 1, 2], "SAME"), VOLUMES),
        slope(tf, lambda x: n.max_pool3d(x, [1, 2, 2, 3, 1], [1, 2, 1, 2, 1], "SAME"), DISTINCT),
        n.max_pool(VOLUMES, 2, 1, "SAME"), n.avg_pool(VOLUMES, 2, 1, "SAME"),
        open_sizes(tf, lambda x: n.max_pool3d(x, 3, 2, "SAME"), VOLUMES),
        open_sizes(tf, lambda x: n.avg_pool3d(x, 2, 1, "VALID"), VOLUMES),
        raised(n.max_pool3d, VOLUMES, 6, 1, "VALID"), raised(n.max_pool3d, IMAGES, 2, 1, "SAME"),
        raised(n.avg_pool3d, VOLUMES, [1, 2], 1, "SAME"),
        raised(n.max_pool3d, VOLUMES, 2, 0, "SAME"),
        raised(n.max_pool3d, VOLUMES, 2, 1, "FULL"),
    ]  # fmt: skip


@program
def equal_maxima_in_volumes(tf):
    flat = np.zeros((1, 1, 2, 2, 1), np.float32)
    return slope(tf, lambda x: tf.nn.max_pool3d(x, [1, 2, 2], 1, "VALID"), flat)


@program
def pools_by_rank(tf):
    n = tf.nn
    return [
        slope(tf, lambda x: n.max_pool(x, 3, 2, "SAME"), ROWS),
        slope(tf, lambda x: n.avg_pool(x, 2, 1, "VALID"), ROWS),
        slope(tf, lambda x: n.max_pool(x, [2, 3], [1, 2], "SAME"), IMAGES),
        n.avg_pool(IMAGES, [1, 2, 2, 1], [1, 2, 1, 1], "SAME"), n.avg_pool(IMAGES, 3, 1, "VALID"),
        slope(tf, lambda x: n.max_pool(x, 2, 2, [[0, 0], [1, 0], [1, 1], [0, 0]]), IMAGES),
        n.max_pool(ROWS, 2, 1, "SAME", "NWC"), n.max_pool(ROWS.astype(np.float64), 2, 1, "VALID"),
        n.max_pool(tf.constant(IMAGES.astype(np.int32)), 2, 2, "SAME"),
        n.max_pool2d(IMAGES, 2, 2, "SAME"),
        raised(n.max_pool, ROWS[0], 2, 2, "SAME"), raised(n.avg_pool, VOLUMES[None], 2, 2, "SAME"),
        raised(n.max_pool, IMAGES, 2, 2, "NONE"), raised(n.avg_pool, IMAGES, 9, 1, "VALID"),
    ]  # fmt: skip


@program
def pool(tf):
    p = tf.nn.pool
    return [
        p(ROWS, [2], "MAX"), p(ROWS, [3], "AVG", strides=[2], padding="SAME"),
        slope(tf, lambda x: p(x, [2, 3], "MAX", dilations=[2, 1]), IMAGES),
        slope(tf, lambda x: p(x, [2, 2], "AVG", dilations=[2, 3]), IMAGES),
        slope(tf, lambda x: p(x, [2, 2, 2], "MAX", dilations=[2, 1, 3]), DISTINCT),
        p(ROWS, [3], "MAX", dilations=[2]), p(VOLUMES, [2, 2, 2], "AVG", strides=[1, 2, 1]),
        p(IMAGES, [2, 2], "MAX", strides=[2, 2], padding="SAME"),
        raised(p, IMAGES, [2, 2], "MIN"), raised(p, IMAGES, [2], "MAX"),
        raised(p, IMAGES, [2, 2], "MAX", strides=[2, 2], dilations=[2, 2]),
        raised(p, IMAGES, [2, 2], "MAX", padding="SAME", dilations=[2, 2]),
    ]  # fmt: skip


@program
def with_space_to_batch(tf):
    def smallest(x, axes, padding):
        return -tf.nn.max_pool(-x, 2, 1, padding)

    w = tf.nn.with_space_to_batch
    return [
        w(tf.constant(IMAGES), [2, 1], "VALID", smallest),
        w(tf.constant(IMAGES), [1, 1], "SAME", smallest),
        w(tf.constant(IMAGES), [2, 3], "SAME",
          lambda x, axes, padding: tf.nn.conv2d(x, FILTERS[0], 1, padding), filter_shape=[3, 2]),
        raised(w, tf.constant(IMAGES), [2, 1], "SAME", smallest),
        raised(w, tf.constant(IMAGES), [2, 0], "VALID", smallest),
    ]  # fmt: skip


@program
def pool_with_argmax(tf):
    def p(*args, **kwargs):
        return tuple(tf.nn.max_pool_with_argmax(*args, **kwargs))

    flat = np.zeros_like(IMAGES)
    return [
        p(IMAGES, 2, 2, "SAME"), p(IMAGES, [2, 3], [1, 2], "VALID"),
        p(IMAGES, 2, 2, "VALID", include_batch_in_index=True),
        p(IMAGES, 3, 1, "SAME", output_dtype=tf.int32), p(flat, 3, 2, "SAME"),
        slope(tf, lambda x: p(x, 2, 1, "SAME")[0], IMAGES),
        tf.function(lambda x: p(x, 3, 2, "SAME", include_batch_in_index=True))(IMAGES),
        open_sizes(tf, lambda x: p(x, 3, 2, "SAME"), IMAGES),
        raised(p, IMAGES, 2, 2, "NONE"), raised(p, IMAGES[0], 2, 2, "SAME"),
        raised(p, IMAGES, 9, 2, "VALID"),
    ]  # fmt: skip


@program
def morphology(tf):
    d, e = tf.nn.dilation2d, tf.nn.erosion2d
    f = FILTERS[0, ..., 0]
    ones, form = [1, 1, 1, 1], "NHWC"
    whole, steps = IMAGES.astype(np.int32), [1, 2, 1, 1]
    return [
        slope(tf, lambda x, w: d(x, w, ones, "SAME", form, ones), IMAGES, f),
        slope(tf, lambda x, w: d(x, w, steps, "VALID", form, [1, 1, 2, 1]), IMAGES, f),
        slope(tf, lambda x, w: e(x, w, ones, "VALID", form, ones), IMAGES, f),
        slope(tf, lambda x, w: e(x, w, steps, "SAME", form, [1, 2, 1, 1]), IMAGES, f),
        slope(tf, lambda x, w: d(x, w, ones, "SAME", form, ones),
              np.zeros_like(IMAGES), np.zeros_like(f)),
        d(whole, f.astype(np.int32), ones, "SAME", form, ones),
        d(IMAGES.astype(np.float64), f.astype(np.float64), ones, "VALID", form, ones),
        open_sizes(tf, lambda x: d(x, f, steps, "SAME", form, ones), IMAGES),
        raised(d, IMAGES, f[..., :1], ones, "SAME", form, ones),
        raised(d, IMAGES, f, ones, "SAME", "NCHW", ones),
        raised(e, IMAGES, f, ones, "SAME", "NCHW", ones),
        raised(d, IMAGES, f[0], ones, "SAME", form, ones),
        raised(d, IMAGES[0], f, ones, "SAME", form, ones),
        raised(d, IMAGES, np.zeros((7, 7, 2), "f"), ones, "VALID", form, ones),
    ]  # fmt: skip


@program
def depthwise_gradients(tf):
    n, ones = tf.nn, [1, 1, 1, 1]
    w, sizes = FILTERS[0], IMAGES.shape
    y = n.depthwise_conv2d(IMAGES, w, ones, "SAME")
    z = n.depthwise_conv2d(IMAGES, w, [1, 2, 2, 1], "VALID")
    return [
        n.depthwise_conv2d_backprop_input(sizes, w, y, ones, "SAME"),
        n.depthwise_conv2d_backprop_filter(IMAGES, w.shape, y, ones, "SAME"),
        n.depthwise_conv2d_backprop_input(sizes, w, z, [1, 2, 2, 1], "VALID"),
        n.depthwise_conv2d_backprop_filter(IMAGES, w.shape, z, [1, 2, 2, 1], "VALID"),
        slope(tf, lambda a, b: n.depthwise_conv2d_backprop_input(sizes, a, b, ones, "SAME"), w, y),
        raised(n.depthwise_conv2d_backprop_input, sizes, w, z, ones, "SAME"),
    ]  # fmt: skip


@program
def patches_of_volumes(tf):
    p, ones = tf.extract_volume_patches, [1, 1, 1, 1, 1]
    return [
        p(VOLUMES, [1, 2, 2, 3, 1], ones, "VALID"),
        p(VOLUMES, [1, 2, 1, 2, 1], [1, 2, 2, 1, 1], "SAME"),
        raised(p, VOLUMES, [1, 9, 1, 1, 1], ones, "SIDE"),
        raised(p, VOLUMES[0], ones, ones, "SAME"),
        tf.space_to_batch_nd(IMAGES, [2, 3], [[1, 0], [0, 0]]),
        tf.space_to_batch_nd(VOLUMES, [2, 1, 5], [[0, 0], [1, 0], [0, 0]]),
        raised(tf.space_to_batch_nd, IMAGES, [2, 3], [[0, 0], [0, 0]]),
    ]  # fmt: skip
