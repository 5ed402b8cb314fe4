"""Gradients of control flow, custom gradients, gradients and variables."""

from __future__ import annotations

from tests.facts_tf.helpers import slope
from tests.facts_tf.registry import outcome, program, raised


@program
def through_a_branch(tf):
    def f(x):
        if x > 0:
            return x * x
        return -3.0 * x

    return slope(tf, f, 2.0, -2.0, 0.0)


@program
def through_a_while(tf):
    def f(x):
        y = x
        while y < 100.0:
            y = y * y
        return y

    return slope(tf, f, 3.0, 200.0)


@program
def through_a_for_with_break(tf):
    def f(x):
        y = x
        for i in tf.range(10):
            if y > 50.0:
                break
            y = y * x
        return y

    return slope(tf, f, 3.0, 60.0)


@program
def through_a_tensor_array(tf):
    def f(x):
        ta = tf.TensorArray(tf.float32, size=3)
        for i in tf.range(3):
            ta = ta.write(i, x * tf.cast(i + 1, tf.float32))
        return tf.reduce_sum(ta.stack() ** 2)

    return slope(tf, f, 2.0)


@program
def eager_tape_over_a_function_with_a_loop(tf):
    @tf.function
    def power(x, n):
        y = tf.ones_like(x)
        for _ in tf.range(n):
            y = y * x
        return y

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = power(x, tf.constant(5))
    return y, tape.gradient(y, x)


@program
def branch_that_ignores_the_source(tf):
    def f(x):
        if x > 0:
            return x
        return tf.constant(1.0)

    return slope(tf, f, 2.0, -2.0)


@program
def custom_gradient(tf):
    @tf.custom_gradient
    def clipped(x):
        def grad(upstream):
            return tf.clip_by_value(upstream, -1.0, 1.0)

        return x * 10.0, grad

    return slope(tf, lambda x: clipped(x) * 5.0, 2.0)


@program
def custom_gradients_that_call_their_functions(tf):
    @tf.custom_gradient
    def sine(x):
        return tf.sin(x), lambda dy: dy * cosine(x)

    @tf.custom_gradient
    def cosine(x):
        return tf.cos(x), lambda dy: -dy * sine(x)

    def slopes(x):
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = sine(x)
            slope = first.gradient(y, x)
        return y, slope, second.gradient(slope, x)

    return slopes(tf.constant(0.5)), tf.function(slopes)(tf.constant(0.5))


@program
def custom_gradient_of_two(tf):
    @tf.custom_gradient
    def f(a, b):
        return a * b, lambda dy: (dy * 100.0, dy * 1000.0)

    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(a, b)
    return y, tape.gradient(y, [a, b])


@program
def custom_gradient_with_too_few(tf):
    @tf.custom_gradient
    def f(a, b):
        return a * b, lambda dy: dy

    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(a, b)
    return raised(tape.gradient, y, [a, b])


@program
def custom_gradient_over_a_variable(tf):
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * 2.0, [dy * 50.0 for _ in variables]

        return x * v, grad

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(x)
    return outcome(lambda: tape.gradient(y, [x, v]))


@program
def custom_gradient_over_a_variable_unprepared(tf):
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda dy: dy * 2.0

    x = tf.Variable(2.0)

    def run():
        with tf.GradientTape() as tape:
            y = f(x)
        return tape.gradient(y, [x, v])

    return outcome(run)


@program
def custom_gradient_second_order(tf):
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 2.0 * x

    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = square(x)
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


@program
def assigned_variable(tf):
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        v.assign(v * 5.0)
        y = v * v
    return tape.gradient(y, v)


@program
def assign_add_result(tf):
    v, x = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        v.assign_add(x)
        y = v * x
    return outcome(tape.gradient, y, [v, x])


@program
def variable_read_between_assignments(tf):
    v = tf.Variable(2.0)

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            a = v * v
            v.assign_add(10.0)
            b = a * v
        return tape.gradient(b, v)

    return f()


@program
def not_trainable(tf):
    v = tf.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v
    with tf.GradientTape() as watched:
        watched.watch(v)
        z = v * v
    return tape.gradient(y, v), watched.gradient(z, v)


@program
def accessed_variables_off(tf):
    v = tf.Variable(2.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    return tape.gradient(y, v)
