"""Side effects, variables, captured values and Python code inside functions."""

from __future__ import annotations

import gc
import weakref

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


@program
def effects_in_order(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f():
        a = v.read_value()
        v.assign(10.0)
        b = v.read_value()
        v.assign_add(5.0)
        return a, b, v.read_value(), v + 0.0

    return f(), v


@program
def control_dependencies_order_effects(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f():
        with tf.control_dependencies([v.assign(7.0)]):
            return tf.identity(v)

    return f(), v


@program
def group_and_no_op(tf):
    v, w = tf.Variable(1), tf.Variable(2)

    @tf.function
    def f():
        done = tf.group(v.assign_add(1), w.assign_add(1))
        with tf.control_dependencies([done]):
            return v + w

    return f(), v, w


@program
def group_gives_no_value(tf):
    return outcome(lambda: tf.group(tf.constant(1))), outcome(lambda: tf.no_op())


@program
def unused_assignment_still_happens(tf):
    v = tf.Variable(1)

    @tf.function
    def f(x):
        v.assign_add(x)
        return x

    f(tf.constant(2))
    f(tf.constant(3))
    return v


@program
def assert_stops_what_follows(tf):
    v = tf.Variable(0)

    @tf.function
    def f(x):
        v.assign_add(1)
        tf.Assert(x > 0, [x])
        v.assign_add(10)
        return x

    return raised(f, tf.constant(-1)), v, outcome(f, tf.constant(1)), v


@program
def assert_statement(tf):
    @tf.function
    def f(x):
        assert x > 0, "must be positive"
        return x * 2

    return outcome(f, tf.constant(1)), raised(f, tf.constant(-1))


@program
def tf_assert(tf):
    @tf.function
    def f(x):
        tf.Assert(tf.reduce_all(x > 0), [x])
        return x

    return f(tf.constant([1, 2])), raised(f, tf.constant([1, -2])), raised(tf.Assert, False, [1])


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
def running_eagerly(tf):
    log = []

    @tf.function
    def f(x):
        log.append(tf.executing_eagerly())
        return x + 1

    f(tf.constant(1))
    tf.config.run_functions_eagerly(True)
    try:
        eager = f(tf.constant(1)), tf.config.functions_run_eagerly(), f(tf.constant(2))
    finally:
        tf.config.run_functions_eagerly(False)
    f(tf.constant(1))
    return eager, log, f.experimental_get_tracing_count()


@program
def running_eagerly_with_tensor_conditions(tf):
    @tf.function
    def f(x):
        total = tf.constant(0)
        for i in tf.range(x):
            if i % 2 == 0:
                continue
            total += i
        return total

    tf.config.run_functions_eagerly(True)
    try:
        return f(tf.constant(6)), f.experimental_get_tracing_count()
    finally:
        tf.config.run_functions_eagerly(False)


@program
def arguments_are_not_kept_alive(tf):
    class Thing:
        pass

    thing = Thing()
    f = tf.function(lambda t, x: x)
    f(thing, tf.constant(1))
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    return reference() is None


@program
def instances_with_traces_are_freed(tf):
    class Scale:
        @tf.function
        def apply(self, x):
            return x * 2

    scale = Scale()
    scale.apply(tf.constant(1))
    reference = weakref.ref(scale)
    del scale
    gc.collect()
    return reference() is None


@program
def a_dead_captured_variable(tf):
    v = tf.Variable(3.0)

    def make():
        w = tf.Variable(2.0)
        return tf.function(lambda x: x * w * v).get_concrete_function(tf.TensorSpec([], tf.float32))

    c = make()
    gc.collect()
    return outcome(c, tf.constant(2.0))


@program
def identity_keeps_a_value(tf):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f():
        before = tf.identity(v)
        v.assign_add([1.0, 1.0])
        return before, v.read_value()

    return f(), v


@program
def random_numbers_differ_per_call(tf):
    f = tf.function(lambda: tf.random.uniform([4]))
    a, b = f(), f()
    return bool(tf.reduce_all(a == b)), a.shape, a.dtype


@program
def seeded_random_numbers_repeat(tf):
    f = tf.function(lambda: tf.random.normal([3], seed=1))
    tf.random.set_seed(5)
    first = f()
    tf.random.set_seed(5)
    g = tf.function(lambda: tf.random.normal([3], seed=1))
    return bool(tf.reduce_all(first == g()))


@program
def stateless_random_numbers(tf):
    f = tf.function(lambda s: tf.random.stateless_uniform([3], seed=s))
    seed = tf.constant([1, 2])
    return f(seed), bool(tf.reduce_all(f(seed) == tf.random.stateless_uniform([3], seed=[1, 2])))


@program
def nested_functions_share_a_variable(tf):
    v = tf.Variable(0)

    @tf.function
    def inner(x):
        v.assign_add(x)
        return v.read_value()

    @tf.function
    def outer(x):
        a = inner(x)
        v.assign_add(100)
        return a, inner(x)

    return outer(tf.constant(1)), outer(tf.constant(2)), v


@program
def variable_passed_to_an_inner_function(tf):
    @tf.function
    def inner(v, x):
        v.assign_add(x)

    v, w = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def outer(x):
        inner(v, x)
        inner(w, x * 10)
        return v + w

    return outer(tf.constant(1.0)), inner.experimental_get_tracing_count()


@program
def name_scopes(tf):
    @tf.function
    def f(x):
        with tf.name_scope("part"):
            return x + 1

    return f(tf.constant(1))


@program
def attribute_assignment_leaks(tf):
    class Box:
        pass

    box = Box()

    @tf.function
    def f(x):
        box.value = x + 1
        return box.value * 2

    return f(tf.constant(1)), raised(lambda: box.value + 1)


@program
def exception_caught_inside(tf):
    @tf.function
    def f(x):
        try:
            y = tf.reshape(x, [7])
        except ValueError:
            y = tf.zeros([1])
        return y

    return outcome(f, tf.ones([3]))


@program
def finally_runs_while_tracing(tf):
    log = []

    @tf.function
    def f(x):
        try:
            return x + 1
        finally:
            log.append("done")

    return f(tf.constant(1)), f(tf.constant(2)), log
