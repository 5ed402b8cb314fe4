"""Jacobians; gradients at kinks, ties and singular points; their dtypes."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.helpers import slope
from tests.facts_tf.registry import outcome, program


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


@program
def of_running_products_with_zeros(tf):
    x = tf.constant([2.0, 0.0, 3.0, 0.0, 5.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.cumprod(x)
    return tape.gradient(y, x)


@program
def optimizers_of_rows_that_are_read_twice(tf):
    """Squares of gradients: of the sum of a row's gradients, or the sum of their squares."""
    found = []
    for optimizer in (
        tf.keras.optimizers.Adam(0.1, epsilon=1e-3),
        tf.keras.optimizers.Adagrad(0.1),
        tf.keras.optimizers.RMSprop(0.1),
        tf.keras.optimizers.SGD(0.1, momentum=0.5),
    ):
        table = tf.Variable([[1.0], [2.0]])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table, [0, 0, 1])))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        found.append(np.round(table.numpy(), 4).ravel().tolist())
    return found


@program
def of_complex_functions(tf):
    x = tf.constant([1 + 2j, -0.5 + 1j, 2 - 1j], tf.complex128)
    y = tf.constant([0.5 - 1j, 1 + 1j, -2 + 0.5j], tf.complex128)
    functions = {
        "cumprod": lambda a, b: tf.math.cumprod(a) * b,
        "xlogy": tf.math.xlogy,
        "xlog1py": tf.math.xlog1py,
        "multiply_no_nan": tf.math.multiply_no_nan,
        "swish": lambda a, b: tf.nn.swish(a) + b,
        "divide": lambda a, b: a / b,
        "power": lambda a, b: a**2 * b,
    }
    found = {}
    for name, f in functions.items():
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = tf.reduce_sum(tf.math.real(f(x, y)))
        found[name] = tape.gradient(z, [x, y])
    return found


@program
def accumulators_inside_one_another(tf):
    def products():
        x = tf.constant(1.1)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as outer:
            with tf.autodiff.ForwardAccumulator(x, tf.constant(2.0)) as inner:
                y = x**3
        first = inner.jvp(y)
        second = outer.jvp(first)
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as inner:
                y = x**3
        return first, second, inner.jvp(outer.jvp(y)), tape.gradient(inner.jvp(y), x)

    return outcome(products), outcome(tf.function(products))


@program
def jacobians_without_elements(tf):
    def f(x, at_once):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x**2
        return tape.batch_jacobian(y, x, experimental_use_pfor=at_once)

    x = tf.zeros([1, 0])
    return [(f(x, on), tf.function(f, autograph=False)(x, on)) for on in (True, False)]
