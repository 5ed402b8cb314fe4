"""Gradient tapes: what is watched, sources, targets, second derivatives."""

from __future__ import annotations

from tests.facts_tf.helpers import slope
from tests.facts_tf.registry import outcome, program, raised


@program
def tape_outside_a_function(tf):
    f = tf.function(lambda x: x * x * x)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(x)
    return y, tape.gradient(y, x), f.experimental_get_tracing_count()


@program
def tape_across_two_functions(tf):
    f, g = tf.function(lambda x: x * x), tf.function(lambda x: 3.0 * x)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = g(f(x)) + x
    return tape.gradient(y, x)


@program
def variable_inside_a_function(tf):
    v = tf.Variable(3.0)
    f = tf.function(lambda x: x * v * v)
    with tf.GradientTape() as tape:
        y = f(tf.constant(2.0))
    return tape.gradient(y, v), [w.shape for w in tape.watched_variables()]


@program
def unconnected(tf):
    x, y = tf.Variable(1.0), tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        z = x * 2.0
    zero = tf.UnconnectedGradients.ZERO
    return tape.gradient(z, y), tape.gradient(z, y, unconnected_gradients=zero)


@program
def used_twice(tf):
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * 2.0
    return tape.gradient(y, x), raised(tape.gradient, y, x)


@program
def persistent_used_twice(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = y * y
    return tape.gradient(y, x), tape.gradient(z, x), tape.gradient(z, y)


@program
def not_watched(tf):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x)


@program
def integers_are_not_differentiated(tf):
    x = tf.constant(2)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return outcome(tape.gradient, y, x)


@program
def watching_what_is_no_tensor(tf):
    tape = tf.GradientTape()
    with tape:
        return raised(tape.watch, 3.0), raised(tape.watch, [tf.constant(1.0)])


@program
def through_casts(tf):
    x = tf.Variable(2.5)
    with tf.GradientTape(persistent=True) as tape:
        double = tf.cast(x, tf.float64) * 3.0
        integer = tf.cast(tf.cast(x, tf.int32), tf.float32)
    return tape.gradient(double, x), tape.gradient(integer, x)


@program
def of_vectors_sums_components(tf):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x)


@program
def with_output_gradients(tf):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return (
        tape.gradient(y, x, output_gradients=tf.constant([1.0, 10.0])),
        outcome(tape.gradient, y, x, output_gradients=tf.constant([1.0, 10.0, 3.0])),
    )


@program
def of_several_targets(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        a, b = x * x, 3.0 * x
    return tape.gradient([a, b], x)


@program
def structures_of_sources(tf):
    w = {"a": tf.Variable(1.0), "b": [tf.Variable(2.0), tf.Variable(3.0)]}
    with tf.GradientTape() as tape:
        y = w["a"] * w["b"][0] + w["b"][1]
    return tape.gradient(y, w)


@program
def stop_gradient(tf):
    return slope(tf, lambda x: x * tf.stop_gradient(x), 3.0)


@program
def stop_recording(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        with tape.stop_recording():
            z = y * y
    return tape.gradient(z, x)


@program
def reset(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        z = x * 3.0
    return tape.gradient(z, x), y


@program
def gradient_inside_its_own_block(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x * x
        g = tape.gradient(y, x)
    return g, tape.gradient(g, x)


@program
def second_derivative(tf):
    @tf.function
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x * x * x
            g = inner.gradient(y, x)
        return g, outer.gradient(g, x)

    return f(tf.constant(2.0))
