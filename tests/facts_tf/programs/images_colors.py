"""td.image: dtypes, colours and their adjustment, random ones of given seeds too."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

RNG = np.random.default_rng(6)
FLOATS = RNG.uniform(size=(3, 4, 3)).astype(np.float32)
BYTES = RNG.integers(0, 256, (3, 4, 3)).astype(np.uint8)
BATCH = RNG.uniform(size=(2, 3, 2, 3)).astype(np.float32)
GRAYS = np.array([[[0.0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5]], np.eye(3)], np.float32)
DTYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "float16", "float32",
    "float64")


def slope(tf, fn, x):
    """The value, and the gradient of the sum of its squares."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = fn(x)
        loss = tf.reduce_sum(value**2)
    return value, tape.gradient(loss, x)


@program
def dtypes_converted(tf):
    convert = tf.image.convert_image_dtype
    numbers = tf.constant([0, 1, 17, 100], tf.int8)
    return [
        outcome(lambda a, b, s: convert(convert(numbers, a), b, saturate=s), a, b, s)
        for a in DTYPES
        if a not in ("uint32", "float16")  # TensorFlow cannot divide uint32
        for b in DTYPES
        for s in (False, True)
    ]


@program
def dtypes_saturated(tf):
    convert = tf.image.convert_image_dtype
    floats = tf.constant([-0.3, 0.0, 0.25, 0.9999, 1.0, 1.7])
    return [convert(floats, d, saturate=True) for d in DTYPES] + [
        convert(tf.constant([-5, 7, 120], tf.int8), d, saturate=True) for d in DTYPES
    ] + [
        raised(convert, floats, tf.bool), raised(convert, tf.constant([True]), tf.uint8),
        raised(convert, floats, tf.complex64), raised(convert, floats, tf.string),
        convert(BYTES, tf.float32), convert([[1, 2]], tf.float32), convert([0.5], "uint8"),
    ]  # fmt: skip


@program
def grays(tf):
    i = tf.image
    one = FLOATS[..., :1]
    return [
        i.rgb_to_grayscale(FLOATS), i.rgb_to_grayscale(BYTES), i.rgb_to_grayscale(BATCH),
        i.grayscale_to_rgb(tf.constant(one)), i.grayscale_to_rgb(tf.constant(BYTES[..., 1:2])),
        i.grayscale_to_rgb(tf.constant(BATCH[..., :1])),
        raised(i.grayscale_to_rgb, tf.constant(FLOATS)),
        raised(i.rgb_to_grayscale, FLOATS[..., :2]),
        slope(tf, i.rgb_to_grayscale, FLOATS), slope(tf, i.grayscale_to_rgb, one),
    ]  # fmt: skip


@program
def colour_spaces(tf):
    i = tf.image
    fs = (i.rgb_to_hsv, i.hsv_to_rgb, i.rgb_to_yiq, i.yiq_to_rgb, i.rgb_to_yuv, i.yuv_to_rgb)
    kinds = (FLOATS, BATCH, GRAYS, GRAYS[0, 0], GRAYS.astype(np.float64))
    return [f(tf.constant(x)) for f in fs for x in kinds]


@program
def colour_space_slopes(tf):
    i = tf.image
    fs = (i.rgb_to_hsv, i.rgb_to_yiq, i.yiq_to_rgb, i.rgb_to_yuv, i.yuv_to_rgb)
    return [slope(tf, f, FLOATS) for f in fs]


@program
def colour_space_refusals(tf):
    i = tf.image
    fs = (i.rgb_to_hsv, i.hsv_to_rgb, i.rgb_to_yiq, i.yiq_to_rgb, i.rgb_to_yuv, i.yuv_to_rgb)
    return [raised(f, tf.constant(x)) for f in fs for x in (FLOATS[..., :2], BYTES)]


@program
def brightness(tf):
    adjust = tf.image.adjust_brightness
    return [adjust(x, d) for x in (FLOATS, BYTES, BATCH) for d in (0.2, -0.3, tf.constant(0.1))] + [
        outcome(lambda d: adjust(tf.cast(FLOATS, d), 0.25), d) for d in ("float16", "float64")
    ]


@program
def contrast(tf):
    adjust = tf.image.adjust_contrast
    return [adjust(x, f) for x in (FLOATS, BYTES, BATCH) for f in (0.5, 2, tf.constant(1.5))] + [
        outcome(lambda d: adjust(tf.cast(FLOATS, d), 0.25), d) for d in ("float64",)
    ] + [raised(adjust, FLOATS[0], 2.0), raised(adjust, FLOATS, [1.0, 2.0])]  # fmt: skip


@program
def saturation(tf):
    adjust = tf.image.adjust_saturation
    return [adjust(x, f) for x in (FLOATS, BYTES, BATCH, GRAYS)
        for f in (0.0, 0.5, 2.0, tf.constant(1.5))] + [
        outcome(lambda d: adjust(tf.cast(FLOATS, d), 0.25), d) for d in ("float64",)
    ] + [raised(adjust, FLOATS[0], 2.0), raised(adjust, FLOATS[..., :2], 2.0)]  # fmt: skip


