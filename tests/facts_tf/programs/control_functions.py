"""case, switch_case, map_fn, scan, foldl, foldr and while_loop, outside of functions and inside."""

from __future__ import annotations

from tests.facts_tf.helpers import slope
from tests.facts_tf.registry import outcome, program, raised


def both(tf, f, *args):
    """What ``f(*args)`` gives outside of functions, and inside of one."""
    tensors = [tf.constant(a) for a in args]
    return outcome(f, *tensors), outcome(tf.function(f), *tensors)


def refused(tf, f, *args):
    """The errors of ``f(*args)`` outside of functions, and inside of one."""
    tensors = [tf.constant(a) for a in args]
    return raised(f, *tensors), raised(tf.function(f), *tensors)


@program
def case_takes_the_first_true_predicate(tf):
    def f(x):
        def small():
            return x * 2.0

        def medium():
            return x * 3.0

        return tf.case([(x < 1.0, small), (x < 5.0, medium)], default=lambda: -x)

    return [both(tf, f, v) for v in (0.5, 2.0, 7.0)]


@program
def case_without_default(tf):
    def f(x):
        def small():
            return x * 2.0

        def medium():
            return x * 3.0

        return tf.case([(x < 1.0, small), (x < 5.0, medium)])

    return [outcome(f, tf.constant(v)) for v in (0.5, 2.0)], refused(tf, f, 7.0)


@program
def case_gives_structures(tf):
    def f(x):
        def first():
            return {"a": x, "b": [x + 1.0, 2]}

        def second():
            return {"a": x * 2.0, "b": [x, 3]}

        return tf.case([(x > 0.0, first)], default=second)

    return both(tf, f, 1.0), both(tf, f, -1.0)


@program
def case_refuses(tf):
    x = tf.constant(1.0)

    def value():
        return x

    return [
        raised(tf.case, [(True, value)]),
        raised(tf.case, []),
    ]


@program
def case_has_gradients(tf):
    def f(x):
        def square():
            return x * x

        def cube():
            return x * x * x

        return tf.case([(x < 0.0, square), (x < 2.0, cube)], default=lambda: 5.0 * x)

    return slope(tf, f, -1.0, 1.0, 3.0)


@program
def switch_case_takes_the_numbered_function(tf):
    def f(i):
        fns = [lambda: tf.constant(10), lambda: tf.constant(20), lambda: tf.constant(30)]
        return tf.switch_case(i, fns)

    return [both(tf, f, i) for i in (0, 1, 2, 3, -1)]


@program
def switch_case_with_default(tf):
    def f(i):
        fns = {1: lambda: tf.constant(20), 0: lambda: tf.constant(10)}
        return tf.switch_case(i, fns, default=lambda: tf.constant(-1))

    return [both(tf, f, i) for i in (0, 1, 2, 7, -1)]


@program
def switch_case_of_pairs(tf):
    def f(i):
        return tf.switch_case(i, [(1, lambda: tf.constant(2.0)), (0, lambda: tf.constant(1.0))])

    return [both(tf, f, i) for i in (0, 1)]


@program
def switch_case_refuses(tf):
    one = tf.constant(1)

    def value():
        return tf.constant(2)

    return [
        raised(tf.switch_case, 1, [value]),
        raised(tf.switch_case, tf.constant(1.0), [value]),
        raised(tf.switch_case, one, []),
        raised(tf.switch_case, one, {0: value, 5: value}),
        raised(tf.switch_case, one, [(1, value), (1, value)]),
    ]


