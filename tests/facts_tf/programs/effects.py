"""Side effects, variables made in functions, captured values."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


@program
def python_effects_happen_per_trace(tf):
    log = []

    @tf.function
    def f(x):
        log.append("traced")
        return x + 1

    for value in (1, 2, 3.0, 4.0):
        f(tf.constant(value))
    return log


@program
def variable_created_on_the_first_call(tf):
    log = []

    class Counter:
        count = None

        @tf.function
        def __call__(self, by):
            log.append("traced")
            if self.count is None:
                self.count = tf.Variable(10)
            return self.count.assign_add(by)

    counter = Counter()
    results = [counter(tf.constant(n)) for n in (1, 2, 3)]
    return results, log, counter.count


@program
def traces_of_a_function_that_creates_variables(tf):
    state = []

    @tf.function
    def f(x):
        if not state:
            state.append(tf.Variable(2.0))
        return x * state[0]

    counts = []
    for value in (1.0, 2.0, 3.0):
        f(tf.constant(value))
        counts.append(f.experimental_get_tracing_count())
    return counts


@program
def variable_created_on_every_call(tf):
    @tf.function
    def f(x):
        return tf.Variable(1.0) + x

    return raised(f, tf.constant(1.0))


@program
def variable_created_on_a_later_call(tf):
    state = {}

    @tf.function
    def f(x, name):
        if name not in state:
            state[name] = tf.Variable(1.0)
        return state[name] + x

    one = tf.constant(1.0)
    return outcome(f, one, "a"), outcome(f, one, "a"), raised(f, one, "b"), outcome(f, one, "a")


@program
def initial_value_from_an_argument(tf):
    state = []

    @tf.function
    def f(x):
        if not state:
            state.append(tf.Variable(x))
        return state[0] + x

    return outcome(f, tf.constant(2.0))


@program
def initial_value_from_a_lambda(tf):
    state = []

    @tf.function
    def f(x):
        if not state:
            state.append(tf.Variable(lambda: tf.ones([2])))
        return state[0] * x

    return f(tf.constant(2.0)), f(tf.constant(3.0))


@program
def variable_in_init_scope(tf):
    state = []

    @tf.function
    def f(x):
        with tf.init_scope():
            eager = tf.executing_eagerly()
            state.append(tf.Variable(5.0) if not state else state[0])
        return state[0] + x, eager, tf.executing_eagerly()

    return f(tf.constant(1.0))


@program
def init_scope_gives_eager_tensors(tf):
    seen = []

    @tf.function
    def f(x):
        with tf.init_scope():
            t = tf.constant(2.0) * 3.0
            seen.append(float(t))
        return x + t

    return f(tf.constant(1.0)), seen


@program
def executing_eagerly_inside_and_outside(tf):
    seen = []
    f = tf.function(lambda: seen.append(tf.executing_eagerly()))
    f()
    return seen, tf.executing_eagerly()


@program
def captured_tensor(tf):
    t = tf.constant([1.0, 2.0])
    f = tf.function(lambda x: x + t)
    first = f(tf.constant(1.0))
    t = tf.constant([5.0, 6.0])
    return first, f(tf.constant(1.0))


@program
def captured_array_is_frozen(tf):
    a = np.array([1.0, 2.0], np.float32)
    f = tf.function(lambda x: x + a)
    first = f(tf.constant(1.0))
    a[0] = 10.0
    return first, f(tf.constant(1.0)), f(tf.constant([1.0, 1.0]))


@program
def captured_variable_is_live(tf):
    v = tf.Variable(1.0)
    f = tf.function(lambda x: x * v)
    first = f(tf.constant(2.0))
    v.assign(5.0)
    return first, f(tf.constant(2.0)), f.experimental_get_tracing_count()


@program
def captured_list_is_read_while_tracing(tf):
    items = [1]
    f = tf.function(lambda x: x + sum(items))
    first = f(tf.constant(1))
    items.append(10)
    return first, f(tf.constant(1)), f(tf.constant(1.0))


@program
def list_mutated_in_a_function(tf):
    items = []

    @tf.function
    def f(x):
        items.append(x)
        return x

    f(tf.constant(1))
    return len(items), outcome(lambda: items[0] + 1), outcome(lambda: bool(items[0]))


@program
def leaked_tensor_in_another_function(tf):
    leaked = []

    @tf.function
    def leak(x):
        leaked.append(x * 2)
        return x

    leak(tf.constant(1.0))
    use = tf.function(lambda y: y + leaked[0])
    return raised(use, tf.constant(1.0)), raised(tf.abs, leaked[0]), raised(float, leaked[0])


@program
def symbolic_tensor_as_python_value(tf):
    errors = {}

    @tf.function(autograph=False)
    def f(x):
        errors["hasattr numpy"] = hasattr(x, "numpy")
        for convert in (bool, float, int, len, list, np.asarray, hash, str, repr):
            errors[convert.__name__] = raised(convert, x)
        errors["numpy"] = raised(lambda: x.numpy())
        errors["range"] = raised(range, x)
        errors["in"] = raised(lambda: 1 in x)
        errors["if"] = raised(lambda: 1 if x > 0 else 2)
        return x

    f(tf.constant(1))
    return errors


@program
def iterating_a_tensor_without_autograph(tf):
    seen = []

    @tf.function(autograph=False)
    def f(x):
        seen.append(raised(lambda: [t for t in x]))
        seen.append(raised(lambda: [*x]))
        return x

    f(tf.constant([1, 2]))
    return seen
