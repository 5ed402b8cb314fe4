"""Variables changed in parts: slices, rows at positions, what they say of themselves."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]


def after(change, v):
    """The value of a variable after a change, or the error."""
    error = raised(change, v)
    return v.numpy() if error == "no error" else (error, v.numpy())


def slices(tf, values, indices, dtype=None):
    return tf.IndexedSlices(tf.constant(values, dtype), tf.constant(indices))


# -- slices ---------------------------------------------------------------------


@program
def slice_assign_keys(tf):
    keys = [
        (slice(1, 3), [[0.0] * 3] * 2),
        (1, [0.0, 0.0, 0.0]),
        ((1, 2), 0.0),
        (-1, [0.0, 0.0, 0.0]),
        ((slice(None), 0), [0.0, 0.0, 0.0]),
        ((slice(None), slice(0, 2)), [[0.0, 0.0]] * 3),
        ((Ellipsis, 1), [0.0, 0.0, 0.0]),
        (slice(None, None, 2), [[0.0] * 3] * 2),
        (slice(None, None, -1), [[1.0] * 3, [2.0] * 3, [3.0] * 3]),
        ((slice(0, 1), slice(1, None)), [[0.0, 0.0]]),
    ]
    return [after(lambda v, k=k, x=x: v[k].assign(x), tf.Variable(MATRIX)) for k, x in keys]


@program
def slice_assign_of_one_value(tf):
    """Whether a value is broadcast to the part."""
    values = [0.0, [0.0], [0.0, 0.0, 0.0], [[0.0, 0.0, 0.0]], [[0.0], [0.0]], [[0.0] * 3] * 3]
    return [after(lambda v, x=x: v[0:2].assign(x), tf.Variable(MATRIX)) for x in values]


@program
def slice_assign_of_other_dtypes(tf):
    values = [1, 2.5, np.float64(1.5), np.int32(7), True]
    found = [after(lambda v, x=x: v[1].assign(x), tf.Variable([1.0, 2.0])) for x in values]
    return found, raised(lambda: tf.Variable([1.0, 2.0])[1].assign(tf.constant(1)))


@program
def slice_assign_out_of_range(tf):
    v = tf.Variable(MATRIX)
    return raised(lambda: v[5].assign([0.0] * 3)), raised(lambda: v[-4].assign([0.0] * 3))


@program
def slice_assign_with_tensor_bounds(tf):
    i = tf.constant(1)
    return [
        after(lambda v: v[i].assign([0.0] * 3), tf.Variable(MATRIX)),
        after(lambda v: v[i:].assign([[0.0] * 3] * 2), tf.Variable(MATRIX)),
        after(lambda v: v[0, i].assign(0.0), tf.Variable(MATRIX)),
    ]


@program
def slice_assign_gives_the_variable(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    return v[0:2].assign([7.0, 8.0])


@program
def slice_assign_later(tf):
    """The part that was read keeps its elements."""
    v = tf.Variable([1.0, 2.0, 3.0])
    part = v[0:2]
    part.assign([7.0, 8.0])
    before = part + 0.0
    part.assign([9.0, 10.0])
    return before, v


@program
def slice_assign_in_a_function(tf):
    v = tf.Variable(MATRIX)

    @tf.function
    def f(i, x):
        v[1:3].assign(tf.zeros([2, 3]))
        v[i].assign(x)
        return v + 0.0

    return f(tf.constant(0), tf.constant([5.0, 5.0, 5.0])), v


@program
def slice_assign_in_a_loop(tf):
    v = tf.Variable(tf.zeros([4]))

    @tf.function
    def f(n):
        for i in tf.range(n):
            v[i].assign(tf.cast(i * i, tf.float32))

    f(tf.constant(4))
    return v


@program
def slices_of_tensors_have_no_assign(tf):
    t = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 2.0])
    return hasattr(t, "assign"), hasattr(t[0:1], "assign"), hasattr(v[0:1], "assign")


@program
def slice_assign_and_gradients(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        v[0].assign(5.0)
        y = tf.reduce_sum(v * v)
    return tape.gradient(y, v)


# -- rows at positions ---------------------------------------------------------------------


def scattered(tf, name, values, indices, start=None, dtype=None):
    v = tf.Variable(MATRIX if start is None else start, dtype=dtype)
    return after(lambda v: getattr(v, name)(slices(tf, values, indices, dtype)), v)


ROWS = [[10.0, 20.0, 30.0], [2.0, 4.0, 8.0]]
SCATTERS = ("add", "sub", "mul", "div", "min", "max", "update")


@program
def scatter_rows(tf):
    return {n: scattered(tf, f"scatter_{n}", ROWS, [2, 0]) for n in SCATTERS}


@program
def scatter_rows_twice(tf):
    return {n: scattered(tf, f"scatter_{n}", ROWS, [1, 1]) for n in SCATTERS}


@program
def scatter_of_integers(tf):
    names = ("add", "sub", "mul", "min", "max", "update")
    start, new = [5, 6, 7], [2, 9, 3]
    return {n: scattered(tf, f"scatter_{n}", new, [0, 1, 1], start, tf.int32) for n in names}


@program
def scatter_division_of_integers(tf):
    return scattered(tf, "scatter_div", [2, 4, -3], [0, 1, 2], [5, 6, 7], tf.int32)


@program
def scatter_of_float64(tf):
    return {
        n: scattered(tf, f"scatter_{n}", [[2.0, 4.0, 8.0]], [1], dtype=tf.float64) for n in SCATTERS
    }


@program
def scatter_at_int64(tf):
    v = tf.Variable(MATRIX)
    v.scatter_add(tf.IndexedSlices(tf.constant(ROWS), tf.constant([0, 2], tf.int64)))
    return v


@program
def scatter_matrix_of_positions(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    change = lambda v: v.scatter_add(slices(tf, [[1.0, 2.0], [3.0, 4.0]], [[0, 1], [2, 0]]))
    return after(change, v)


@program
def scatter_one_position(tf):
    v = tf.Variable(MATRIX)
    return after(lambda v: v.scatter_add(slices(tf, [1.0, 1.0, 1.0], 1)), v)


@program
def scatter_of_one_value(tf):
    v = tf.Variable(MATRIX)
    return after(lambda v: v.scatter_update(slices(tf, 0.5, [0, 2])), v)


@program
def scatter_of_nothing(tf):
    v = tf.Variable(MATRIX)
    nothing = tf.IndexedSlices(tf.zeros([0, 3]), tf.zeros([0], tf.int32))
    return after(lambda v: v.scatter_add(nothing), v)


@program
def scatter_rows_out_of_range(tf):
    return [
        scattered(tf, f"scatter_{n}", [[0.0, 0.0, 0.0]], [at]) for n in SCATTERS for at in (3, -1)
    ]


@program
def scatter_rows_of_other_shapes(tf):
    v = tf.Variable(MATRIX)
    return [
        raised(v.scatter_add, slices(tf, [[1.0, 2.0, 3.0]], [0, 1])),
        raised(v.scatter_nd_add, [[0]], [[1.0, 2.0]]),
        v,
    ]


@program
def scatter_of_tensors(tf):
    """Only slices are taken."""
    v = tf.Variable(MATRIX)
    names = (*SCATTERS, "add")
    return [raised(getattr(v, f"scatter_{n}"), tf.constant(MATRIX)) for n in names]


@program
def scatter_of_other_dtypes(tf):
    v = tf.Variable([1.0, 2.0])
    return raised(v.scatter_add, slices(tf, [1], [0])), v


@program
def scatter_gives_the_variable(tf):
    v = tf.Variable([1.0, 2.0])
    return v.scatter_add(slices(tf, [1.0], [0]))


@program
def scatter_rows_in_a_function(tf):
    def changed(name):
        v = tf.Variable(MATRIX)

        @tf.function
        def f(values, indices):
            getattr(v, f"scatter_{name}")(tf.IndexedSlices(values, indices))
            return v + 0.0

        return f(tf.constant(ROWS), tf.constant([2, 0])), raised(f, tf.constant(ROWS), [7, 0])

    return {n: changed(n) for n in SCATTERS}


@program
def scatter_nd_rows(tf):
    names = ("add", "sub", "update", "max", "min")
    at, new = [[0, 1], [2, 2], [0, 1]], [10.0, 0.5, 3.0]
    found = {}
    for n in names:
        v = tf.Variable(MATRIX)
        found[n] = after(lambda v, n=n: getattr(v, f"scatter_nd_{n}")(at, new), v)
    return found


@program
def scatter_nd_whole_rows(tf):
    v = tf.Variable(MATRIX)
    v.scatter_nd_sub([[0], [2]], [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    w = v.scatter_nd_max([[1]], [[100.0, 0.0, 5.5]])
    return v, w


@program
def batch_scatter(tf):
    v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    v.batch_scatter_update(slices(tf, [[10.0, 20.0], [30.0, 40.0]], [[0, 2], [1, 0]]))
    w = tf.Variable([1.0, 2.0, 3.0])
    w.batch_scatter_update(slices(tf, [10.0, 20.0], [2, 0]))
    x = tf.Variable(tf.zeros([2, 3, 2]))
    x.batch_scatter_update(slices(tf, [[[1.0, 2.0]], [[3.0, 4.0]]], [[1], [2]]))
    return v, w, x, raised(w.batch_scatter_update, tf.constant([1.0]))


@program
def scatter_tensors(tf):
    t = tf.constant(MATRIX)
    at, new = [[0, 1], [2, 2], [0, 1]], [10.0, 0.5, 3.0]
    return [
        getattr(tf, f"tensor_scatter_nd_{n}")(t, at, new)
        for n in ("add", "sub", "update", "max", "min")
    ]


@program
def scatter_into_zeros(tf):
    found = tf.scatter_nd([[1], [3], [1]], [9.0, 10.0, 1.0], [5])
    rows = tf.scatter_nd([[1]], [[1, 2]], [2, 2])
    return found, rows, raised(tf.scatter_nd, [[7]], [1.0], [5])


# -- reading ---------------------------------------------------------------------


@program
def sparse_read(tf):
    v = tf.Variable(MATRIX)
    return [
        v.sparse_read([2, 0]), v.sparse_read([[0, 1], [1, 2]]), v.sparse_read(1),
        raised(v.sparse_read, [3]),
    ]  # fmt: skip


@program
def gather_nd_of_variables(tf):
    v = tf.Variable(MATRIX)
    return v.gather_nd([[0, 1], [2, 2]]), v.gather_nd([[1]]), v.gather_nd([1, 1])


@program
def value_and_read_value(tf):
    v = tf.Variable([1.0, 2.0])
    before, read = v.value(), v.read_value()
    v.assign([3.0, 4.0])
    return before + 0.0, read, v.value()


# -- what a variable says of itself --------------------------------------------------------


@program
def names_in_scopes(tf):
    found = []
    with tf.name_scope("leafy"):
        found.append(tf.Variable(1.0, name="v").name)
        found.append(tf.Variable(1.0).name)
        with tf.name_scope("twig"):
            found.append(tf.Variable(1.0, name="v").name)
    with tf.name_scope("leafy"):
        found.append(tf.Variable(1.0, name="v").name)
    with tf.name_scope("leafy/") as scope:
        found.extend([tf.Variable(1.0, name="v").name, scope])
    with tf.name_scope("outer") as scope:
        with tf.name_scope("inner") as inside:
            found.extend([scope, inside])
        with tf.name_scope(scope):
            found.append(tf.Variable(1.0, name="again").name)
        with tf.name_scope(""):
            found.append(tf.Variable(1.0, name="top").name)
    found.append(tf.Variable(1.0, name="v").name)
    return found


@program
def names_in_scopes_of_functions(tf):
    found = []

    class Holder:
        v = None

    @tf.function
    def f():
        if Holder.v is None:
            with tf.name_scope("inside"):
                Holder.v = tf.Variable(1.0, name="v")
        return Holder.v + 1.0

    f()
    found.append(Holder.v.name)
    return found


@program
def names_in_modules(tf):
    class Layer(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            with self.name_scope:
                self.w = tf.Variable(1.0, name="w")

        @tf.Module.with_name_scope
        def build(self):
            self.b = tf.Variable(1.0, name="b")
            return self.b.name

    class Outer(tf.Module):
        @tf.Module.with_name_scope
        def build(self):
            self.layer = Layer()
            return self.layer.w.name, self.layer.build()

    layer = Layer(name="leafy")
    return layer.w.name, layer.build(), Outer().build(), Outer(name="tree").build()


@program
def wrong_scope_names(tf):
    def enter(name):
        with tf.name_scope(name):
            pass

    return [raised(enter, n) for n in (3, None)]


@program
def attributes(tf):
    v = tf.Variable([1.0, 2.0])
    w = tf.Variable(
        [1.0], trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
    )  # fmt: skip
    return [
        [x.trainable, x.synchronization.name, x.aggregation.name, x.shape, x.dtype] for x in (v, w)
    ]


@program
def synchronization_and_training(tf):
    on_read = tf.VariableSynchronization.ON_READ
    return [
        tf.Variable(1.0, synchronization=on_read).trainable,
        raised(tf.Variable, 1.0, trainable=True, synchronization=on_read),
        tf.Variable(1, trainable=True).trainable,
    ]  # fmt: skip


@program
def enumerations(tf):
    return [
        [(e.name, e.value) for e in tf.VariableSynchronization],
        [(e.name, e.value) for e in tf.VariableAggregation],
    ]


@program
def wrong_synchronization(tf):
    return raised(tf.Variable, 1.0, synchronization="no"), raised(
        tf.Variable, 1.0, aggregation="no"
    )


@program
def initialization(tf):
    v = tf.Variable([1.0, 2.0])
    before = outcome(lambda: v.is_initialized())
    v.assign([3.0, 4.0])
    return [before, outcome(lambda: v.is_initialized()), outcome(lambda: v.initialized_value())]


@program
def initialization_in_a_function(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f():
        return v.is_initialized()

    return f()
