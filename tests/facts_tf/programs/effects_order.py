"""The order of effects; assertions."""

from __future__ import annotations

from tests.facts_tf.registry import outcome, program, raised


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
