"""Control flow operations, shapes, slicing, joining and their refusals."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


@program
def cond(tf):
    def choose(p):
        return tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(2))

    f = tf.function(choose)
    return choose(tf.constant(True)), choose(False), f(tf.constant(True)), f(tf.constant(False))


@program
def cond_runs_one_branch_eagerly(tf):
    log = []

    def branch(name):
        log.append(name)
        return tf.constant(1)

    tf.cond(tf.constant(True), lambda: branch("yes"), lambda: branch("no"))
    tf.function(lambda p: tf.cond(p, lambda: branch("t"), lambda: branch("f")))(tf.constant(True))
    return log


@program
def cond_refusals(tf):
    def traced(yes, no, p=True):
        return raised(tf.function(lambda q: tf.cond(q, yes, no)), tf.constant(p))

    one, half = tf.constant(1), tf.constant(0.5)
    return [
        traced(lambda: one, lambda: half), traced(lambda: one, lambda: (one, one)),
        traced(lambda: one, lambda: None), traced(lambda: None, lambda: None),
        traced(lambda: [one], lambda: (one,)), traced(one, one), traced(lambda: 1, lambda: 2),
        traced(lambda: one, lambda: one, [True, False]), traced(lambda: one, lambda: one, 1),
        raised(tf.cond, 1, lambda: one, lambda: one), raised(tf.cond, True, one, one),
    ]  # fmt: skip


@program
def cond_structures(tf):
    @tf.function
    def f(p, x):
        return tf.cond(p, lambda: {"a": x, "b": [x, x]}, lambda: {"a": -x, "b": [x + 1, x]})

    return f(tf.constant(True), tf.constant(1)), f(tf.constant(False), tf.constant(1))


@program
def while_loop(tf):
    def count(n):
        return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [0, 0])

    results = count(tf.constant(4)), tf.function(count)(tf.constant(4))
    return [list(r) for r in results], [type(r).__name__ for r in results]


@program
def while_loop_of_one(tf):
    def count(n):
        return tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0)])

    return count(tf.constant(3)), tf.function(count)(tf.constant(3))


@program
def while_loop_refusals(tf):
    def traced(cond, body, start):
        return raised(tf.function(lambda: tf.while_loop(cond, body, start)))

    zero = tf.constant(0)
    return [
        traced(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [zero]),
        traced(lambda i: i < 3, lambda i: (i, i), [zero]),
        traced(lambda i, j: i < 3, lambda i: i, [zero]),
        traced(lambda i: i, lambda i: i, [zero]),
        traced(lambda i: [i < 3], lambda i: i + 1, [zero]),
        traced(lambda x: tf.size(x) < 5, lambda x: tf.concat([x, x], 0), [tf.zeros([1])]),
    ]


@program
def while_loop_with_shape_invariants(tf):
    @tf.function
    def f():
        return tf.while_loop(
            lambda i, x: i < 3,
            lambda i, x: (i + 1, tf.concat([x, [tf.cast(i, tf.float32)]], 0)),
            [tf.constant(0), tf.zeros([1])],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
        )

    return list(f())


@program
def while_loop_limits(tf):
    def count(limit):
        return tf.while_loop(
            lambda i: i < 10, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=limit
        )

    results = [outcome(count, n) for n in (0, 3, 20)]
    return results, [outcome(tf.function(lambda n=n: count(n))) for n in (0, 3, 20)]


@program
def switch_case(tf):
    def choose(i):
        return tf.switch_case(i, [lambda: 10, lambda: 20], default=lambda: -1)

    return [outcome(lambda i=i: tf.function(choose)(tf.constant(i))) for i in (0, 1, 5, -3)]


@program
def case(tf):
    def choose(x):
        return tf.case([(x < 0, lambda: -1), (x > 10, lambda: 1)], default=lambda: 0)

    return [outcome(lambda x=x: tf.function(choose)(tf.constant(x))) for x in (-5, 5, 50)]


@program
def mapping(tf):
    x = tf.constant([1, 2, 3])
    return (
        outcome(lambda: tf.map_fn(lambda t: t * t, x)),
        outcome(lambda: tf.scan(lambda a, t: a + t, x)),
        outcome(lambda: tf.foldl(lambda a, t: a - t, x)),
        outcome(lambda: tf.vectorized_map(lambda t: t * 2, x)),
    )


@program
def static_shapes_in_functions(tf):
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        for t in (
            x, x[0], x[:, 0], x[1:], x[:, :2], tf.transpose(x), tf.reshape(x, [-1]),
            tf.reshape(x, [3, -1]), tf.concat([x, x], 0), tf.concat([x, x], 1), tf.stack([x, x]),
            tf.expand_dims(x, 0), tf.reduce_sum(x, 0), tf.reduce_sum(x, 1), x @ tf.ones([3, 5]),
            tf.shape(x), x + tf.ones([1, 3]), tf.tile(x, [2, 2]), tf.gather(x, [0, 1]),
            tf.boolean_mask(x, x[:, 0] > 0), tf.where(x > 0), tf.one_hot(tf.argmax(x, 1), 4),
            tf.zeros_like(x), tf.pad(x, [[1, 1], [0, 0]]), x[..., tf.newaxis], x[::2],
        ):  # fmt: skip
            shapes.append(t.shape)
        return tf.constant(0)

    f(tf.ones([2, 3]))
    return shapes


@program
def shape_objects(tf):
    a, b = tf.TensorShape([2, None]), tf.TensorShape([None, 3])
    return [
        outcome(f)
        for f in (
            lambda: str(a), lambda: repr(a), lambda: a.rank, lambda: len(a),
            lambda: a[0], lambda: a[1], lambda: a[:1], lambda: a + [4], lambda: a.as_list(),
            lambda: a == [2, None],
            lambda: a.is_compatible_with(b), lambda: a.merge_with(b), lambda: a.num_elements(),
            lambda: tf.TensorShape([2, 3]).num_elements(), lambda: a.is_fully_defined(),
            lambda: a.concatenate([1]), lambda: tf.TensorShape(3), lambda: tf.TensorShape([-1]),
            lambda: tf.TensorShape(["a"]), lambda: a.assert_is_compatible_with([3, 3]),
            lambda: tf.TensorShape([2]) == (2,), lambda: list(a),
            lambda: a.merge_with([3, 3]), lambda: tf.TensorShape([2, 3]).as_list(),
            lambda: a.most_specific_compatible_shape([5, None]), lambda: hash(a) is not None,
        )
    ]  # fmt: skip


@program
def unknown_ranks(tf):
    unknown = tf.TensorShape(None)
    return unknown.rank, str(unknown), raised(unknown.as_list), raised(len, unknown), bool(unknown)


@program
def specs(tf):
    s = tf.TensorSpec([None, 2], tf.float32, name="x")
    return [
        repr(s), str(s), s.shape, s.dtype, s.name, s == tf.TensorSpec([None, 2], tf.float32),
        s.is_compatible_with(tf.ones([3, 2])), s.is_compatible_with(tf.ones([3])),
        tf.TensorSpec.from_tensor(tf.ones([2])).shape, repr(tf.TensorSpec([2])),
        outcome(lambda: s.is_compatible_with(tf.ones([3, 2], tf.float64))),
    ]  # fmt: skip


@program
def reshape_refusals(tf):
    x = tf.zeros([2, 3])
    eager = [raised(tf.reshape, x, s) for s in ([5], [-1, -1], [4, -1], [2, -3], [2.0, 3.0], "a")]
    traced = [
        raised(tf.function(lambda t, s=s: tf.reshape(t, s)), x) for s in ([5], [-1, -1], [4, -1])
    ]
    return eager, traced


@program
def reshape_that_fails_at_run_time(tf):
    f = tf.function(
        lambda x: tf.reshape(x, [2, 2]), input_signature=[tf.TensorSpec([None], tf.float32)]
    )
    return f(tf.ones([4])), raised(f, tf.ones([5]))


@program
def shapes_that_do_not_fit(tf):
    a, b = tf.ones([2]), tf.ones([3])
    functions = [
        lambda: a + b, lambda: a * b, lambda: tf.matmul([a], [b]), lambda: tf.concat([[a], b], 0),
        lambda: tf.stack([a, b]), lambda: a < b, lambda: a == b, lambda: tf.where(a > 0, a, b),
        lambda: tf.tensordot(a, b, 1), lambda: tf.broadcast_to(a, [3]), lambda: tf.squeeze(a, 0),
        lambda: tf.transpose(a, [1, 0]), lambda: tf.expand_dims(a, 5), lambda: tf.split(a, 3),
        lambda: tf.gather(a, 5), lambda: tf.ensure_shape(a, [3]), lambda: tf.reduce_sum(a, 3),
        lambda: tf.unstack(tf.constant(1.0)), lambda: tf.one_hot([1.5], 2), lambda: tf.eye(-1),
    ]  # fmt: skip
    return [raised(f) for f in functions], [raised(tf.function(f)) for f in functions]


@program
def shapes_that_do_not_fit_at_run_time(tf):
    open_vector = tf.TensorSpec([None], tf.float32)

    def traced(function):
        return tf.function(function, input_signature=[open_vector, open_vector])

    functions = [
        lambda a, b: a + b, lambda a, b: tf.concat([a, b], 0), lambda a, b: tf.stack([a, b]),
        lambda a, b: tf.tensordot(a, b, 1), lambda a, b: tf.where(a > 0, a, b),
        lambda a, b: tf.gather(a, tf.size(b)), lambda a, b: tf.ensure_shape(a, [3]),
        lambda a, b: tf.linalg.matvec([a], b),
    ]  # fmt: skip
    a, b = tf.ones([2]), tf.ones([3])
    return [outcome(traced(f), a, a) for f in functions], [
        raised(traced(f), a, b) for f in functions
    ]


@program
def slices(tf):
    x = tf.reshape(tf.range(12), [3, 4])
    return [
        x[1], x[-1, 1:3], x[:, ::2], x[::-1, 0], x[..., 0], x[0, ..., 1], x[:, tf.newaxis].shape,
        x[1:1], x[5:], x[-2:, -2:], x[2, 3], x[tf.constant(1):, 0], x[0][tf.constant(2)],
    ]  # fmt: skip


@program
def slices_out_of_range(tf):
    x = tf.constant([1, 2, 3])
    results = [outcome(lambda i=i: x[i]) for i in (3, -4, 2, -3)]
    f = tf.function(lambda t, i: t[i])
    too_many = raised(lambda: x[0, 0]), raised(lambda: x[..., ...]), raised(lambda: x[::0])
    return results, [outcome(f, x, tf.constant(i)) for i in (2, -1, 3, -4)], too_many


@program
def gather_out_of_range(tf):
    x = tf.constant([1, 2, 3])
    f = tf.function(lambda t, i: tf.gather(t, i))
    eager = [outcome(tf.gather, x, i) for i in (3, -1, [0, 2])]
    return eager, [outcome(f, x, tf.constant(i)) for i in (3, -1, 2)]


@program
def mask_and_nonzero(tf):
    x = tf.constant([[1, 0], [0, 2]])
    return (
        tf.boolean_mask(x, x > 0),
        tf.where(x > 0),
        outcome(lambda: x[x > 0]),
        raised(tf.boolean_mask, x, [True]),
    )


@program
def splits(tf):
    x = tf.range(6)
    return [
        outcome(tf.split, x, 3), outcome(tf.split, x, [1, -1]), outcome(tf.split, x, [2, 2]),
        outcome(tf.split, x, 4), outcome(tf.unstack, tf.reshape(x, [2, 3]), axis=1),
    ]  # fmt: skip


@program
def printed_tensors(tf):
    values = [
        tf.constant(1), tf.constant(1.5), tf.constant(True), tf.constant([1, 2]),
        tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.zeros([0]), tf.constant([0.1, 1e10]),
        tf.constant(1.0, tf.float64), tf.constant(1 + 2j), tf.constant([1.5], tf.bfloat16),
    ]  # fmt: skip
    return [(str(v), repr(v)) for v in values]


@program
def printed_variables(tf):
    v = tf.Variable([1, 2], name="v")
    return str(v), repr(v), repr(tf.Variable(1.5)), f"{tf.constant(1.234):.2f}"


@program
def printed_symbolic_tensors(tf):
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x):
        seen.extend([str(x), repr(x)])
        return x

    f(tf.ones([1, 2]))
    return seen


@program
def printing_in_a_function(tf):
    import contextlib
    import io

    out = io.StringIO()

    @tf.function
    def f(x):
        print("traced", x)
        return x

    with contextlib.redirect_stdout(out):
        f(tf.constant(1))
        f(tf.constant(2))
    return out.getvalue()


@program
def numpy_and_tensors(tf):
    t = tf.constant([1.0, 4.0])
    return [
        np.sqrt(t),
        np.asarray(t),
        type(np.add(t, t)).__name__,
        tf.is_tensor(t + np.ones(2, np.float32)),
        np.array([t, t]).shape,
        float(np.sum(t)),
        t.numpy().dtype.name,
    ]


@program
def nest_structures(tf):
    nest = tf.nest
    structure = {"b": [1, (2, None)], "a": 3}
    return [
        nest.flatten(structure),
        nest.flatten(5),
        nest.flatten([]),
        nest.flatten(None),
        nest.map_structure(lambda x: x, structure),
        nest.pack_sequence_as(structure, [7, 8, 9, 10]),
        raised(nest.assert_same_structure, [1], (1,)),
        raised(nest.assert_same_structure, [1], [1, 2]),
        raised(nest.assert_same_structure, {"a": 1}, {"b": 1}),
        raised(nest.pack_sequence_as, [1], [1, 2]),
        raised(nest.map_structure, lambda a, b: a, [1], [1, 2]),
        nest.is_nested("abc"),
        nest.is_nested([]),
        raised(nest.map_structure, lambda a, b: a, [1], {"a": 1}),
    ]


@program
def attributes_of_tensors(tf):
    t = tf.constant([[1.0, 2.0]])
    return (
        t.shape,
        t.dtype,
        t.ndim,
        t.shape[1],
        t.get_shape(),
        raised(lambda: t.name),
        hasattr(t, "graph"),
        isinstance(t, tf.Tensor),
        raised(lambda: setattr(t, "shape", [2])),
    )


@program
def attributes_of_symbolic_tensors(tf):
    seen = []

    @tf.function
    def f(x):
        seen.extend([x.shape, x.dtype, x.name, x.graph is not None, len(x.shape), x.shape.rank])
        seen.append(isinstance(x, tf.Tensor))
        return x

    f(tf.constant([[1.0, 2.0]]))
    return seen


@program
def errors_carry_text_and_class(tf):
    try:
        tf.gather(tf.constant([1, 2]), 7)
    except tf.errors.InvalidArgumentError as error:
        return isinstance(error, tf.errors.OpError), bool(error.message), error.error_code
    return None


@program
def max_pool_of_nan(tf):
    nan = float("nan")
    windows = [[nan, 1.0, 2.0, 3.0], [1.0, nan, 2.0, 3.0], [3.0, 2.0, 1.0, nan], [nan] * 4]
    images = tf.reshape(tf.constant(windows), (4, 2, 2, 1))
    return [tf.nn.max_pool2d(image, 2, 2, "VALID") for image in tf.split(images, 4)]


@program
def reductions_of_segments(tf):
    data = tf.constant([[2.0, 1.0], [3.0, 0.0], [4.0, 5.0], [0.5, 7.0]])
    unsorted = ("sum", "prod", "max", "min", "mean", "sqrt_n")
    ascending = ("sum", "prod", "max", "min", "mean")
    ids = [2, 0, -1, 2]
    return (
        [getattr(tf.math, f"unsorted_segment_{name}")(data, ids, 4) for name in unsorted],
        [getattr(tf.math, f"segment_{name}")(data, [0, 0, 2, 2]) for name in ascending],
        [getattr(tf.math, f"segment_{name}")([-3, -4, 5], [0, 0, 1]) for name in ascending],
        [getattr(tf.math, f"unsorted_segment_{name}")([3, 4, 5], [0, 0, -1], 2)
         for name in ("prod", "max", "min", "mean")],
        tf.math.unsorted_segment_max(tf.reshape(tf.range(8.0), (2, 2, 2)), [[0, 1], [1, -1]], 2),
        raised(tf.math.unsorted_segment_max, data, [0, 1, 2, 4], 4),
        [raised(tf.math.segment_sum, data, ids) for ids in ([1, 0, 0, 2], [-1, 0, 0, 1])],
    )  # fmt: skip


@program
def gradients_of_segments(tf):
    data = tf.constant([2.0, 2.0, 4.0, 3.0, 0.0])

    def gradient(fn, *more):
        with tf.GradientTape() as tape:
            tape.watch(data)
            y = fn(data, *more)
            loss = tf.reduce_sum(y * tf.range(1.0, 1.0 + float(len(y))))
        return tape.gradient(loss, data)

    def of(name):
        return getattr(tf.math, name)

    unsorted = ("prod", "max", "min", "mean", "sqrt_n")
    ascending = ("prod", "max", "min", "mean", "sum")
    scatters = (tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min)
    return (
        [gradient(of("unsorted_segment_" + name), [0, 0, 1, -1, 1], 3) for name in unsorted],
        [gradient(of("segment_" + name), [0, 0, 1, 1, 3]) for name in ascending],
        [gradient(f, [[0], [0], [1], [3]], [2.0, 1.0, 2.0, 5.0]) for f in scatters],
        [gradient(lambda x, f=f: f([1.0, 2.0, 9.0], [[0], [0], [1], [2], [2]], x))
         for f in scatters],
    )  # fmt: skip


@program
def logarithms_of_running_sums(tf):
    x = tf.constant([[1.0, 2.0, float("-inf"), 3.0], [90.0, -90.0, 0.0, 90.5]])
    ways = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]

    def gradient(axis, exclusive, reverse):
        y = tf.constant([[1.0, -2.0, 0.5], [3.0, 0.0, 2.0]])
        with tf.GradientTape() as tape:
            tape.watch(y)
            sums = tf.math.cumulative_logsumexp(y, axis, exclusive, reverse)
            loss = tf.reduce_sum(tf.where(tf.math.is_finite(sums), sums, 0.0) * [1.0, -2.0, 3.0])
        return tape.gradient(loss, y)

    return (
        [tf.math.cumulative_logsumexp(x, 1, *way) for way in ways],
        [tf.math.cumulative_logsumexp(x, exclusive=e, reverse=r) for e, r in ways],
        [gradient(axis, *way) for axis in (0, 1) for way in ways],
        raised(tf.math.cumulative_logsumexp, tf.constant([1, 2])),
    )


@program
def axes_of_one_element(tf):
    x = tf.ones([2, 3])
    axes = ([1], [[1]], (-1,), tf.constant([0]))
    shapes = [tf.expand_dims(x, axis).shape.as_list() for axis in axes]
    return shapes, [raised(tf.expand_dims, x, axis) for axis in ([0, 1], [])]


@program
def batch_dims_from_the_end(tf):
    x = tf.reshape(tf.range(24.0), [2, 3, 4])
    return tf.gather(x, [[0, 2], [1, 1]], batch_dims=-1), tf.gather(
        x, [[0, 2], [1, 1]], axis=2, batch_dims=-1
    )
