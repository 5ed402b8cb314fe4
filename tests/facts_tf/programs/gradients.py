"""Gradient tapes, custom gradients, gradients of control flow."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def slope(tf, f, *values):
    """df/dx of a traced scalar function at float values."""

    @tf.function
    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return [outcome(g, tf.constant(v)) for v in values]


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


@program
def jacobians(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.stack([x[0] * x[1], x[0] + x[1], x[1] ** 2])
    return tape.jacobian(y, x), tape.jacobian(y, tf.constant(1.0))


@program
def batch_jacobian(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.batch_jacobian(y, x)


@program
def at_kinks(tf):
    functions = (tf.abs, tf.nn.relu, tf.sign, tf.floor, tf.round, lambda x: tf.maximum(x, 0.0))
    return [slope(tf, f, 0.0) for f in functions]


@program
def of_ties(tf):
    @tf.function
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            top, low = tf.reduce_max(x), tf.reduce_min(x)
        return tape.gradient(top, x), tape.gradient(low, x)

    return f(tf.constant([1.0, 3.0, 3.0, 1.0]))


@program
def of_maximum_ties(tf):
    a, b = tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        high, low = tf.maximum(a, b), tf.minimum(a, b)
    return tape.gradient(high, [a, b]), tape.gradient(low, [a, b])


@program
def at_singular_points(tf):
    functions = (tf.sqrt, tf.math.log, lambda x: x**0.5, lambda x: x / x, lambda x: x**2)
    return [slope(tf, f, 0.0) for f in functions]


@program
def where_with_nan_in_the_other_branch(tf):
    return slope(tf, lambda x: tf.where(x > 0.0, tf.sqrt(x), 0.0), 0.0, 4.0)


@program
def what_where_does_not_choose(tf):
    functions = {
        "rsqrt": tf.math.rsqrt, "log": tf.math.log, "power": lambda x: x**0.5,
        "over": lambda x: 1.0 / x,
        "reciprocal": tf.math.reciprocal, "asin": lambda x: tf.asin(x + 1.0), "norm": tf.norm,
        "log1p": lambda x: tf.math.log1p(x - 1.0), "acosh": lambda x: tf.acosh(x + 1.0),
    }  # fmt: skip
    return {
        name: slope(tf, lambda x, f=f: tf.where(x > 0.0, f(x), 0.0), 0.0)
        for name, f in functions.items()
    }


@program
def of_gather(tf):
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.gather(x, [0, 0, 2]) * tf.constant([1.0, 2.0, 3.0]))
        return tape.gradient(y, x)

    return outcome(lambda: tf.convert_to_tensor(f(tf.constant([1.0, 2.0, 3.0]))))


@program
def of_broadcasts(tf):
    a, b = tf.Variable([[1.0], [2.0]]), tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = a * b
    return tape.gradient(y, [a, b])


@program
def of_an_eager_constant_target(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        pass
    return tape.gradient(tf.constant(1.0), x)


@program
def of_a_target_that_is_the_source(tf):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(x, x)


@program
def of_numpy_targets(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * np.float32(3.0)
    return tape.gradient(y, x)


@program
def dtype_of_gradients(tf):
    results = []
    for dtype in ("float16", "float32", "float64", "bfloat16"):
        x = tf.Variable(2.0, dtype=dtype)
        with tf.GradientTape() as tape:
            y = x * x
        results.append(tape.gradient(y, x))
    return results


@program
def complex_gradients(tf):
    x = tf.constant(1.0 + 2.0j)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, tf.abs(x)
    return tape.gradient(y, x), tape.gradient(z, x)


@program
def inner_tape_in_a_traced_loop(tf):
    v = tf.Variable(4.0)

    @tf.function
    def descend(n):
        for _ in tf.range(n):
            with tf.GradientTape() as tape:
                loss = v * v
            v.assign_sub(0.25 * tape.gradient(loss, v))
        return v.read_value()

    return descend(tf.constant(3))
