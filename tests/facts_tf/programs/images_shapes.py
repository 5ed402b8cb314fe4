"""td.image: crops, pads, flips and turns, random ones of given seeds too."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

SMALL = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
BATCH = np.arange(40, dtype=np.uint8).reshape(2, 4, 5, 1)


@program
def flips(tf):
    i = tf.image
    return [
        f(x)
        for f in (i.flip_left_right, i.flip_up_down, i.transpose, i.rot90)
        for x in (SMALL, BATCH)
    ]


@program
def turns(tf):
    return [
        tf.image.rot90(x, k) for k in (0, 1, 2, 3, 4, -1, tf.constant(2)) for x in (SMALL, BATCH)
    ]


@program
def turns_told_late(tf):
    @tf.function
    def turned(x, k):
        return tf.image.rot90(x, k)

    return [turned(tf.constant(SMALL), tf.constant(k)) for k in range(5)]


@program
def random_flips(tf):
    i = tf.image
    square = np.arange(27, dtype=np.int32).reshape(3, 3, 3)
    many = np.arange(48, dtype=np.float32).reshape(8, 2, 3, 1)
    return [
        f(x, seed=(1, n))
        for f in (i.stateless_random_flip_left_right, i.stateless_random_flip_up_down)
        for x in (square, many)
        for n in range(3)
    ]


@program
def seldom_random_flips(tf):
    found = tf.image.random_flip_left_right(SMALL)
    same = np.array_equal(found, SMALL) or np.array_equal(found, SMALL[:, ::-1])
    many = tf.image.random_flip_up_down(BATCH)
    one = [np.array_equal(m, b) or np.array_equal(m, b[::-1]) for m, b in zip(many, BATCH)]
    return [same, one, many.dtype, many.shape]


@program
def centres(tf):
    fractions = (1.0, 0.9, 0.75, 0.5, 0.3, 0.1)
    return [tf.image.central_crop(x, f) for x in (SMALL, BATCH) for f in fractions] + [
        tf.image.central_crop(SMALL, 1),
        raised(tf.image.central_crop, SMALL, 0.0),
        raised(tf.image.central_crop, SMALL, 1.5),
        raised(tf.image.central_crop, SMALL[0], 0.5),
    ]


@program
def crops(tf):
    crop = tf.image.crop_to_bounding_box
    return [
        crop(SMALL, 1, 0, 2, 3), crop(SMALL, 0, 1, 4, 1), crop(BATCH, 1, 2, 3, 3),
        crop(SMALL, tf.constant(1), tf.constant(0), tf.constant(2), tf.constant(2)),
        raised(crop, SMALL, -1, 0, 2, 2), raised(crop, SMALL, 0, -1, 2, 2),
        raised(crop, SMALL, 3, 0, 2, 2), raised(crop, SMALL, 0, 2, 2, 2),
        raised(crop, SMALL, 0, 0, 0, 2), raised(crop, SMALL, 0, 0, 2, 0),
        raised(crop, SMALL[0], 0, 0, 2, 2), raised(crop, SMALL[:0], 0, 0, 2, 2),
    ]  # fmt: skip


@program
def pads(tf):
    pad = tf.image.pad_to_bounding_box
    return [
        pad(SMALL, 1, 0, 6, 3), pad(SMALL, 0, 2, 4, 6), pad(BATCH, 1, 2, 6, 8),
        pad(SMALL, tf.constant(1), tf.constant(0), tf.constant(6), tf.constant(3)),
        raised(pad, SMALL, -1, 0, 6, 6), raised(pad, SMALL, 0, -1, 6, 6),
        raised(pad, SMALL, 3, 0, 6, 6), raised(pad, SMALL, 0, 0, 3, 6),
        raised(pad, SMALL[0], 0, 0, 6, 6),
    ]  # fmt: skip


@program
def crops_or_pads(tf):
    fit = tf.image.resize_with_crop_or_pad
    sizes = ((2, 5), (5, 2), (6, 6), (1, 1), (4, 3), (3, 4))
    return [fit(x, *size) for x in (SMALL, BATCH) for size in sizes] + [
        fit(SMALL, tf.constant(6), 2),
        raised(fit, SMALL, 0, 2), raised(fit, SMALL, 2, -1), raised(fit, SMALL[0], 2, 2),
    ]  # fmt: skip


@program
def random_crops(tf):
    crop = tf.image.stateless_random_crop
    return [crop(SMALL, [2, 2, 2], (3, n)) for n in range(5)] + [
        crop(BATCH, [1, 2, 3, 1], (5, 6)),
        crop(SMALL, tf.constant([2, 2, 1]), tf.constant([1, 2])),
        crop(SMALL, [4, 3, 2], [1, 2]),
        tf.image.random_crop(SMALL, [2, 2, 2]).shape,
        raised(crop, SMALL, [5, 2, 2], (1, 2)),
        raised(crop, SMALL, [2, 2], (1, 2)),
        raised(tf.image.random_crop, SMALL, [5, 2, 2]),
    ]


@program
def in_functions_of_open_sizes(tf):
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 1], tf.uint8)])
    def shaped(x):
        i = tf.image
        return (
            i.flip_left_right(x), i.flip_up_down(x), i.rot90(x), i.rot90(x, 2), i.transpose(x),
            i.central_crop(x, 0.5), i.crop_to_bounding_box(x, 1, 1, 2, 2),
            i.pad_to_bounding_box(x, 1, 1, 8, 8), i.resize_with_crop_or_pad(x, 3, 6),
            i.stateless_random_crop(x, [1, 2, 2, 1], [1, 2]),
            i.stateless_random_flip_left_right(x, [3, 4]),
        )  # fmt: skip

    return [shaped(BATCH), shaped(BATCH[:, :3])]


@program
def refused_when_it_runs(tf):
    @tf.function(input_signature=[tf.TensorSpec([None, None, 1])])
    def cropped(x):
        return tf.image.crop_to_bounding_box(x, 1, 1, 2, 2)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 1])])
    def padded(x):
        return tf.image.pad_to_bounding_box(x, 1, 1, 3, 3)

    return [
        outcome(f, tf.zeros([*size, 1])) for f in (cropped, padded) for size in ((3, 3), (2, 2))
    ]


@program
def flips_of_other_ranks(tf):
    i = tf.image
    fs = (i.flip_left_right, i.flip_up_down, i.rot90, i.transpose, i.random_flip_left_right)
    return [raised(f, x) for f in fs for x in (SMALL[0], SMALL[None, None], SMALL[:0])]