@program
def hue(tf):
    adjust = tf.image.adjust_hue
    return [adjust(x, d) for x in (FLOATS, BYTES, BATCH, GRAYS)
        for d in (0.0, 0.2, -0.7, 1.0, tf.constant(0.5))] + [
        outcome(lambda d: adjust(tf.cast(FLOATS, d), 0.25), d) for d in ("float64",)
    ] + [raised(adjust, FLOATS, 1.5), raised(adjust, FLOATS, -1.5),
    raised(adjust, FLOATS[..., :2], 0.1)]  # fmt: skip


@program
def gamma(tf):
    adjust = tf.image.adjust_gamma
    return [adjust(x, *args) for x in (FLOATS, BYTES) for args in ((), (0.2,), (2.0, 0.5))] + [
        raised(adjust, FLOATS, -1.0), adjust(tf.cast(FLOATS, tf.float16), 2.0),
        adjust(BATCH, gamma=tf.constant(2.0)),
    ]  # fmt: skip


@program
def standardized(tf):
    f = tf.image.per_image_standardization
    return [
        f(FLOATS), f(BYTES), f(BATCH), f(np.ones((2, 2, 3), np.float32)),
        f(tf.cast(FLOATS, tf.float16)),
        f(tf.cast(FLOATS, tf.float64)), raised(f, FLOATS[0]), f(BATCH[None]),
        slope(tf, lambda x: f(x) + x, FLOATS),
    ]  # fmt: skip


@program
def random_of_seeds(tf):
    i = tf.image
    return [
        f(x, *args, seed=(n, 7))
        for f, args in (
            (i.stateless_random_brightness, (0.4,)), (i.stateless_random_contrast, (0.3, 1.8)),
            (i.stateless_random_saturation, (0.3, 1.8)), (i.stateless_random_hue, (0.3,)),
        )
        for x in (FLOATS, BYTES)
        for n in (0, 1)
    ]  # fmt: skip


@program
def random_of_any_seed(tf):
    i, x = tf.image, tf.constant(FLOATS)
    found = [
        i.random_brightness(x, 0.2), i.random_contrast(x, 0.5, 1.5),
        i.random_saturation(x, 0.5, 1.5, seed=3), i.random_hue(x, 0.1),
    ]  # fmt: skip
    moved = i.random_brightness(x, 0.2) - x
    return [y.shape for y in found] + [
        bool(tf.reduce_max(tf.abs(moved - moved[0, 0, 0])) < 1e-5),
        bool(tf.reduce_max(tf.abs(moved)) < 0.2001),
    ]  # fmt: skip


@program
def random_refusals(tf):
    i, x = tf.image, FLOATS
    return [
        raised(i.random_brightness, x, -0.1),
        raised(i.stateless_random_brightness, x, -0.1, (1, 2)),
        raised(i.random_contrast, x, 0.5, 0.5), raised(i.random_contrast, x, -0.5, 0.5),
        raised(i.stateless_random_contrast, x, 0.5, 0.4, (1, 2)),
        raised(i.random_saturation, x, 0.5, 0.5),
        raised(i.random_saturation, x, -0.5, 0.5),
        raised(i.stateless_random_saturation, x, 0.5, 0.1, (1, 2)),
        raised(i.random_hue, x, 0.6), raised(i.random_hue, x, -0.1),
        raised(i.stateless_random_hue, x, 0.6, (1, 2)),
        raised(i.random_jpeg_quality, x, 5, 5), raised(i.random_jpeg_quality, x, -5, 50),
        raised(i.stateless_random_jpeg_quality, x, 5, 500, (1, 2)),
    ]  # fmt: skip


@program
def in_functions_of_open_sizes(tf):
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.uint8)])
    def coloured(x):
        i = tf.image
        y = i.convert_image_dtype(x, tf.float32)
        return (
            y, i.rgb_to_grayscale(x), i.rgb_to_hsv(y), i.adjust_brightness(x, 0.1),
            i.adjust_contrast(x, 2.0),
            i.adjust_saturation(x, 0.5), i.adjust_hue(x, 0.2), i.per_image_standardization(x),
            i.stateless_random_brightness(x, 0.2, (1, 2)), i.adjust_gamma(x, 2.0),
        )  # fmt: skip

    return [coloured(BYTES[None]), coloured(np.stack([BYTES[:2], BYTES[1:]]))]


@program
def deltas_told_late(tf):
    @tf.function
    def coloured(x, d):
        i = tf.image
        adjusts = (i.adjust_hue, i.adjust_saturation, i.adjust_brightness, i.adjust_contrast)
        return [adjust(x, d) for adjust in adjusts]

    return [outcome(coloured, tf.constant(FLOATS), tf.constant(d)) for d in (0.3, 1.0)]
