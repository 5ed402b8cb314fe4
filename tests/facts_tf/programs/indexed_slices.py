"""IndexedSlices: which gradients are, what arithmetic takes them, what optimizers do with them."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def taken_apart(tf, g):
    """A gradient as Python values: its parts where it is IndexedSlices."""
    if isinstance(g, tf.IndexedSlices):
        shape = None if g.dense_shape is None else g.dense_shape
        return {"values": g.values, "indices": g.indices, "dense_shape": shape}
    return g


def gradient(tf, f, x, staged=False):
    """The gradient of ``f(x)``; `staged`: taken in a function."""

    def run():
        with tf.GradientTape() as tape:
            if not isinstance(x, tf.Variable):
                tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return taken_apart(tf, (tf.function(run) if staged else run)())


def both_ways(tf, f, start=TABLE):
    """The gradient by a variable and by a tensor, eagerly and in a function."""
    return [
        gradient(tf, f, x, staged)
        for x in (tf.Variable(start), tf.constant(start))
        for staged in (False, True)
    ]


def example(tf):
    return tf.IndexedSlices(
        tf.constant([[1.0, 2.0], [3.0, -4.0]]), tf.constant([2, 0]), tf.constant([3, 2])
    )


def repeated(tf):
    return tf.IndexedSlices(
        tf.constant([[1.0, 2.0], [3.0, -4.0]]), tf.constant([1, 1]), tf.constant([3, 2])
    )


# -- gradients ---------------------------------------------------------------------


@program
def of_gather(tf):
    return both_ways(tf, lambda x: tf.gather(x, [2, 0, 2]))


@program
def of_gather_of_a_matrix_of_positions(tf):
    return both_ways(tf, lambda x: tf.gather(x, [[2, 0], [0, 1]]) * 3.0)


@program
def of_gather_of_one_position(tf):
    return both_ways(tf, lambda x: tf.gather(x, 1))


@program
def of_gather_along_another_axis(tf):
    return both_ways(tf, lambda x: tf.gather(x, [0, 0], axis=1))


@program
def of_gather_in_batches(tf):
    return both_ways(tf, lambda x: tf.gather(x, [[0], [1], [1]], batch_dims=1))


@program
def of_embedding_lookup(tf):
    return both_ways(tf, lambda x: tf.nn.embedding_lookup(x, [1, 1]))


@program
def of_embedding_lookup_with_a_norm(tf):
    return both_ways(tf, lambda x: tf.nn.embedding_lookup(x, [1, 0], max_norm=1.0))


@program
def of_sparse_read(tf):
    v = tf.Variable(TABLE)
    return [gradient(tf, lambda x: x.sparse_read([1, 1]), v, staged) for staged in (False, True)]


@program
def of_gather_nd(tf):
    return [
        both_ways(tf, lambda x: tf.gather_nd(x, [[1], [0]])),
        both_ways(tf, lambda x: tf.gather_nd(x, [[1, 1], [0, 1]])),
        both_ways(tf, lambda x: tf.gather_nd(x, [[[1]], [[0]]])),
    ]


@program
def of_gather_nd_of_variables(tf):
    v = tf.Variable(TABLE)
    return [
        gradient(tf, lambda x: x.gather_nd([[1], [0]]), v),
        gradient(tf, lambda x: x.gather_nd([[1, 1], [0, 1]]), v),
    ]


@program
def of_gather_of_a_value(tf):
    """The variable is read first, or copied, or something is computed of it."""
    return [
        both_ways(tf, lambda x: tf.gather(tf.convert_to_tensor(x), [1, 1])),
        both_ways(tf, lambda x: tf.gather(tf.identity(x), [1, 1])),
        both_ways(tf, lambda x: tf.gather(x * 2.0, [1, 1])),
        both_ways(tf, lambda x: tf.gather(tf.reshape(x, [2, 3]), [1, 1])),
    ]


@program
def of_two_gathers(tf):
    return both_ways(tf, lambda x: tf.gather(x, [2, 0]) + tf.gather(x, [1, 2]) * 2.0)


@program
def of_gather_and_dense(tf):
    return both_ways(tf, lambda x: tf.reduce_sum(tf.gather(x, [2])) + tf.reduce_sum(x * 2.0))


@program
def of_dense_and_gather(tf):
    return both_ways(tf, lambda x: tf.reduce_sum(x * 2.0) + tf.reduce_sum(tf.gather(x, [2])))


@program
def of_slices_and_gather(tf):
    return both_ways(tf, lambda x: tf.reduce_sum(x[1:]) + tf.reduce_sum(tf.gather(x, [2])))


@program
def of_indexing(tf):
    return both_ways(tf, lambda x: x[1] * 2.0)


@program
def of_int64_positions(tf):
    return both_ways(tf, lambda x: tf.gather(x, tf.constant([2, 0], tf.int64)))


@program
def of_vectors(tf):
    return both_ways(tf, lambda x: tf.gather(x, [1, 1]), [1.0, 2.0])


@program
def of_float64(tf):
    return both_ways(tf, lambda x: tf.gather(x, [1]), np.array(TABLE))


@program
def of_no_positions(tf):
    return both_ways(tf, lambda x: tf.gather(x, tf.zeros([0], tf.int32)))


@program
def of_a_branch(tf):
    def f(x):
        if tf.reduce_sum(x) > 0.0:
            y = tf.gather(x, [1, 1])
        else:
            y = x[:2]
        return y

    v = tf.Variable(TABLE)

    @tf.function
    def g():
        with tf.GradientTape() as tape:
            y = f(v)
        return tape.gradient(y, v)

    found = g()
    return tf.convert_to_tensor(found)


@program
def of_a_loop(tf):
    v = tf.Variable(TABLE)

    @tf.function
    def g(n):
        with tf.GradientTape() as tape:
            total = tf.constant(0.0)
            for i in tf.range(n):
                total += tf.reduce_sum(tf.gather(v, [i, i])) * tf.cast(i + 1, tf.float32)
        return tape.gradient(total, v)

    return tf.convert_to_tensor(g(tf.constant(3)))


@program
def of_a_compiled_function(tf):
    v = tf.Variable(TABLE)

    @tf.function
    def f(i):
        return tf.gather(v, i) * 2.0

    with tf.GradientTape() as tape:
        y = f(tf.constant([1, 1]))
    return tf.convert_to_tensor(tape.gradient(y, v))


@program
def kinds_of_gradients(tf):
    """Whether they are slices, of what is written with gathers or runs them elsewhere."""
    v = tf.Variable(TABLE)
    compiled = tf.function(lambda i: tf.gather(v, i))

    @tf.function
    def of_a_branch(b):
        with tf.GradientTape() as tape:
            if b:
                y = tf.gather(v, [1])
            else:
                y = tf.gather(v, [2])
        return tape.gradient(y, v)

    @tf.function
    def of_a_loop(n):
        with tf.GradientTape() as tape:
            total = tf.constant(0.0)
            for i in tf.range(n):
                total += tf.reduce_sum(tf.gather(v, [i]))
        return tape.gradient(total, v)

    found = {}
    for name, f in {
        "mask": lambda: tf.boolean_mask(v, [True, False, True]),
        "repeat": lambda: tf.repeat(v, [1, 2, 0], axis=0),
        "reverse": lambda: tf.reverse(v, [0]),
        "compiled call": lambda: compiled(tf.constant([1, 1])),
    }.items():
        with tf.GradientTape() as tape:
            y = f()
        found[name] = isinstance(tape.gradient(y, v), tf.IndexedSlices)
    found["branch"] = isinstance(of_a_branch(tf.constant(True)), tf.IndexedSlices)
    found["loop"] = isinstance(of_a_loop(tf.constant(2)), tf.IndexedSlices)
    return found


@program
def second_order(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(v, [2, 0, 2]) ** 3)
        g = inner.gradient(y, v)
        total = tf.reduce_sum(tf.convert_to_tensor(g) * [1.0, 10.0, 100.0])
    return tf.convert_to_tensor(outer.gradient(total, v))


@program
def unconnected_zeros(tf):
    v, w = tf.Variable(TABLE), tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.gather(v, [1])
    found = tape.gradient(y, [v, w], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return [taken_apart(tf, g) for g in found]


@program
def with_output_gradients(tf):
    v = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = tf.gather(v, [1, 1])
    weights = tf.constant([[1.0, 2.0], [10.0, 20.0]])
    return taken_apart(tf, tape.gradient(y, v, output_gradients=weights))


@program
def jacobian(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.gather(v, [2, 0]) * [1.0, 10.0]
    return tape.jacobian(y, v)


# -- the class ---------------------------------------------------------------------


@program
def parts(tf):
    s = example(tf)
    return [s.values, s.indices, s.dense_shape, s.shape, s.dtype, s.device == s.values.device]


@program
def without_a_shape(tf):
    s = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([2]))
    return [s.dense_shape, raised(tf.convert_to_tensor, s), raised(lambda: s + 1.0)]


@program
def converted(tf):
    return [
        tf.convert_to_tensor(example(tf)), tf.convert_to_tensor(repeated(tf)),
        tf.convert_to_tensor(example(tf), tf.float32),
        raised(tf.convert_to_tensor, example(tf), tf.float64),
        outcome(lambda: example(tf).numpy()), tf.is_tensor(example(tf)),
        isinstance(example(tf), tf.Tensor),
    ]  # fmt: skip


@program
def converted_out_of_range(tf):
    s = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([0, 5]), tf.constant([3]))
    negative = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([0, -1]), tf.constant([3]))
    return raised(tf.convert_to_tensor, s), outcome(tf.convert_to_tensor, negative)


@program
def arithmetic(tf):
    s = example(tf)
    ones = tf.ones([3, 2])
    return {
        "negative": taken_apart(tf, -s),
        "tf.negative": outcome(lambda: taken_apart(tf, tf.negative(s))),
        "scalar_mul": outcome(lambda: taken_apart(tf, tf.math.scalar_mul(2.0, s))),
        "s * 2": outcome(lambda: s * 2.0),
        "2 * s": outcome(lambda: 2.0 * s),
        "s + s": outcome(lambda: s + s),
        "s + tensor": outcome(lambda: s + ones),
        "tensor + s": outcome(lambda: ones + s),
        "tensor * s": outcome(lambda: ones * s),
        "tensor - s": outcome(lambda: ones - s),
        "s - tensor": outcome(lambda: s - ones),
        "s / 2": outcome(lambda: s / 2.0),
        "s[0]": outcome(lambda: s[0]),
        "tf.add": outcome(lambda: tf.add(s, s)),
        "tf.multiply": outcome(lambda: tf.multiply(s, 2.0)),
        "tf.multiply by slices": outcome(lambda: tf.multiply(2.0, s)),
        "add_n": outcome(lambda: taken_apart(tf, tf.add_n([s, s]))),
        "add_n mixed": outcome(lambda: taken_apart(tf, tf.add_n([s, ones]))),
        "add_n of one": outcome(lambda: taken_apart(tf, tf.add_n([s]))),
        "square": outcome(lambda: tf.square(s)),
        "sqrt": outcome(lambda: taken_apart(tf, tf.sqrt(s))),
        "reduce_sum": outcome(lambda: tf.reduce_sum(s)),
        "cast": outcome(lambda: taken_apart(tf, tf.cast(s, tf.float64))),
        "identity": outcome(lambda: taken_apart(tf, tf.identity(s))),
        "abs": outcome(lambda: taken_apart(tf, tf.abs(s))),
        "zeros_like": outcome(lambda: taken_apart(tf, tf.zeros_like(s))),
        "norm": outcome(lambda: tf.norm(s)),
        "l2_loss": outcome(lambda: tf.nn.l2_loss(s)),
    }


@program
def scaled_in_functions(tf):
    @tf.function
    def f(x, s):
        y = tf.math.scalar_mul(x, s)
        return y, -y, tf.convert_to_tensor(y)

    first, second, dense = f(tf.constant(3.0), repeated(tf))
    return taken_apart(tf, first), taken_apart(tf, second), dense


@program
def clipping(tf):
    found = {}
    for name, s in (("once", example(tf)), ("twice", repeated(tf))):
        found[name] = {
            "norm": taken_apart(tf, tf.clip_by_norm(s, 1.0)),
            "norm not reached": taken_apart(tf, tf.clip_by_norm(s, 100.0)),
            "norm of rows": outcome(lambda s=s: taken_apart(tf, tf.clip_by_norm(s, 1.0, [1]))),
            "value": taken_apart(tf, tf.clip_by_value(s, -1.5, 1.5)),
            "global norm": tf.linalg.global_norm([s, tf.ones([2]), None]),
            "clipped": [
                taken_apart(tf, x) for x in tf.clip_by_global_norm([s, tf.ones([2]), None], 2.0)[0]
            ],
        }
    return found


@program
def through_functions(tf):
    traces = []

    @tf.function
    def f(s):
        traces.append(1)
        return tf.IndexedSlices(s.values * 2.0, s.indices, s.dense_shape), s.values + 1.0

    first, _ = f(example(tf))
    second, plus = f(repeated(tf))
    return taken_apart(tf, first), taken_apart(tf, second), plus, len(traces)


@program
def returned_from_functions(tf):
    v = tf.Variable(TABLE)

    @tf.function
    def f(i):
        with tf.GradientTape() as tape:
            y = tf.gather(v, i)
        return tape.gradient(y, v)

    return taken_apart(tf, f(tf.constant([2, 2]))), taken_apart(tf, f(tf.constant([0])))


# -- applied ---------------------------------------------------------------------


@program
def assigned(tf):
    s = example(tf)
    v = tf.Variable(TABLE)
    found = []
    for change in (v.assign, v.assign_add, v.assign_sub):
        change(s)
        found.append(v.numpy())
    return found


def stepped(tf, optimizer, indices, steps=3, staged=False):
    """A table after some steps by the gradient of rows."""
    table = tf.Variable([[1.0, -2.0], [2.0, 1.0], [0.5, 3.0], [4.0, -1.0]])

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table, indices)))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    run = tf.function(step) if staged else step
    for _ in range(steps):
        run()
    return table.numpy().ravel().tolist()


def optimizers(tf):
    o = tf.keras.optimizers
    return {
        "sgd": lambda: o.SGD(0.1),
        "momentum": lambda: o.SGD(0.1, momentum=0.5),
        "nesterov": lambda: o.SGD(0.1, momentum=0.5, nesterov=True),
        "adam": lambda: o.Adam(0.1, epsilon=1e-3),
        "amsgrad": lambda: o.Adam(0.1, epsilon=1e-3, amsgrad=True),
        "adamw": lambda: o.AdamW(0.1, weight_decay=0.1, epsilon=1e-3),
        "adagrad": lambda: o.Adagrad(0.1),
        "rmsprop": lambda: o.RMSprop(0.1),
        "rmsprop momentum": lambda: o.RMSprop(0.1, momentum=0.5),
        "rmsprop centered": lambda: o.RMSprop(0.1, centered=True, epsilon=1e-3),
        "adadelta": lambda: o.Adadelta(1.0, epsilon=1e-3),
        "adamax": lambda: o.Adamax(0.1, epsilon=1e-3),
        "nadam": lambda: o.Nadam(0.1, epsilon=1e-3),
        "sgd decay": lambda: o.SGD(0.1, weight_decay=0.1),
        "clipnorm": lambda: o.SGD(0.1, clipnorm=1.0),
        "clipvalue": lambda: o.SGD(0.1, clipvalue=1.0),
        "global_clipnorm": lambda: o.SGD(0.1, global_clipnorm=1.0),
    }


@program
def optimizers_of_rows(tf):
    return {n: outcome(stepped, tf, make(), [2, 0]) for n, make in optimizers(tf).items()}


@program
def optimizers_of_repeated_rows(tf):
    return {n: outcome(stepped, tf, make(), [2, 2, 1]) for n, make in optimizers(tf).items()}


@program
def optimizers_of_rows_in_functions(tf):
    return {
        n: outcome(stepped, tf, make(), [3, 1, 3], 4, True) for n, make in optimizers(tf).items()
    }
