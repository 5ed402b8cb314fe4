"""td.nn: rows of labels, isotonic regression, largest elements, averages of losses, dropout."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

RNG = np.random.default_rng(3)
LABELS = np.array([[1, 1, 2, 2, 1], [1, 2, 3, 4, 5], [7, 7, 7, 7, 7], [0, 0, 3, 0, 0]])
MORE_LABELS = RNG.integers(0, 4, (3, 9))
NUMBERS = RNG.normal(size=(3, 7)).astype(np.float32)
ORDER = RNG.permutation(24).reshape(2, 3, 4).astype(np.float32)
IMAGES = RNG.normal(size=(2, 3, 3, 2)).astype(np.float32)


@program
def collapse_repeated(tf):
    c = tf.nn.collapse_repeated
    traced = tf.function(lambda x, n: c(x, n))
    return [
        c(LABELS, [5, 5, 5, 5]), c(LABELS, [3, 0, 4, 2]), c(LABELS.astype(np.int32), [5, 1, 1, 1]),
        c(LABELS, np.int64([2, 2, 2, 2])), traced(LABELS, np.int32([5, 3, 5, 5])),
        c(LABELS.astype(np.float32), [4, 4, 4, 4]), c(LABELS[:1, :1], [1]),
        raised(c, LABELS[0], [5]),
    ]  # fmt: skip


@program
def unique_labels(tf):
    def u(labels):
        return tuple(tf.nn.ctc_unique_labels(labels))

    spec = tf.TensorSpec([None, None], tf.int64)
    return [
        u(LABELS), u(LABELS.astype(np.int32)), u(LABELS[:2, ::-1]), u(np.zeros((2, 3), int)),
        tf.function(u, input_signature=[spec])(LABELS), u(MORE_LABELS),
    ]  # fmt: skip


@program
def isotonic_regression(tf):
    def i(v, **given):
        return tuple(tf.nn.isotonic_regression(v, **given))

    x = NUMBERS

    def slope(v, **given):
        v = tf.convert_to_tensor(v)
        with tf.GradientTape() as tape:
            tape.watch(v)
            y, _ = i(v, **given)
            loss = tf.reduce_sum(y * tf.cast(tf.range(y.shape[-1]), y.dtype))
        return tape.gradient(loss, v)

    return [
        i(x), i(x, decreasing=False), i(x, axis=0), i(x[0]), i(x.astype(np.float64)),
        i(np.array([[3, 1, 2], [5, 5, 9]])), i(np.array([[3, 1, 2]], np.int8)),
        i(np.float32([[3, 3, 2, 2]])), i(np.float32([[1, 2, 3, 4]])), tf.function(i)(x),
        slope(x), slope(x, decreasing=False), slope(x, axis=0), tf.function(slope)(x),
        i(x.reshape(3, 7, 1), axis=1),
    ]  # fmt: skip


@program
def largest(tf):
    x = ORDER
    return [
        tuple(tf.nn.top_k(x, 2)), tuple(tf.nn.top_k(x, 4, sorted=False)),
        tuple(tf.nn.top_k(x.astype(np.int32))), raised(tf.nn.top_k, x, 5),
    ]  # fmt: skip


@program
def averages_of_losses(tf):
    a, s = tf.nn.compute_average_loss, tf.nn.scale_regularization_loss
    losses = np.float32([1.0, 2.0, 4.5, 0.5])
    return [
        a(losses), a(losses, sample_weight=[1.0, 0.0, 2.0, 1.0]), a(losses, global_batch_size=8),
        a(losses.reshape(2, 2)), a(losses.reshape(2, 2), sample_weight=np.float32([[2.0], [1.0]])),
        a(losses, global_batch_size=0), a(losses.astype(np.float64)), tf.function(a)(losses),
        a(losses, global_batch_size=tf.constant(3)), s(losses), s(2.5), s([1.0, 2.0]),
        raised(a, losses, global_batch_size=-1), raised(a, losses, global_batch_size=2.5),
        raised(a, losses, global_batch_size=[2]),
        tf.function(a, input_signature=[tf.TensorSpec([None])])(losses),
    ]  # fmt: skip


@program
def normalization_and_dropout(tf):
    n, e = tf.nn, tf.nn.experimental
    x = IMAGES
    m, v, b, g = (np.float32(p) for p in ([0.1, 0.2], [1.0, 2.0], [0.5, -0.5], [2.0, 3.0]))
    return [
        n.batch_norm_with_global_normalization(x, m, v, b, g, 1e-3, True),
        n.batch_norm_with_global_normalization(x, m, v, b, g, 1e-3, False),
        n.lrn(x, 1, 2.0, 0.5, 0.75), e.stateless_dropout(x, 0.4, [1, 2]),
        e.stateless_dropout(x, 0.4, [1, 2], noise_shape=[2, 1, 1, None]),
        e.stateless_dropout(x, 0.0, [1, 2]), tf.function(e.stateless_dropout)(x, 0.3, [5, 6]),
        e.general_dropout(x, 0.5, lambda shape, dtype: tf.ones(shape, dtype)),
        e.general_dropout(x, 0.5, lambda shape, dtype: tf.zeros(shape, dtype)),
        outcome(e.stateless_dropout, x, 0.25, [3, 4], rng_alg="philox"),
        raised(e.stateless_dropout, x, 1.0, [1, 2]), raised(e.stateless_dropout, x, -0.1, [1, 2]),
        raised(e.stateless_dropout, tf.constant([1, 2]), 0.5, [1, 2]),
    ]  # fmt: skip