@program
def switch_case_has_gradients(tf):
    @tf.function
    def f(i, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.switch_case(i, [lambda: x * x, lambda: x * x * x, lambda: tf.sin(x)])
        return y, tape.gradient(y, x)

    return [f(tf.constant(i), tf.constant(2.0)) for i in (0, 1, 2, 9)]


@program
def map_fn_over_a_vector(tf):
    return both(tf, lambda x: tf.map_fn(lambda v: v * v + 1.0, x), [1.0, 2.0, 3.0])


@program
def map_fn_over_rows(tf):
    def f(x):
        return tf.map_fn(lambda row: row - tf.reduce_mean(row), x)

    return both(tf, f, [[1.0, 2.0], [3.0, 5.0], [0.0, -8.0]])


@program
def map_fn_with_a_signature(tf):
    def f(x):
        return tf.map_fn(lambda v: tf.cast(v, tf.int32), x, fn_output_signature=tf.int32)

    return both(tf, f, [1.5, 2.5])


@program
def map_fn_with_a_spec(tf):
    def f(x):
        spec = tf.TensorSpec([2], tf.int32)
        return tf.map_fn(lambda v: tf.range(2) + v, x, fn_output_signature=spec)

    return both(tf, f, [1, 5])


@program
def map_fn_of_structures(tf):
    def f(x, y):
        return tf.map_fn(lambda v: (v[0] + v[1], v[0] * v[1]), (x, y))

    def g(x, y):
        signature = {"sum": tf.float32, "shape": tf.int32}
        return tf.map_fn(
            lambda v: {"sum": v["x"] + v["y"], "shape": tf.shape(v["x"])},
            {"x": x, "y": y},
            fn_output_signature=signature,
        )

    rows = [[1.0, 2.0], [3.0, 4.0]]
    return both(tf, f, [1.0, 2.0], [3.0, 4.0]), both(tf, g, rows, rows)


@program
def map_fn_of_nothing(tf):
    def f(x):
        return tf.map_fn(lambda row: row * 2.0, x)

    return outcome(tf.function(f), tf.zeros([0, 3]))


@program
def map_fn_refuses(tf):
    x = tf.constant([1.0, 2.0])
    return [
        raised(tf.map_fn, lambda v: v, tf.constant(1.0)),
        raised(tf.map_fn, lambda v: tf.cast(v, tf.int32), x),
        raised(tf.map_fn, lambda v: v[0] + v[1], (x, x)),
        raised(tf.map_fn, lambda v: v[0], (x, tf.constant([1.0])), fn_output_signature=tf.float32),
    ]


@program
def map_fn_has_gradients(tf):
    @tf.function
    def f(x, w):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.reduce_sum(tf.map_fn(lambda row: tf.tanh(row * w), x) ** 2)
        return tape.gradient(y, [x, w])

    return f(tf.constant([[0.1, 0.2], [0.3, -0.4], [0.5, 1.0]]), tf.constant([1.0, 2.0]))


@program
def scan_without_initializer(tf):
    def f(x):
        return tf.scan(lambda a, v: a * 0.5 + v, x)

    def g(x):
        return tf.scan(lambda a, v: a * 0.5 + v, x, reverse=True)

    return both(tf, f, [1.0, 2.0, 3.0]), both(tf, g, [1.0, 2.0, 3.0])


@program
def scan_with_initializer(tf):
    def f(x):
        return tf.scan(lambda a, v: a - v, x, initializer=tf.constant(10.0))

    def g(x):
        return tf.scan(lambda a, v: a - v, x, initializer=tf.constant(10.0), reverse=True)

    return both(tf, f, [1.0, 2.0, 3.0]), both(tf, g, [1.0, 2.0, 3.0]), both(tf, f, [])


@program
def scan_with_structures(tf):
    def f(x, y):
        start = (tf.constant(0.0), tf.constant([1.0, 1.0]))
        return tf.scan(lambda a, v: (a[0] + v[0], a[1] * v[1]), (x, y), initializer=start)

    return both(tf, f, [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]])


@program
def scan_refuses(tf):
    x = tf.constant([1.0, 2.0])
    return [
        raised(tf.scan, lambda a, v: (a, v), x),
        raised(tf.scan, lambda a, v: tf.concat([a, [v]], 0), x, tf.zeros([1])),
        raised(tf.scan, lambda a, v: a, tf.zeros([0])),
    ]


@program
def scan_has_gradients(tf):
    @tf.function
    def f(x, w):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            states = tf.scan(lambda h, v: tf.tanh(h * w + v), x, initializer=tf.constant(0.5))
            y = tf.reduce_sum(states * states)
        return tape.gradient(y, [x, w])

    return f(tf.constant([0.1, -0.2, 0.3]), tf.constant(0.7))


