"""Running eagerly, lifetimes, random numbers, functions that share variables."""

from __future__ import annotations

import gc
import weakref

from tests.facts_tf.registry import outcome, program, raised


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
