"""td.random: stateless gamma, Poisson and binomial numbers, states, seeds, shuffled positions."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def numbers(tf, draw, *cases):
    """What each set of keyword arguments gives, eagerly and in a function."""
    eager = [outcome(draw, **case) for case in cases]
    return [eager, [tf.function(lambda c=case: draw(**c))() for case in cases]]


@program
def stateless_gamma(tf):
    gamma = tf.random.stateless_gamma
    return [
        numbers(
            tf, gamma,
            {"shape": [7], "seed": [1, 2], "alpha": 2.5},
            {"shape": [4, 3], "seed": [3, -4], "alpha": [0.3, 1.0, 20.0]},
            {"shape": [3, 2], "seed": [5, 6], "alpha": [0.5, 4.0], "beta": 3.0},
            {"shape": [2, 2, 3], "seed": [5, 6], "alpha": [[0.5], [4.0]], "beta": [1.0, 2.0, 3.0]},
            {"shape": [5], "seed": [7, 8], "alpha": 1.7, "dtype": tf.float64},
            {"shape": [5], "seed": [7, 8], "alpha": 1.7, "dtype": tf.float16},
            {"shape": [6], "seed": [7, 8], "alpha": 0.01},
            {"shape": [3], "seed": [7, 8], "alpha": 1e6},
            {"shape": [0, 2], "seed": [7, 8], "alpha": [1.0, 2.0]},
            {"shape": [2], "seed": np.int32([9, 10]), "alpha": 3.0},
        ),
        raised(gamma, [3], [1, 2], [1.0, 2.0]), raised(gamma, [2], [1, 2, 3], 1.0),
        raised(gamma, [2], [1, 2], 1.0, dtype=tf.int32),
    ]  # fmt: skip


@program
def gradients_of_gamma(tf):
    def slopes(alpha, beta, shape):
        a, b = tf.constant(alpha), tf.constant(beta)
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            x = tf.random.stateless_gamma(shape, [11, 12], a, b)
            loss = tf.reduce_sum(x * x)
        return x, tape.gradient(loss, [a, b])

    given = (
        (2.0, 1.0, [3]), ([0.2, 1.0, 3.0, 50.0], 2.0, [4]), ([0.7, 8.0], [1.0, 0.5], [3, 2]),
        ([0.05, 0.5], 1.0, [2, 2]), (20.0, 1.0, [2]),
    )  # fmt: skip
    return [[slopes(*g) for g in given], [tf.function(slopes)(*g) for g in given[:3]]]


@program
def stateless_poisson(tf):
    poisson = tf.random.stateless_poisson
    return [
        numbers(
            tf, poisson,
            {"shape": [8], "seed": [1, 2], "lam": 2.5},
            {"shape": [8], "seed": [1, 2], "lam": 25.0},
            {"shape": [5, 3], "seed": [3, 4], "lam": [0.3, 9.9, 100.0]},
            {"shape": [8], "seed": [1, 2], "lam": np.float64(12.0), "dtype": tf.float64},
            {"shape": [8], "seed": [1, 2], "lam": np.float64(3.0), "dtype": tf.int64},
            {"shape": [4], "seed": [1, 2], "lam": 1e5, "dtype": tf.float32},
            {"shape": [4], "seed": [1, 2], "lam": 0.0},
            {"shape": [0], "seed": [1, 2], "lam": 1.0},
        ),
        raised(poisson, [3], [1, 2], [1.0, 2.0]), raised(poisson, [2], [1], 1.0),
    ]  # fmt: skip


@program
def stateless_binomial(tf):
    binomial = tf.random.stateless_binomial
    return [
        numbers(
            tf, binomial,
            {"shape": [8], "seed": [1, 2], "counts": 10.0, "probs": 0.3},
            {"shape": [8], "seed": [1, 2], "counts": 100.0, "probs": 0.3},
            {"shape": [8], "seed": [1, 2], "counts": 100.0, "probs": 0.8},
            {"shape": [8], "seed": [1, 2], "counts": 10.0, "probs": 0.9},
            {"shape": [4, 3], "seed": [3, 4], "counts": [5.0, 50.0, 500.0], "probs": 0.5},
            {"shape": [3, 2, 2], "seed": [3, 4], "counts": [[5.0], [60.0]], "probs": [0.2, 0.7]},
            {"shape": [4], "seed": [3, 4], "counts": 1000.0, "probs": np.float64(0.25),
             "output_dtype": tf.float64},
            {"shape": [4], "seed": [3, 4], "counts": [0.0, 5.0, 5.0, 7.0],
             "probs": [0.5, 0.0, 1.0, 1.5]},
        ),
        raised(binomial, [3], [1, 2], [1.0, 2.0], 0.5),
    ]  # fmt: skip


@program
def generators(tf):
    g = tf.random.Generator.from_seed(77)
    drawn = [
        g.binomial([5], 20.0, 0.4), g.state.numpy(),
        g.binomial([3, 2], [8.0, 90.0], [0.5, 0.5]), g.state.numpy(), g.uniform([3]),
        g.binomial([2, 3], tf.constant(60.0, tf.float64), tf.constant(0.3, tf.float64), tf.float32),
        g.make_seeds(2), g.state.numpy(),
    ]  # fmt: skip
    first, second = g.split(2)
    kept = tf.random.Generator.from_key_counter(5, [3, 4], "philox")
    copy = tf.random.Generator(copy_from=kept)
    before = kept.normal([3])
    kept.reset_from_key_counter(6, [1, 2])
    return [
        drawn, first.state.numpy(), second.state.numpy(), first.algorithm, before,
        copy.normal([3]), kept.state.numpy(), kept.key.numpy(),
        tf.random.Generator.from_state([1, 2, 3], "philox").uniform([2]),
    ]  # fmt: skip


@program
def seeds(tf):
    r, e = tf.random, tf.random.experimental
    return [
        [r.create_rng_state(s, "philox") for s in (1234, -1, 2**64 + 5, [1, 2], [1, 2, 3, 4])],
        e.create_rng_state(7, r.Algorithm.PHILOX), [a.value for a in r.Algorithm],
        r.fold_in([1, 2], 3), r.fold_in(tf.constant([1, 2], tf.int64), tf.constant(9, tf.int64)),
        e.stateless_fold_in([1, 2], 3), r.split([1, 2], 3), e.stateless_split([5, 6]),
        tf.function(r.fold_in)(tf.constant([1, 2]), tf.constant(5)),
        e.Algorithm is r.Algorithm, e.Generator is r.Generator,
        raised(r.create_rng_state, 3, "none"), raised(r.create_rng_state, 3, 1.5),
    ]  # fmt: skip


@program
def shuffled_positions(tf):
    shuffled = tf.random.experimental.index_shuffle
    return [
        [shuffled(i, [5, 9], 9) for i in range(10)],
        shuffled(tf.range(20), [3, 4], 19), shuffled(tf.constant([1, 70000]), [3, 4], 100000),
        shuffled(tf.constant([1, 2], tf.int64), [3, 4], tf.constant([8, 9], tf.int64)),
        shuffled(tf.constant(3, tf.uint64), [1, 2], tf.constant(2**40 + 7, tf.uint64)),
        tf.function(lambda i: shuffled(i, [3, 4], 6))(tf.range(7)), shuffled(0, [1, 2], 0),
        tf.random_index_shuffle(tf.range(6), [1, 2, 3], 5),
        tf.random_index_shuffle(tf.range(6), [1, 2, 3], 5, rounds=8),
        raised(shuffled, [0, 1, 2], [[1, 2], [3, 4]], 5), raised(shuffled, [[0]], [1, 2], 5),
        raised(shuffled, 7, [1, 2], 5), raised(shuffled, [1.0], [1, 2], 5),
        [tf.random.experimental.stateless_shuffle(tf.range(n), [5, n]) for n in range(1, 12)],
        tf.random.experimental.stateless_shuffle([[1, 2], [3, 4], [5, 6]], [8, 9]),
        tf.function(tf.random.experimental.stateless_shuffle)(tf.range(9), tf.constant([1, 2])),
    ]  # fmt: skip


@program
def shapes_of_stateful(tf):
    r = tf.random
    return [
        r.gamma([4], [1.0, 2.0]).shape, r.gamma([], 1.0).shape,
        r.gamma([2, 3], [[1.0], [2.0]], [1.0, 2.0, 3.0]).shape,
        r.gamma([2], 1.0, dtype=tf.float64).dtype, r.poisson([4], [1.0, 2.0]).shape,
        r.poisson([], 3.0).dtype, r.poisson([3], 2.0, dtype=tf.int32).dtype,
        raised(r.gamma, [2], 1.0, dtype=tf.int32),
        raised(r.gamma, [2], [1.0, 2.0], [1.0, 2.0, 3.0]),
        r.stateless_parameterized_truncated_normal([4, 2], [1, 2], [0.0, 1.0]).shape,
        raised(r.stateless_parameterized_truncated_normal, [3], [1, 2], [0.0, 1.0]),
        raised(r.stateless_parameterized_truncated_normal, [2], [1, 2], 0.0, -1.0),
    ]  # fmt: skip