@program
def folds(tf):
    def left(x):
        return tf.foldl(lambda a, v: a * 2.0 - v, x)

    def right(x):
        return tf.foldr(lambda a, v: a * 2.0 - v, x)

    def left_from(x):
        return tf.foldl(lambda a, v: a * 2.0 - v, x, initializer=tf.constant(7.0))

    def right_from(x):
        return tf.foldr(lambda a, v: a * 2.0 - v, x, initializer=tf.constant(7.0))

    def of_nothing(x):
        return tf.foldl(lambda a, v: a + v, x[:0], initializer=tf.constant(4.0))

    def counted(x):
        return tf.foldl(lambda a, v: a + tf.cast(v, tf.int32), x, initializer=0)

    fs = (left, right, left_from, right_from, of_nothing, counted)
    return [both(tf, f, [1.0, 2.0, 4.0]) for f in fs]


@program
def folds_of_structures(tf):
    def f(x, y):
        return tf.foldl(lambda a, v: (a[0] + v[0], a[1] * v[1]), (x, y))

    return both(tf, f, [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@program
def folds_have_gradients(tf):
    def left(x):
        return tf.foldl(lambda a, v: a * x + v, tf.constant([1.0, 2.0, 3.0]))

    def right(x):
        return tf.foldr(lambda a, v: a * x + v, tf.constant([1.0, 2.0, 3.0]))

    return slope(tf, left, 2.0), slope(tf, right, 2.0)


@program
def while_loop_stops_after_maximum_iterations(tf):
    def run(limit):
        @tf.function
        def f(x):
            return tf.while_loop(
                lambda i, y: i < 10, lambda i, y: (i + 1, y * 2.0), (tf.constant(0), x),
                maximum_iterations=limit,
            )  # fmt: skip

        return f(tf.constant(1.0))

    return [run(limit) for limit in (0, 3, 10, 99, -1)]


@program
def while_loop_takes_all_arguments(tf):
    def f(x):
        return tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, y], 0)), (tf.constant(0), x),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
            parallel_iterations=4, swap_memory=True, maximum_iterations=tf.constant(2), name="w",
        )  # fmt: skip

    return both(tf, f, [1.0])


@program
def while_loop_keeps_structures(tf):
    def f(x):
        return tf.while_loop(
            lambda i, d: i < 3,
            lambda i, d: (i + 1, {"a": d["a"] * 2.0, "b": [d["b"][0] + i]}),
            (tf.constant(0), {"a": x, "b": [tf.constant(5)]}),
        )

    return both(tf, f, 1.5)


@program
def while_loop_refuses(tf):
    def f(**options):
        return tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)], **options)

    return [
        raised(f, parallel_iterations=0),
        raised(tf.while_loop, 3, lambda i: [i], [tf.constant(0)]),
        raised(tf.while_loop, lambda i: i < 3, 3, [tf.constant(0)]),
        raised(tf.while_loop, lambda: False, lambda: [], []),
    ]


@program
def while_loop_refuses_other_structures(tf):
    x = tf.constant([2.0, 4.0])

    def refused_by(body, value):
        def f():
            return tf.while_loop(lambda i, *_: i < 3, body, [tf.constant(0), value])

        return raised(f), raised(tf.function(f))

    return [
        refused_by(lambda i, *v: (i + 1, i, *v), x),
        refused_by(lambda i, v: (i + 1,), x),
        refused_by(lambda i, v: (i + 1, (v, v)), x),
        refused_by(lambda i, v: (i + 1, (v[0],)), (x, x)),
        refused_by(lambda i, v: (i + 1, tuple(v)), [x, x]),
    ]


@program
def while_loop_takes_shapes_of_composite_tensors(tf):
    def looped(body, value, shape):
        def f():
            return tf.while_loop(
                lambda i, _: i < 2, lambda i, v: (i + 1, body(v)), [tf.constant(0), value],
                shape_invariants=[tf.TensorShape([]), shape],
            )[1]  # fmt: skip

        return outcome(tf.function(f))

    sparse = tf.SparseTensor([[0]], [1.0], [10])
    ragged = tf.ragged.constant([[1, 2], [3]])
    return [
        looped(lambda v: v * 2.0, sparse, tf.TensorShape([None])),
        looped(lambda v: tf.concat([v, v], 1), ragged, tf.TensorShape([2, None])),
        looped(lambda v: tf.concat([v, v], 0), ragged, tf.TensorShape([None, None])),
        looped(lambda v: v, ragged, tf.SparseTensorSpec([None])),
        looped(lambda v: v, sparse, tf.TensorShape([5])),
    ]
