"""tf.gradients and tf.hessians."""

from __future__ import annotations

from tests.facts_tf.registry import program, raised


@program
def gradients_of_one_tensor(tf):
    @tf.function
    def f(x):
        return tf.gradients(x * x, [x]), tf.gradients(x * x * x, x), tf.gradients(x, x)

    return f(tf.constant(3.0))


@program
def gradients_are_summed_over_targets(tf):
    @tf.function
    def f(x, e):
        return tf.gradients([x * x, e * x], [x, e])

    return f(tf.constant(3.0), tf.constant([1.0, 2.0]))


@program
def gradients_by_what_was_computed(tf):
    @tf.function
    def f(x):
        y = tf.sin(x)
        z = y * y
        return tf.gradients(z, [y, x]), tf.gradients(z * y, z)

    return f(tf.constant(0.5))


@program
def gradients_weighted(tf):
    @tf.function
    def f(x, e):
        y = x * e
        return (
            tf.gradients(y, [x, e], grad_ys=[tf.constant([2.0, 3.0])]),
            tf.gradients([y, x * x], [x], grad_ys=[None, tf.constant(10.0)]),
        )

    return f(tf.constant(3.0), tf.constant([1.0, 2.0]))


@program
def gradients_that_are_missing(tf):
    @tf.function
    def f(x, e):
        found = tf.gradients(x * x, [x, e])
        zeros = tf.gradients(x * x, [x, e], unconnected_gradients="zero")
        return [g is None for g in found], zeros

    return f(tf.constant(3.0), tf.constant([1.0, 2.0]))


@program
def gradients_that_stop(tf):
    @tf.function
    def f(x):
        y = x * 2.0
        z = y * y * x
        stopped = tf.gradients(z, [x, y], stop_gradients=[y])
        return stopped, tf.gradients(z, [x, y])

    return f(tf.constant(3.0))


@program
def gradients_of_variables(tf):
    v = tf.Variable(2.0)

    @tf.function
    def f(x):
        y = v * v * x
        return tf.gradients(y, [v, x]), tf.gradients(y, v)

    return f(tf.constant(3.0))


@program
def gradients_of_gradients(tf):
    @tf.function
    def f(x):
        first = tf.gradients(x**4, x)[0]
        second = tf.gradients(first, x)[0]
        return first, second, tf.gradients(second, x)

    return f(tf.constant(2.0))


@program
def gradients_through_control_flow(tf):
    @tf.function
    def f(x):
        if x > 1.0:
            y = x * x
        else:
            y = 3.0 * x
        z = y
        for _ in tf.range(3):
            z = z * x
        return tf.gradients(z, [x, y])

    return f(tf.constant(2.0)), f(tf.constant(0.5))


@program
def gradients_inside_a_loop(tf):
    @tf.function
    def f(x):
        total = tf.constant(0.0)
        for i in tf.range(3):
            y = x * x * tf.cast(i, tf.float32)
            total += tf.gradients(y, x)[0]
        return total

    return f(tf.constant(2.0))


@program
def gradients_outside_of_functions(tf):
    x = tf.constant(1.0)
    return raised(tf.gradients, x * x, x), raised(tf.hessians, x * x, x)


@program
def gradients_refuse(tf):
    @tf.function
    def f(x):
        return tf.gradients(x, x, unconnected_gradients="none of these")

    return raised(f, tf.constant(1.0))


@program
def hessians_of_a_vector(tf):
    @tf.function
    def f(x):
        return tf.hessians(tf.reduce_sum(x * x * x), x)

    return f(tf.constant([1.0, 2.0, 3.0]))


@program
def hessians_of_a_matrix(tf):
    @tf.function
    def f(x):
        return tf.hessians(tf.reduce_sum(tf.matmul(x, x) * x), [x])

    return f(tf.constant([[1.0, 2.0], [3.0, 4.0]]))


@program
def hessians_of_several(tf):
    @tf.function
    def f(x, e):
        return tf.hessians(x * x * x * tf.reduce_sum(e * e), [x, e])

    return f(tf.constant(2.0), tf.constant([1.0, -1.0]))


@program
def hessians_of_an_open_shape(tf):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return tf.hessians(tf.reduce_sum(x[1:] * x[:-1] ** 2), x)

    return f(tf.constant([1.0, 2.0, 3.0])), f(tf.constant([1.0, 2.0]))


@program
def hessians_of_a_linear_function(tf):
    @tf.function
    def f(x):
        return tf.hessians(tf.reduce_sum(x * 2.0), x)

    return raised(f, tf.constant([1.0, 2.0]))


@program
def gradients_by_tensors_of_the_trace_around(tf):
    @tf.function
    def f(x):
        z = x * x

        @tf.function
        def inside():
            return tf.gradients(z * 3.0 + x, [x, z])

        return inside()

    return f(tf.constant([2.0, 3.0]))


@program
def gradients_in_a_custom_gradient_that_is_traced(tf):
    @tf.custom_gradient
    def power(x):
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))

        @tf.function
        def grad(dy):
            (found,) = tf.gradients(y, [x], dy)
            return tf.where(tf.math.is_finite(found), found, 0.0)

        return y, grad

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(x)
        return tape.gradient(y, x)

    return f(tf.constant([2.0, 3.0]))
