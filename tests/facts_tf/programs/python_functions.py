"""Python code inside functions, and the exceptions that it raises."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


@program
def py_function_runs_each_call(tf):
    log = []

    def python(x):
        log.append(int(x))
        return x * 2

    @tf.function
    def f(x):
        return tf.py_function(python, [x], tf.int32)

    return f(tf.constant(1)), f(tf.constant(2)), log, f.experimental_get_tracing_count()


@program
def py_function_shapes(tf):
    shapes = []

    @tf.function
    def f(x):
        y = tf.py_function(lambda t: t + 1, [x], tf.int32)
        shapes.append(y.shape)
        return y

    return f(tf.constant([1, 2])), shapes


@program
def py_function_several_results(tf):
    @tf.function
    def f(x):
        return tf.py_function(lambda t: (t + 1, tf.cast(t, tf.float32)), [x], [tf.int32, "float32"])

    return f(tf.constant(1))


@program
def py_function_with_a_spec(tf):
    log = []

    def python(x):
        log.append(type(x).__name__)
        return x * 2

    @tf.function
    def f(x):
        return tf.py_function(python, [x], tf.TensorSpec([], tf.int32))

    return f(tf.constant(1)), f(tf.constant(2)), len(log), f.experimental_get_tracing_count()


@program
def py_function_wrong_dtype_with_a_spec(tf):
    spec = tf.TensorSpec([], tf.int32)
    f = tf.function(lambda x: tf.py_function(lambda t: t * 0.5, [x], spec))
    return outcome(f, tf.constant(1.0))


@program
def error_kinds_in_py_function(tf):
    kinds = [ValueError, TypeError, KeyError, ZeroDivisionError, StopIteration, RuntimeError]
    kinds += [NotImplementedError, MemoryError, IndexError, AttributeError, OSError]

    def failing(kind):
        def fail(x):
            raise kind("no")

        @tf.function
        def run(x):
            tf.py_function(fail, [x], [])

        return run

    return [(kind, raised(failing(kind), tf.constant(1.0))) for kind in kinds]


@program
def errors_of_tensorflow_in_py_function(tf):
    def fail(x):
        return tf.reshape(x, [7])

    f = tf.function(lambda x: tf.py_function(fail, [x], tf.TensorSpec([7], tf.float32)))
    return raised(f, tf.constant(1.0))


@program
def py_function_wrong_dtype(tf):
    f = tf.function(lambda x: tf.py_function(lambda t: t * 0.5, [x], tf.int32))
    g = tf.function(lambda x: tf.numpy_function(lambda a: a * 0.5, [x], tf.float32))
    return outcome(f, tf.constant(1.0)), outcome(g, tf.constant(1.0, tf.float64))


@program
def py_function_gradient(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.py_function(lambda t: t * t, [x], tf.float32)
    return y, tape.gradient(y, x)


@program
def numpy_function_values(tf):
    kinds = []

    def python(a, b):
        kinds.append((type(a).__name__, type(b).__name__))
        return np.outer(a, b)

    f = tf.function(lambda a, b: tf.numpy_function(python, [a, b], tf.float32))
    return f(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])), kinds


@program
def numpy_function_has_no_gradient(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.numpy_function(lambda a: a * a, [x], tf.float32)
    return outcome(tape.gradient, y, x)


@program
def error_in_py_function(tf):
    def fail(x):
        raise ValueError("no")

    f = tf.function(lambda x: tf.py_function(fail, [x], tf.float32))
    return raised(f, tf.constant(1.0)), raised(lambda: tf.py_function(fail, [1.0], tf.float32))


@program
def error_kinds_in_numpy_function(tf):
    kinds = [ValueError, TypeError, KeyError, ZeroDivisionError, StopIteration, RuntimeError]
    kinds += [NotImplementedError, MemoryError, IndexError, AttributeError, OSError]

    def failing(kind):
        def fail(x):
            raise kind("no")

        @tf.function
        def run(x):
            tf.numpy_function(fail, [x], [])

        return run

    return [(kind, raised(failing(kind), tf.constant(1.0))) for kind in kinds]


@program
def python_errors_while_tracing(tf):
    def failing(kind):
        def fail(x):
            raise kind("no")

        return tf.function(fail)

    class OwnError(Exception):
        def __init__(self, text, code=3):
            super().__init__(text)
            self.code = code

    kinds = [ValueError, TypeError, KeyError, ZeroDivisionError, RuntimeError, OwnError]
    kinds += [NotImplementedError, AssertionError, IndexError, AttributeError]
    return [(kind, raised(failing(kind), tf.constant(1.0))) for kind in kinds]


@program
def py_function_of_composite_tensors(tf):
    ragged, sparse = tf.ragged.constant([[1, 2, 3], [4]]), tf.SparseTensor([[0]], [1], [2])
    rows = tf.RaggedTensorSpec([None, None], tf.int32)

    def called(func, inp, tout):
        def f():
            return tf.py_function(func, inp, tout)

        return outcome(f), outcome(tf.function(f))

    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x.flat_values)
        y = tf.py_function(lambda r: r * 2.0, [x], tf.RaggedTensorSpec([None, None]))
    return (
        called(lambda r: r.values + 1, [ragged], tf.int32),
        called(lambda r: r + 1, [ragged], rows),
        called(lambda r, n: [r + n, n], [ragged, 5], [rows, tf.int32]),
        called(lambda r: (r,), [ragged], [rows]),
        called(tf.sparse.to_dense, [sparse], tf.int32),
        called(lambda r: r.to_tensor(), [ragged], rows),
        called(lambda r: r, [ragged], tf.int32),
        tape.gradient(y.flat_values, x.flat_values),
    )
