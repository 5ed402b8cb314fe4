"""td.image: edges, differences and likeness of images, with gradients."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

RNG = np.random.default_rng(7)
A = RNG.uniform(size=(2, 13, 14, 2)).astype(np.float32)
B = (A + 0.1 * RNG.normal(size=A.shape)).astype(np.float32)
BYTES = RNG.integers(0, 256, (2, 12, 11, 3)).astype(np.uint8)


def slope(tf, fn, x):
    """The value, and the gradient of the sum of its squares."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = fn(x)
        loss = tf.reduce_sum(value**2)
    return value, tape.gradient(loss, x)


@program
def edges(tf):
    x = tf.constant(A[:, :4, :5])
    return [
        tf.image.sobel_edges(x), slope(tf, tf.image.sobel_edges, A[:, :4, :5]),
        tf.image.image_gradients(x),
        tf.image.image_gradients(tf.constant(BYTES[:, :3, :3], tf.int32)),
        raised(tf.image.image_gradients, x[0]), raised(tf.image.sobel_edges, x[0]),
        tf.image.sobel_edges(tf.cast(x, tf.float64)),
    ]  # fmt: skip


@program
def variations(tf):
    f = tf.image.total_variation
    return [
        f(tf.constant(A)), f(tf.constant(A[0])), f(tf.constant(BYTES, tf.int32)),
        raised(f, tf.constant(A[0, 0])), slope(tf, f, A[:, :3, :3]), f(tf.constant(A[:, :1, :1])),
    ]  # fmt: skip


@program
def noise_ratios(tf):
    f, other = tf.image.psnr, BYTES[::-1].copy()
    a, b, c, d = map(tf.constant, (A, B, BYTES, other))
    return [
        f(a, b, 1.0), f(a, b, 255), f(c, d, 255), f(a[0], b[0], 1.0), f(a, b[:1], 1.0),
        f(a, a, 1.0),
        raised(f, a, b[:, :5], 1.0), raised(f, a[0, 0], b[0, 0], 1.0),
        f(tf.cast(a, tf.float64), tf.cast(b, tf.float64), 1.0),
        slope(tf, lambda x: f(x, b[:, :3, :3], 1.0), A[:, :3, :3]),
    ]  # fmt: skip


@program
def structural_likeness(tf):
    f, other = tf.image.ssim, BYTES[::-1].copy()
    a, b = tf.constant(A), tf.constant(B)
    return [
        f(A, B, 1.0), f(A, B, max_val=2.0), f(A, A, 1.0), f(BYTES, other, 255), f(A[0], B[0], 1.0),
        f(A, B, 1.0, filter_size=5),
        f(A, B, 1.0, filter_size=4, filter_sigma=0.7, k1=0.02, k2=0.05),
        f(A, B, 1.0, return_index_map=True), f(A[:, None], B[:, None], 1.0, filter_size=3),
        f(A, B[:1], 1.0), raised(f, A[:, :5], B[:, :5], 1.0), raised(f, A, B[:, :5], 1.0),
        raised(f, A, B[..., :1], 1.0), raised(f, A[0, 0], B[0, 0], 1.0),
        slope(tf, lambda x: f(x, b, 1.0, filter_size=5), a),
    ]  # fmt: skip


@program
def likeness_at_scales(tf):
    rng = np.random.default_rng(10)  # the facts do not depend on the order of programs
    f = tf.image.ssim_multiscale
    one = rng.uniform(size=(1, 27, 30, 1)).astype(np.float32)
    two = (one + 0.1 * rng.normal(size=one.shape)).astype(np.float32)
    weights = (0.3, 0.4, 0.3)
    return [
        f(one, two, 1.0, weights, filter_size=5), f(one, two, 1.0, weights[:2]),
        f(one[0], two[0], 1.0, weights, filter_size=3, filter_sigma=1.0),
        f(A, B, 1.0, weights[:2], filter_size=3), f(A, B, 2.0, (0.5, 0.5), 4, 1.0, 0.02, 0.04),
        f((one * 255).astype(np.uint8), (two.clip(0, 1) * 255).astype(np.uint8), 255, weights, 3),
        raised(f, one, two, 1.0),
    ]  # fmt: skip


@program
def in_functions_of_open_sizes(tf):
    spec = tf.TensorSpec([None, None, None, 2])

    @tf.function(input_signature=[spec, spec])
    def measured(x, y):
        i = tf.image
        return (
            i.ssim(x, y, 1.0), i.psnr(x, y, 1.0), i.total_variation(x),
            i.sobel_edges(x[:, :3, :3]), i.image_gradients(x[:, :3, :3]),
            i.ssim_multiscale(x, y, 1.0, (0.5, 0.5), 5),
        )  # fmt: skip

    return [measured(A, B), measured(A[:1, :12], B[:1, :12]), outcome(measured, A[:, :5], B[:, :5])]
