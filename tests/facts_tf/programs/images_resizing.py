"""td.image: resizing, crops of boxes, patches and glimpses, with gradients."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

RNG = np.random.default_rng(5)
SMALL = RNG.uniform(size=(4, 5, 2)).astype(np.float32)
BATCH = RNG.uniform(size=(2, 6, 7, 1)).astype(np.float32)
BYTES = RNG.integers(0, 256, (5, 4, 3)).astype(np.uint8)
METHODS = (
    "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic",
)  # fmt: skip


def slope(tf, fn, x):
    """The value, and the gradient of the sum of its squares."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = fn(x)
        loss = tf.reduce_sum(value**2)
    return value, tape.gradient(loss, x)


@program
def enlarged(tf):
    return [tf.image.resize(SMALL, [7, 9], method) for method in METHODS]


@program
def reduced(tf):
    return [tf.image.resize(BATCH, [3, 2], method) for method in METHODS]


@program
def reduced_smoothly(tf):
    return [tf.image.resize(BATCH, [3, 2], method, antialias=True) for method in METHODS]


@program
def one_axis_larger_and_one_smaller(tf):
    return [tf.image.resize(SMALL, (9, 2), method, antialias=True) for method in METHODS]


@program
def bytes_resized(tf):
    return [tf.image.resize(BYTES, [3, 6], method) for method in METHODS]


@program
def the_same_size(tf):
    return [tf.image.resize(BYTES, [5, 4], method) for method in METHODS]


@program
def one_pixel(tf):
    return [
        found
        for method in METHODS
        for found in (tf.image.resize(SMALL, [1, 1], method),
            tf.image.resize(SMALL[:1, :1], [2, 3], method))
    ]  # fmt: skip


@program
def other_dtypes(tf):
    return [
        outcome(lambda d, m: tf.image.resize(tf.cast(SMALL * 9, d), [3, 3], m).dtype, dtype, method)
        for dtype in ("float16", "float64", "int8", "int32", "int64", "uint16", "bfloat16", "bool")
        for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3")
    ]


@program
def aspect_ratios(tf):
    rng = np.random.default_rng(10)  # the facts do not depend on the order of programs
    wide = tf.constant(rng.uniform(size=(2, 5, 8, 1)).astype(np.float32))
    return [
        tf.image.resize(wide, size, preserve_aspect_ratio=True).shape
        for size in ([4, 4], [10, 4], [4, 20], [3, 3], [7, 12], [1, 8])
    ] + [
        tf.image.resize(SMALL, [6, 6], "nearest", preserve_aspect_ratio=True),
        tf.image.resize(SMALL, tf.constant([6, 6]), preserve_aspect_ratio=True),
    ]


@program
def gradients_of_sizes(tf):
    methods = [m for m in METHODS if m != "area"]
    return [slope(tf, lambda x, m=m: tf.image.resize(x, [3, 6], m), SMALL) for m in methods] + [
        slope(tf, lambda x, m=m: tf.image.resize(x, [3, 3], m, antialias=True), SMALL)
        for m in methods
    ]


@program
def padded_to_size(tf):
    return [
        tf.image.resize_with_pad(SMALL, 6, 6), tf.image.resize_with_pad(SMALL, 3, 8),
        tf.image.resize_with_pad(BATCH, 8, 4, "nearest"),
        tf.image.resize_with_pad(BATCH, 4, 9, "bicubic", antialias=True),
        tf.image.resize_with_pad(BYTES, 7, 3),
        tf.image.resize_with_pad(BYTES, 2, 2, "area"),
        tf.image.resize_with_pad(BYTES, 5, 4, "nearest"),
    ]  # fmt: skip


@program
def in_functions_of_open_sizes(tf):
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 1]),
        tf.TensorSpec([2], tf.int32)])
    def resized(x, size):
        return (
            tf.image.resize(x, size), tf.image.resize(x, size, "area"),
            tf.image.resize(x, size, "bicubic"),
            tf.image.resize(x, size, "lanczos3", antialias=True),
            tf.image.resize(x, size, preserve_aspect_ratio=True),
            tf.image.resize_with_pad(x, 4, 5), tf.image.resize_with_crop_or_pad(x, 5, 5),
        )  # fmt: skip

    return [resized(BATCH, tf.constant([3, 9])), resized(SMALL[None, ..., :1], tf.constant([8, 4]))]


@program
def boxes_resized(tf):
    boxes = [[0.0, 0.0, 1.0, 1.0], [0.2, 0.1, 0.7, 0.9], [-0.3, 0.4, 1.2, 0.6],
        [0.9, 0.8, 0.1, 0.2]]
    rows = [0, 1, 1, 0]
    crop = tf.image.crop_and_resize
    return [
        crop(BATCH, boxes, rows, [3, 4]), crop(BATCH, boxes, rows, [1, 1]),
        crop(BATCH, boxes, rows, [3, 2], "nearest"),
            crop(BATCH, boxes, rows, [2, 1], "nearest", 0.5),
        crop(BATCH, boxes, rows, [2, 2], extrapolation_value=-1.0),
        crop(BYTES[None], boxes[:2], [0, 0], [4, 4]),
            crop(BYTES[None], boxes[:2], [0, 0], (2, 3), "nearest"),
        crop(BATCH, np.zeros((0, 4), np.float32), np.zeros(0, np.int32), [2, 2]),
    ]  # fmt: skip


