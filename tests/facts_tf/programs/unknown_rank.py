"""Functions, variables and Python functions whose tensors have a rank that only a call knows."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def listing(f):
    return len(f.pretty_printed_concrete_signatures().split("Input Parameters:")) - 1


@program
def a_function_of_any_rank(tf):
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(x):
        return tf.reduce_sum(x), x + 1.0

    return [f(tf.constant(1.0)), f(tf.ones([2])), f(tf.ones([2, 1])), f(tf.ones([3]))]


@program
def shape_omitted_by_name(tf):
    f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec(shape=None, dtype=tf.int32)])
    return f(tf.constant(1)), f(tf.constant([1, 2])), f([[3]]), f(np.int32(4))


@program
def wrong_dtypes_of_any_rank(tf):
    f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec(None, tf.int32)])
    return raised(f, tf.constant(1.0)), raised(f), raised(f, tf.constant(1), tf.constant(2))


@program
def two_arguments_of_any_rank(tf):
    spec = tf.TensorSpec(None, tf.float32)
    f = tf.function(lambda x, y: x + y, input_signature=[spec, spec])
    return f(tf.ones([2, 3]), tf.ones([3])), f(tf.constant(1.0), tf.ones([2]))


@program
def nested_arguments_of_any_rank(tf):
    spec = {"a": tf.TensorSpec(None, tf.float32), "b": tf.TensorSpec([None], tf.float32)}
    f = tf.function(lambda d: (d["a"], d["b"] * 2), input_signature=[spec])
    return f({"a": tf.ones([2, 1]), "b": tf.ones([3])}), f({"a": tf.constant(1.0), "b": [1.0]})


@program
def the_signature_of_any_rank(tf):
    f = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec(None, tf.float32)])
    f(tf.ones([2])), f(tf.ones([2, 2]))
    concrete = f.get_concrete_function()
    (args, kwargs) = concrete.structured_input_signature
    return args[0].shape, args[0].dtype, kwargs, f.input_signature[0].shape


@program
def a_concrete_function_of_any_rank(tf):
    f = tf.function(lambda x: tf.reduce_sum(x), input_signature=[tf.TensorSpec(None, tf.float32)])
    g = f.get_concrete_function()
    return g(tf.ones([2])), g(tf.ones([2, 2])), g(tf.constant(1.0))


@program
def a_concrete_function_for_a_spec_of_any_rank(tf):
    f = tf.function(lambda x: tf.reduce_sum(x))
    g = f.get_concrete_function(tf.TensorSpec(None, tf.float32))
    return g(tf.ones([2])), g(tf.ones([2, 2])), f.experimental_get_tracing_count()


@program
def a_gradient_of_any_rank(tf):
    f = tf.function(lambda x: tf.reduce_sum(x * x), input_signature=[tf.TensorSpec(None)])
    found = []
    for value in (3.0, [1.0, 2.0], [[1.0], [2.0]]):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        found.append(tape.gradient(y, x))
    return found


@program
def a_function_of_any_rank_in_another(tf):
    inner = tf.function(lambda x: tf.reduce_sum(x), input_signature=[tf.TensorSpec(None)])
    outer = tf.function(lambda x: inner(x) + inner(x[0]))
    return outer(tf.ones([2, 3])), outer(tf.ones([2]))


@program
def a_method_of_any_rank(tf):
    class M(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
        def f(self, x):
            return x + 1

    m = M()
    return m.f(tf.constant(1.0)), m.f(tf.ones([2]))


@program
def variables_of_any_shape(tf):
    v = tf.Variable([1.0], shape=tf.TensorShape(None))
    found = [v.shape, v.read_value()]
    v.assign([[1.0, 2.0]])
    found += [v.shape, v.read_value(), v + 1.0, v.numpy()]
    v.assign(3.0)
    found += [v * 2.0, tf.shape(v), v.get_shape()]
    return found


@program
def variables_of_any_shape_refuse_dtypes(tf):
    v = tf.Variable([1.0], shape=tf.TensorShape(None))
    return raised(v.assign, tf.constant([1])), raised(v.assign_add, [1.0, 2.0, 3.0])


@program
def variables_of_any_shape_read_in_a_function(tf):
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    f = tf.function(lambda: tf.reduce_sum(v * 2.0))
    found = [f()]
    v.assign([[1.0, 2.0], [3.0, 4.0]])
    found.append(f())
    v.assign(5.0)
    return [*found, f()]


@program
def variables_of_any_shape_assigned_in_a_function(tf):
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))

    @tf.function
    def f(x):
        v.assign(x)
        return v.read_value()

    found = [f(tf.ones([2])), f(tf.ones([2, 2])), f(tf.constant(1.0))]
    return [*found, v.read_value()]


@program
def variables_of_any_shape_grown_in_a_function(tf):
    v = tf.Variable(tf.zeros([0, 2]), shape=tf.TensorShape(None))

    @tf.function
    def f(x):
        v.assign(tf.concat([v, x], 0))
        return tf.shape(v)

    return f(tf.ones([1, 2])), f(tf.ones([3, 2])), v.read_value()


@program
def gradients_of_variables_of_any_shape(tf):
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))

    def loss():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * v)
        return tape.gradient(y, v)

    g = tf.function(loss)
    found = [loss(), g()]
    v.assign([[3.0]])
    return [*found, loss(), g()]


@program
def variables_of_any_shape_as_arguments(tf):
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    f = tf.function(lambda w: w + 1.0)
    found = [f(v)]
    v.assign([[5.0]])
    return [*found, f(v)]


def python_function(tf, kind, use, value=(1.0, 2.0)):
    shapes = []

    @tf.function
    def f(x):
        call = getattr(tf, kind)
        y = call(lambda t: t * np.float32(2), [x], tf.float32)
        shapes.append(y.shape)
        result = use(y)
        shapes.append(y.shape)
        return result

    return outcome(f, tf.constant(value)), shapes


KINDS = ("py_function", "numpy_function")


@program
def unshaped_results_returned(tf):
    return [python_function(tf, kind, lambda y: y) for kind in KINDS]


@program
def unshaped_results_set_shape(tf):
    def use(y):
        y.set_shape([2])
        return y + 1.0

    return [python_function(tf, kind, use) for kind in KINDS]


@program
def unshaped_results_set_partial_shape(tf):
    def use(y):
        y.set_shape([None])
        return y + 1.0, tf.reduce_sum(y)

    return [python_function(tf, kind, use) for kind in KINDS]


@program
def unshaped_results_set_shape_of_another(tf):
    def use(y):
        y.set_shape(tf.TensorShape(None))
        before = y.shape
        y.set_shape(tf.constant([1.0, 2.0]).shape)
        return y * 1.0, before.rank is None

    return [python_function(tf, kind, use) for kind in KINDS]


@program
def unshaped_results_ensured(tf):
    return [python_function(tf, k, lambda y: tf.ensure_shape(y, [None]) + 1.0) for k in KINDS]


@program
def unshaped_results_ensured_wrongly(tf):
    return [python_function(tf, k, lambda y: tf.ensure_shape(y, [None, 2]) + 1.0) for k in KINDS]


@program
def unshaped_results_reshaped(tf):
    return [
        python_function(tf, "py_function", lambda y: tf.reshape(y, [-1]) + 1.0),
        python_function(tf, "py_function", lambda y: tf.reshape(y, [2, 1]) + 1.0),
        python_function(tf, "numpy_function", lambda y: tf.reshape(y, (1, -1))),
        python_function(tf, "numpy_function", lambda y: tf.reshape(y, [7])),
    ]


@program
def unshaped_results_given_to_another(tf):
    def use(y):
        z = tf.numpy_function(lambda a: a + np.float32(1), [y], tf.float32)
        return z

    def settled(y):
        z = tf.py_function(lambda a: tf.reduce_sum(a), [y], tf.float32)
        z.set_shape([])
        return z + 1.0

    return [python_function(tf, kind, use) for kind in ("py_function", "numpy_function")] + [
        python_function(tf, kind, settled) for kind in ("py_function", "numpy_function")
    ]


@program
def unshaped_results_of_several(tf):
    @tf.function
    def f(x):
        a, b = tf.py_function(lambda t: (t + 1.0, tf.size(t)), [x], [tf.float32, tf.int32])
        b.set_shape([])
        return a, b + 1

    @tf.function
    def g(x):
        a, b = tf.numpy_function(lambda t: (t + t, t[None]), [x], [tf.float32, tf.float32])
        a.set_shape([2])
        return {"a": a * 1.0, "b": [b]}

    return f(tf.constant([1.0, 2.0])), g(tf.constant([1.0, 2.0]))


@program
def unshaped_results_differ_between_calls(tf):
    @tf.function
    def f(n):
        return tf.numpy_function(lambda k: np.ones([2] * int(k), np.float32), [n], tf.float32)

    results = [f(tf.constant(n)) for n in range(3)]
    return results, f.experimental_get_tracing_count()


@program
def gradients_of_unshaped_results(tf):
    def slope(settle):
        @tf.function
        def f(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = settle(tf.py_function(lambda t: t * t, [x], tf.float32))
                z = tf.reduce_sum(y * 2.0)
            return tape.gradient(z, x)

        return f(tf.constant([1.0, 2.0]))

    def set_shape(y):
        y.set_shape([2])
        return y

    return (
        slope(set_shape),
        slope(lambda y: tf.ensure_shape(y, [None])),
        slope(lambda y: tf.reshape(y, [-1])),
        slope(lambda y: tf.reshape(y, [2, 1])),
    )


@program
def unshaped_results_in_a_map(tf):
    def element(x):
        y = tf.py_function(lambda t: t * 2.0, [x], tf.float32)
        y.set_shape([2])
        return y + 1.0

    def returned(x):
        return tf.numpy_function(lambda t: t * np.float32(2), [x], tf.float32)

    data = tf.data.Dataset.from_tensor_slices(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    first, second = data.map(element), data.map(returned)
    return (
        list(first),
        first.element_spec.shape,
        list(second),
        second.element_spec.shape,
        list(second.batch(2)),
        list(second.map(lambda y: tf.ensure_shape(y, [2]) * 2.0)),
    )


@program
def unshaped_results_of_pairs_in_a_map(tf):
    def load(x, i):
        image, label = tf.py_function(lambda a, b: (a * 2.0, b), [x, i], [tf.float32, tf.int32])
        image.set_shape([2])
        label.set_shape([])
        return image, label

    data = tf.data.Dataset.from_tensor_slices((tf.ones([4, 2]), tf.range(4))).map(load).batch(2)
    return list(data), [s.shape for s in data.element_spec]


@program
def unshaped_results_in_a_branch(tf):
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            y = tf.py_function(lambda t: t * 2, [x], tf.float32)
        else:
            y = x
        y.set_shape([2])
        return y

    @tf.function
    def g(x):
        y = tf.py_function(lambda t: t * 2, [x], tf.float32)
        y.set_shape([2])
        if tf.reduce_sum(x) > 0:
            y = y + 1.0
        return y

    positive, negative = tf.constant([1.0, 2.0]), tf.constant([-1.0, 0.0])
    return outcome(f, positive), outcome(f, negative), g(positive), g(negative)


@program
def unshaped_results_returned_from_a_branch(tf):
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            return tf.numpy_function(lambda t: t[None], [x], tf.float32)
        return x

    return f(tf.constant([1.0, 2.0])), f(tf.constant([-1.0, 0.0]))


@program
def unshaped_results_in_a_loop(tf):
    @tf.function
    def f(x):
        total = tf.constant(0.0)
        for _ in tf.range(3):
            y = tf.py_function(lambda t: t * 2, [x], tf.float32)
            y.set_shape([2])
            total += tf.reduce_sum(y)
        return total

    return f(tf.constant([1.0, 2.0]))


@program
def set_shape_eagerly(tf):
    x = tf.ones([2, 3])
    y = tf.py_function(lambda t: t + 1, [x], tf.float32)
    return (
        outcome(x.set_shape, [2, 3]),
        outcome(x.set_shape, [None, 3]),
        outcome(x.set_shape, None),
        raised(x.set_shape, [3, 2]),
        raised(x.set_shape, [2]),
        outcome(y.set_shape, [2, 3]),
        y.shape,
    )


@program
def set_shape_in_a_function(tf):
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def f(x):
        shapes.append(x.shape)
        x.set_shape([None, 3])
        shapes.append(x.shape)
        x.set_shape([2, None])
        shapes.append(x.shape)
        shapes.append(raised(x.set_shape, [4, 3]))
        shapes.append(raised(x.set_shape, [2]))
        return x * 2.0

    return f(tf.ones([2, 3])), shapes


@program
def unshaped_results_are_discarded(tf):
    log = []

    @tf.function
    def f(x):
        tf.numpy_function(lambda t: log.append(int(t)) or t, [x], tf.int32)
        return x + 1

    return f(tf.constant(1)), f(tf.constant(2)), log
