"""Loops with back_prop=False, and conditions of one element."""

from __future__ import annotations

from tests.facts_tf.registry import outcome, program


def slope(tf, f, at):
    with tf.GradientTape() as tape:
        tape.watch(at)
        y = f(at)
    return tape.gradient(y, at)


@program
def gradients_of_loops(tf):
    x, xs, off = tf.constant(2.0), tf.constant([1.0, 2.0, 3.0]), {"back_prop": False}
    limit, v1 = (lambda v: v < 8.0), tf.compat.v1
    inner = lambda: tf.while_loop(limit, lambda v: (v * v,), [x], **off)[0]
    functions = [
        (lambda a: tf.while_loop(limit, lambda v: (v * v,), [a], **off)[0] + a, x),
        (lambda a: tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * tf.while_loop(
            limit, lambda v: (v * v,), [a], **off)[0]), [0, a])[1], x),
        (lambda a: a * tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * a), [0, a],
                                     **off)[1], x),
        (lambda a: a * tf.map_fn(lambda v: v * v, a, **off), xs),
        (lambda a: a * tf.scan(lambda c, v: c * v, a, **off), xs),
        (lambda a: a * tf.foldl(lambda c, v: c * v, a, **off), xs),
        (lambda a: a * tf.foldr(lambda c, v: c * v, a, **off), xs),
        (lambda a: a * v1.while_loop(limit, lambda v: (v * v,), [a], **off), x),
        (lambda a: a * v1.map_fn(lambda v: v * v, a, **off), xs),
    ]  # fmt: skip
    return [
        (slope(tf, f, at), tf.function(slope)(tf, f, at)) for f, at in functions
    ], tf.function(inner)()


@program
def conditions_of_one_element(tf):
    def whole(a, shape):
        found = tf.while_loop(lambda v: tf.reshape(v < 8.0, shape), lambda v: (v * v,), [a])[0]
        found = tf.cond(tf.reshape(a > 0.0, shape), lambda: found + 1.0, lambda: found)
        while tf.reshape(found < 100.0, shape):
            found = found * 2.0
        return found

    def of_open_shape(a, n):
        return tf.while_loop(lambda v: tf.fill([n], v < 8.0), lambda v: (v * v,), [a])[0]

    x = tf.constant(2.0)
    shaped = [outcome(f, x, shape) for shape in ([1], [1, 1]) for f in (whole, tf.function(whole))]
    return [*shaped, tf.function(of_open_shape)(x, tf.constant(1))]