@program
def boxes_resized_slopes(tf):
    boxes = tf.constant([[0.1, 0.05, 0.93, 0.9], [0.2, 0.1, 0.7, 0.9]])

    def of_image(x):
        return tf.image.crop_and_resize(x, boxes, [0, 1], [3, 4])

    def of_boxes(b):
        return tf.image.crop_and_resize(tf.constant(BATCH), b, [0, 1], [3, 4])

    return [slope(tf, of_image, BATCH), slope(tf, of_boxes, boxes)]


@program
def boxes_resized_refusals(tf):
    crop, box = tf.image.crop_and_resize, [[0.0, 0.0, 1.0, 1.0]]
    return [
        raised(crop, BATCH, box, [2], [2, 2]), raised(crop, BATCH, box, [0], [0, 2]),
        raised(crop, BATCH, box, [0, 1], [2, 2]), raised(crop, SMALL, box, [0], [2, 2]),
        raised(crop, BATCH, box, [0], [2, 2], "cubic"),
        raised(crop, BATCH, [[0.0, 1.0]], [0], [2, 2]),
    ]  # fmt: skip


@program
def patches(tf):
    def of(x, sizes, strides, rates, padding):
        return tf.image.extract_patches(
            x, sizes=[1, *sizes, 1], strides=[1, *strides, 1], rates=[1, *rates, 1], padding=padding
        )

    x = tf.constant(np.arange(60, dtype=np.float32).reshape(1, 5, 6, 2))
    return [
        of(x, (2, 3), (1, 1), (1, 1), "VALID"), of(x, (2, 3), (2, 2), (1, 1), "SAME"),
        of(x, (2, 2), (1, 2), (2, 1), "VALID"), of(x, (3, 3), (3, 3), (1, 2), "SAME"),
        of(tf.cast(x, tf.int32), (5, 6), (1, 1), (1, 1), "VALID"),
        of(tf.cast(x, tf.uint8), (1, 2), (4, 4), (1, 1), "SAME"),
        of(x, (6, 6), (1, 1), (1, 1), "VALID"),
        slope(tf, lambda x: of(x, (2, 3), (1, 2), (1, 1), "VALID"), x),
        raised(tf.image.extract_patches, x[0], [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
        raised(tf.image.extract_patches, x, [2, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
        raised(of, x, (2, 2), (1, 1), (1, 1), "FULL"),
        raised(of, x, (2, 2), (0, 1), (1, 1), "SAME"),
    ]  # fmt: skip


@program
def glimpses(tf):
    x = tf.constant(np.arange(40, dtype=np.float32).reshape(2, 5, 4, 1))
    glimpse = tf.image.extract_glimpse
    return [
        glimpse(x, [3, 2], [[0.0, 0.0], [0.3, -0.4]], noise="zero"),
        glimpse(x, [2, 2], [[0.9, 0.9], [-1.0, -1.0]], noise="zero"),
        glimpse(x, [2, 2], [[1.0, 2.0], [-1.0, 0.0]], normalized=False, noise="zero"),
        glimpse(x, [2, 3], [[1.0, 2.0], [0.0, 0.0]], centered=False, normalized=False,
            noise="zero"),
        glimpse(x, [2, 3], [[0.5, 0.2], [0.0, 0.7]], centered=False, normalized=True, noise="zero"),
        glimpse(x, [3, 3], [[0.5, 0.2], [0.0, 0.7]], noise="uniform").shape,
        raised(glimpse, x, [3, 2], [[0.0, 0.0]]), raised(glimpse, x, [3], [[0.0, 0.0], [0.0, 0.0]]),
        raised(glimpse, x, [0, 2], [[0.0, 0.0], [0.0, 0.0]]),
    ]  # fmt: skip


@program
def refusals(tf):
    resize, pad = tf.image.resize, tf.image.resize_with_pad
    return [
        raised(resize, SMALL, [2, 2], "cubic"), raised(resize, SMALL, [2]),
        raised(resize, SMALL, 2),
        raised(resize, SMALL, [2, 2, 2]), raised(resize, SMALL, [0, 2]),
        raised(resize, SMALL, [-1, 2]),
        raised(resize, SMALL[0], [2, 2]), raised(resize, SMALL[None, None], [2, 2]),
        raised(resize, SMALL, [2.5, 2]), raised(resize, SMALL[:0], [2, 2]),
        raised(resize, SMALL, ["a", "b"]), raised(resize, SMALL, [0, 2], "area"),
        raised(resize, SMALL, [0, 2], "lanczos3"), raised(resize, SMALL, [0, 2], "nearest"),
        raised(resize, SMALL, [0, 2], "bicubic"),
        raised(pad, SMALL, 0, 2), raised(pad, SMALL, 2, -2), raised(pad, SMALL[0], 2, 2),
    ]  # fmt: skip
