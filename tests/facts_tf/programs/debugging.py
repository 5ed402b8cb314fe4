"""Assertions: what they give, eagerly and in functions, and the types of their errors."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def both(tf, check, *args):
    """What a check raises eagerly and in a function of open shapes."""
    arrays = [np.asarray(a) for a in args]
    open_specs = [tf.TensorSpec([None] * a.ndim, a.dtype) for a in arrays]

    @tf.function(input_signature=open_specs)
    def f(*tensors):
        check(*tensors)
        return tensors[0]

    return raised(check, *map(tf.constant, arrays)), raised(f, *map(tf.constant, arrays))


COMPARISONS = (
    "assert_equal", "assert_none_equal", "assert_less", "assert_less_equal", "assert_greater",
    "assert_greater_equal",
)  # fmt: skip
SIGNS = ("assert_positive", "assert_negative", "assert_non_negative", "assert_non_positive")


@program
def comparisons(tf):
    pairs = [([1, 2], [1, 3]), ([1, 2], [3, 4]), ([3, 2], [1, 1]), ([], []), ([[1], [2]], [5])]
    return {
        name: [both(tf, getattr(tf.debugging, name), *map(np.int32, pair)) for pair in pairs]
        for name in COMPARISONS
    }


@program
def signs(tf):
    values = [[1, 2], [-1, -2], [0, 1], [0, -1], []]
    return {
        name: [both(tf, getattr(tf.debugging, name), np.float32(v)) for v in values]
        for name in SIGNS
    }


@program
def near(tf):
    def check(x, y):
        tf.debugging.assert_near(x, y)

    def loose(x, y):
        tf.debugging.assert_near(x, y, rtol=0.1, atol=0.0)

    one = np.float32([1.0, 2.0])
    shifts = np.float32([0.0, 1e-7, 0.05, 0.5])
    return [both(tf, f, one, one + shift) for f in (check, loose) for shift in shifts]


@program
def finite(tf):
    def check(x):
        return tf.debugging.check_numerics(x, "here")

    def all_finite(x):
        return tf.debugging.assert_all_finite(x, "here")

    values = [[1.0, 2.0], [np.nan, 1.0], [np.inf], [np.nan, -np.inf], []]
    return [
        (both(tf, f, np.float32(v)), outcome(f, tf.constant(v, tf.float32)))
        for v in values
        for f in (check, all_finite)
    ]


@program
def kinds(tf):
    d = tf.debugging
    return [
        d.assert_integer(tf.constant(1)), raised(d.assert_integer, tf.constant(1.0)),
        d.assert_type(tf.constant(1.0), tf.float32),
        raised(d.assert_type, tf.constant(1.0), tf.int32),
        d.assert_same_float_dtype([tf.constant(1.0)]).name,
        d.assert_same_float_dtype([tf.constant(1.0, tf.float64)], tf.float64).name,
        d.assert_same_float_dtype().name,
        raised(d.assert_same_float_dtype, [tf.constant(1.0), tf.constant(1.0, tf.float64)]),
        raised(d.assert_same_float_dtype, [tf.constant(1)]),
        d.is_numeric_tensor(tf.constant(1)), d.is_numeric_tensor(1),
        d.is_numeric_tensor(tf.constant(True)),
        raised(d.assert_proper_iterable, 3), raised(d.assert_proper_iterable, [3]),
        raised(d.assert_proper_iterable, "ab"), raised(d.assert_proper_iterable, tf.constant([1])),
    ]  # fmt: skip


@program
def ranks(tf):
    d = tf.debugging
    x = tf.zeros((2, 3))
    return [
        d.assert_rank(x, 2), raised(d.assert_rank, x, 1), d.assert_rank_at_least(x, 2),
        raised(d.assert_rank_at_least, x, 3), d.assert_rank_in(x, [1, 2]),
        raised(d.assert_rank_in, x, [0, 1]), raised(d.assert_scalar, x),
        raised(d.assert_scalar, tf.constant(1)),
        raised(tf.function(lambda y: d.assert_rank(y, 3)), x),
    ]  # fmt: skip


@program
def shapes(tf):
    def check(*wanted):
        return lambda *tensors: tf.debugging.assert_shapes(list(zip(tensors, wanted)))

    a, b = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
    return [
        both(tf, check(("N", "M"), ("M", "N")), a, b),
        both(tf, check(("N", "M"), ("N", "M")), a, b),
        both(tf, check((2, "M"), ("M", 2)), a, b),
        both(tf, check((2, "M"), ("M", 3)), a, b),
        both(tf, check((..., "M"), ("*", "N")), a, b),
        both(tf, check((None, "M"), (".", "M")), a, b),
        both(tf, check((None, "M"), ("M", ".")), a, b),
        both(tf, check(("N",)), a),
        both(tf, check("NM"), a),
        both(tf, check(("N", ...)), a),
        both(tf, check(3), np.zeros(3, np.float32)),
        both(tf, check(4), np.zeros(3, np.float32)),
        *(both(tf, check(w), np.zeros((), np.float32)) for w in ((), (1,), (3,), "N", ("*", 1))),
    ]


@program
def nothing_is_given(tf):
    d, x = tf.debugging, tf.constant([1.0])
    return [
        d.assert_equal(x, x), d.assert_positive(x), d.assert_near(x, x), d.assert_shapes([]),
        d.assert_less(x, x + 1, message="m"),
    ]  # fmt: skip


@program
def top_level_names(tf):
    return [
        raised(tf.assert_equal, 1, 2), raised(tf.assert_less, 1, 1),
        raised(tf.assert_greater, 1, 1), raised(tf.assert_rank, 1, 1),
    ]  # fmt: skip


@program
def in_a_loop(tf):
    @tf.function
    def f(n):
        total = 0
        for i in tf.range(n):
            tf.debugging.assert_less(i, 3, message="too far")
            total += i
        return total

    return f(tf.constant(3)), raised(f, tf.constant(5))


@program
def ranks_that_a_run_tells(tf):
    x = tf.ones([2, 3])

    @tf.function
    def within(rank):
        tf.debugging.assert_rank_at_least(x, rank - 1)
        tf.debugging.assert_rank_in(x, [rank, 5, 2 * rank])
        tf.debugging.assert_rank(x, rank)
        return rank

    @tf.function
    def own_rank(rank):
        tf.debugging.assert_rank_at_least(x, tf.rank(tf.ones([1] * rank)))
        return tf.rank(x)

    return [
        within(tf.constant(2)), raised(within, tf.constant(3)), raised(within, tf.constant(1)),
        raised(within, tf.constant([2])), raised(within, tf.constant(2.0)),
        own_rank(1), own_rank(2), raised(own_rank, 3),
    ]  # fmt: skip
