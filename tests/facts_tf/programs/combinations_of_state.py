"""Structures as the state of loops, variables changed in loops and branches, and derivatives."""

from __future__ import annotations

import collections

from tests.facts_tf.registry import outcome, program

State = collections.namedtuple("State", "a b")


@program
def named_tuples_in_loops(tf):
    @tf.function
    def f(n):
        s = State(tf.constant(1.0), {"k": tf.constant([1, 2])})
        for i in tf.range(n):
            s = State(s.a * 2.0, {"k": s.b["k"] + i})
        return s.a, s.b["k"]

    staged = tf.while_loop(
        lambda s: s.a < 10.0, lambda s: (State(s.a * 2.0, s.b + 1),), (State(1.0, 0),)
    )
    return f(tf.constant(3)), staged


@program
def rows_as_the_state_of_a_loop(tf):
    @tf.function
    def f(rows, n):
        def body(i, rows):
            return i + 1, tf.IndexedSlices(rows.values * 2.0, rows.indices, rows.dense_shape)

        _, found = tf.while_loop(lambda i, rows: i < n, body, (tf.constant(0), rows))
        return tf.convert_to_tensor(found)

    rows = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2]))
    return f(rows, tf.constant(2)), f(rows, tf.constant(0))


@program
def optionals_of_iterators_in_loops(tf):
    @tf.function
    def f(count):
        iterator = iter(tf.data.Dataset.range(count))
        total = tf.constant(0, tf.int64)
        optional = iterator.get_next_as_optional()
        while optional.has_value():
            total += optional.get_value()
            optional = iterator.get_next_as_optional()
        return total

    return f(5), f(0)


@program
def parts_of_variables_in_loops(tf):
    v, w = tf.Variable(tf.zeros([4])), tf.Variable(tf.zeros([3, 2]))

    @tf.function
    def f(n):
        for i in tf.range(n):
            v[i : i + 1].assign([tf.cast(i, tf.float32) * 2.0])
            if i % 2 == 0:
                w.scatter_add(tf.IndexedSlices([[1.0, 2.0]], [i]))
            else:
                w.scatter_nd_update([[i, 0]], [9.0])
        return v.read_value(), w.read_value()

    return f(tf.constant(3)), v, w


@program
def variables_that_grow_in_loops(tf):
    v = tf.Variable([1.0], shape=tf.TensorShape([None]))

    @tf.function
    def f(n):
        for _ in tf.range(n):
            v.assign(tf.concat([v.read_value(), [1.0]], 0))
        return tf.shape(v)

    return f(tf.constant(3)), v


@program
def branches_that_return_none(tf):
    v = tf.Variable(0.0)

    def add():
        v.assign_add(1.0)

    @tf.function
    def f(i):
        nothing = tf.cond(i > 0, add, lambda: None)
        pair = tf.cond(i > 1, lambda: (i * 2, None), lambda: (i, None))
        none = tf.switch_case(i, [add, lambda: None, add])
        last = tf.case([(i > 1, add)], default=lambda: None)
        return (nothing is None, none is None, last is None, pair[1] is None), pair[0]

    def differ(p):
        return tf.cond(p, lambda: (p, None), lambda: (p, p))

    refused = outcome(tf.function(differ), tf.constant(True)).split(" < ")[0]
    return [(f(tf.constant(i)), v.numpy().item()) for i in range(3)], refused != "no error"


@program
def gradients_of_switch_case(tf):
    v = tf.Variable(2.0)

    @tf.function
    def f(i, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.switch_case(i, [lambda: x * v, lambda: x**2, lambda: v**3])
        return tape.gradient(y, [x, v], unconnected_gradients="zero")

    return [f(tf.constant(i), tf.constant(3.0)) for i in range(3)]


@program
def gradients_of_functions_of_variables_in_loops(tf):
    v = tf.Variable(2.0)
    inner = tf.function(lambda x: x * v)

    @tf.function
    def f(x, n):
        with tf.GradientTape(persistent=True) as tape:
            for _ in tf.range(n):
                x = inner(x)
            y = x * v
        return tape.gradient(y, v), tape.gradient(x, v)

    return f(tf.constant(3.0), tf.constant(3)), f(tf.constant(3.0), tf.constant(1))


@program
def gradients_of_custom_rules_in_loops(tf):
    @tf.custom_gradient
    def clipped(x):
        return x, lambda d: tf.clip_by_value(d, -1.0, 1.0)

    @tf.function
    def f(x, n):
        @tf.recompute_grad
        def again(x):
            for _ in tf.range(3):
                x = x * x
            return x

        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(n):
                y = clipped(y * x)
            z = again(x)
        return tape.gradient(y, x), tape.gradient(z, x)

    return f(tf.constant(1.1), tf.constant(3))


@program
def gradients_of_growing_state(tf):
    @tf.function
    def f(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = tf.while_loop(
                lambda i, y: i < n,
                lambda i, y: (i + 1, tf.concat([y, [y[-1] * x]], 0)),
                [tf.constant(0), tf.ones([1])],
                shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
            )
            total = tf.reduce_sum(y)
        return y, tape.gradient(total, x)

    return f(tf.constant(2.0), tf.constant(3)), f(tf.constant(2.0), tf.constant(0))


@program
def second_derivatives_in_map_fn(tf):
    @tf.function
    def f(xs):
        def hessian(x):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    _, y = tf.while_loop(
                        lambda i, y: i < 2,
                        lambda i, y: (i + 1, y * tf.reduce_sum(x * x)),
                        [tf.constant(0), tf.reduce_sum(x)],
                    )
                first = inner.gradient(y, x)
            return outer.jacobian(first, x)

        return tf.map_fn(hessian, xs)

    return f(tf.constant([[1.0, 2.0], [3.0, 4.0]]))


@program
def variables_assigned_between_uses(tf):
    v = tf.Variable(2.0)

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            y = v * x
            v.assign(5.0)
            z = v * y
        return tape.gradient(z, v)

    return f(tf.constant(3.0)), v
