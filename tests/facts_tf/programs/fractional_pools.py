"""tf.nn.fractional_max_pool and fractional_avg_pool. Random windows differ: what holds for all of
them is told, and windows of one size are compared."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

IMAGES = np.random.default_rng(1).standard_normal((2, 9, 7, 3)).astype(np.float32)


def expected(images, rows, columns, largest, overlapping):
    """The pools of windows with these bounds, by loops."""
    height, width = images.shape[1:3]
    found = np.empty((images.shape[0], len(rows) - 1, len(columns) - 1, images.shape[3]))
    for i in range(len(rows) - 1):
        for j in range(len(columns) - 1):
            window = images[
                :,
                rows[i] : min(rows[i + 1] + overlapping, height),
                columns[j] : min(columns[j + 1] + overlapping, width),
            ]
            found[:, i, j] = window.max((1, 2)) if largest else window.mean((1, 2))
    return found


def sizes(bounds):
    """What is the same for all windows of an axis."""
    widths = np.diff(bounds)
    return bool(bounds[0] == 0), int(bounds[-1]), sorted(set(widths.tolist())), len(widths)


@program
def random_windows(tf):
    found = []
    for largest, pool in ((True, tf.nn.fractional_max_pool), (False, tf.nn.fractional_avg_pool)):
        for pseudo_random in (False, True):
            for overlapping in (False, True):
                def f(x, pool=pool, ways=(pseudo_random, overlapping)):
                    return pool(x, [1.0, 1.44, 1.6, 1.0], *ways, seed=5)

                traced = tf.function(f, input_signature=[tf.TensorSpec([None, None, None, 3])])
                for y, rows, columns in (f(IMAGES), traced(IMAGES)):
                    wanted = expected(IMAGES, rows, columns, largest, overlapping)
                    close = np.allclose(y, wanted, atol=1e-6)
                    found.append((close, sizes(rows), sizes(columns), y.shape.as_list()))
    return found


@program
def windows_of_one_size(tf):
    x = tf.constant(IMAGES[:, :8, :6])
    whole = tf.cast(x * 10.0, tf.int32)
    ratio = [1.0, 2.0, 3.0, 1.0]
    return [
        (pool(x, ratio), pool(x, ratio, True, True), pool(whole, ratio),
         pool(whole, ratio, False, True))
        for pool in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool)
    ]


@program
def gradients(tf):
    found = []
    for pool in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool):
        for x in (tf.constant(IMAGES[:1, :4, :4, :1]), tf.zeros([1, 4, 4, 1])):
            for overlapping in (False, True):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = pool(x, [1.0, 2.0, 2.0, 1.0], overlapping=overlapping)[0]
                found.append(tape.gradient(y * y + y, x))
    return found


@program
def refused(tf):
    pool = tf.nn.fractional_max_pool
    return (
        pool(IMAGES, 1.5)[0].shape.as_list(), pool(IMAGES, 2)[0].shape.as_list(),
        raised(pool, IMAGES, 0.5), raised(pool, IMAGES, [1.0, 1.5, 1.5, 2.0]),
        raised(pool, IMAGES, [1.5, 1.5]), raised(pool, IMAGES, "a"), raised(pool, IMAGES, 20.0),
        raised(pool, IMAGES[0], 1.5), outcome(pool, tf.constant(IMAGES, tf.float16), 1.5),
    )  # fmt: skip
