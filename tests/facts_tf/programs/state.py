"""Variables: assignments, shapes, dtypes, scatter updates, slices; modules."""

from __future__ import annotations

import copy

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


@program
def results_of_assignments(tf):
    v = tf.Variable([1.0, 2.0])
    a = v.assign([3.0, 4.0])
    b = v.assign_add([1.0, 1.0])
    c = v.assign_sub([2.0, 2.0])
    return [type(t).__name__ == type(v).__name__ for t in (a, b, c)], v


@program
def what_an_assignment_gives_in_a_function(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f():
        a = v.assign(5.0)
        b = v.assign_add(2.0)
        return a + 0.0, b + 0.0

    return f(), v


@program
def refused_assignments(tf):
    v = tf.Variable([1.0, 2.0])
    values = ([1.0], [1.0, 2.0, 3.0], 1.0, "a", None, tf.constant([1, 2]), [[1.0, 2.0]], np.ones(2))
    return [raised(v.assign, value) for value in values], v


@program
def refused_additions(tf):
    v = tf.Variable([1, 2])
    values = ([1.5, 2.5], 1, [1], tf.constant([1.0, 2.0]), np.ones(2, np.int64), [1, 2, 3])
    return [raised(v.assign_add, value) for value in values]


@program
def refused_assignments_in_a_function(tf):
    v = tf.Variable([1.0, 2.0])
    values = ([1.0], 1.0, tf.constant([1, 2]), [[1.0, 2.0]])
    return [raised(tf.function(lambda value=value: v.assign(value))) for value in values]


@program
def assigned_numbers_are_converted(tf):
    v = tf.Variable(1.0)
    results = [outcome(lambda n=n: v.assign(n).numpy().item()) for n in (2, True, np.int32(3), 4.5)]
    w = tf.Variable(1)
    return results, [raised(w.assign, n) for n in (2.0, 2.5, True, np.int64(2), np.float32(2))]


@program
def dtype_of_variables(tf):
    values = (1, 1.5, True, [1, 2], np.ones(2), np.float32(1), 1 + 2j)
    return [tf.Variable(v).dtype for v in values], tf.Variable(1, dtype=tf.float64)


@program
def variable_of_a_variable(tf):
    v = tf.Variable([1.0, 2.0])
    w = tf.Variable(v)
    v.assign([5.0, 6.0])
    return w


@program
def variable_of_a_function(tf):
    return tf.Variable(lambda: tf.ones([2])), tf.Variable(tf.zeros([1, 2]), name="z").name


@program
def open_shapes(tf):
    v = tf.Variable([1.0], shape=tf.TensorShape([None]))
    v.assign([1.0, 2.0, 3.0])
    return v.shape, v.read_value(), raised(v.assign, [[1.0]])


@program
def unknown_shapes(tf):
    def make():
        v = tf.Variable([1.0], shape=tf.TensorShape(None))
        v.assign([[1.0, 2.0]])
        return v.read_value()

    return outcome(make)


@program
def wrong_initial_shapes(tf):
    return raised(tf.Variable, [1.0, 2.0], shape=[3]), raised(tf.Variable), raised(tf.Variable, "a")


@program
def operators_on_variables(tf):
    v = tf.Variable([1.0, 2.0])
    return v + 1.0, 2.0 * v, -v, v[0], v > 1.0, v / v, v**2


@program
def augmented_assignment_replaces_the_name(tf):
    v = tf.Variable(1.0)
    w = v
    w += 1.0
    return v, hasattr(w, "assign"), w


@program
def item_assignment(tf):
    v = tf.Variable([1.0, 2.0, 3.0])

    def assign_item():
        v[0] = 5.0

    return raised(assign_item), v


@program
def slices_assigned(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    outcomes = outcome(lambda: v[0:2].assign([7.0, 8.0])), outcome(lambda: v[2].assign(9.0))
    return [isinstance(o, str) for o in outcomes], v


@program
def scatter_updates(tf):
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    v.scatter_nd_add([[0], [2]], [10.0, 20.0])
    first = v.read_value()
    v.scatter_nd_update([[1], [1]], [5.0, 6.0])
    second = v.read_value()
    v.scatter_nd_sub([[3], [3]], [1.0, 1.0])
    return first, second, v


@program
def scatter_of_slices(tf):
    def sparse(values, indices):
        return tf.IndexedSlices(tf.constant(values), tf.constant(indices))

    def run():
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        v.scatter_add(sparse([[10.0, 10.0]], [1]))
        v.scatter_update(sparse([[0.0, 0.0]], [0]))
        return v.read_value()

    return outcome(run)


@program
def scatter_out_of_range(tf):
    v = tf.Variable([1.0, 2.0])
    return raised(v.scatter_nd_add, [[5]], [1.0]), raised(v.scatter_nd_update, [[-1]], [1.0]), v


@program
def scatter_in_a_function(tf):
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f(i):
        v.scatter_nd_add([[i]], [10.0])
        return v.read_value()

    return f(tf.constant(1)), raised(f, tf.constant(7)), v


@program
def tensor_scatter(tf):
    t = tf.constant([1, 2, 3, 4])
    at, new = [[0], [2], [2]], [10, 20, 30]
    return tf.tensor_scatter_nd_add(t, at, new), tf.tensor_scatter_nd_update(t, at, new)


@program
def scatter_of_extremes(tf):
    v = tf.Variable([1.0, 5.0, float("nan")])
    v.scatter_nd_max([[0], [0], [1], [2]], [2.0, float("nan"), 3.0, 1.0])
    larger = v.numpy()
    v.scatter_nd_min([[0], [1], [1]], [1.5, 7.0, float("nan")])
    return larger, v, raised(v.scatter_nd_max, [[3]], [1.0])


@program
def tensor_scatter_other(tf):
    t = tf.constant([1, 2, 3, 4])
    at, new = [[0], [2], [2]], [10, 20, 30]
    names = ("sub", "max", "min")
    return [outcome(lambda n=n: getattr(tf, f"tensor_scatter_nd_{n}")(t, at, new)) for n in names]


@program
def reading_and_identity(tf):
    v = tf.Variable([1.0])
    before, same = v.read_value(), tf.identity(v)
    array = v.numpy()
    v.assign([9.0])
    return before, same, array, v.value(), tf.convert_to_tensor(v)


@program
def names(tf):
    return [
        tf.Variable(1).name, tf.Variable(1, name="w").name, tf.Variable(1, name="w").name,
        raised(tf.Variable, 1, name=3),
    ]  # fmt: skip


@program
def attributes(tf):
    v = tf.Variable([[1.0, 2.0]], trainable=False)
    return v.shape, v.dtype, v.trainable, tf.is_tensor(v), isinstance(v, tf.Tensor)


@program
def device_of_a_variable(tf):
    return tf.Variable(1.0).device.endswith("CPU:0")


@program
def hashing_and_comparing(tf):
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    return raised(hash, v), v == w, v is not w, v != 2.0, len({v.ref(), w.ref(), v.ref()})


@program
def hashing_tensors(tf):
    t = tf.constant(1.0)
    return raised(hash, t), raised(lambda: {t: 1}), t.ref() == t.ref(), t.ref().deref() is t


@program
def copies(tf):
    v = tf.Variable([1.0])
    w = copy.deepcopy(v)
    w.assign([5.0])
    return v, w


@program
def conversion_to_python(tf):
    v = tf.Variable(2.5)
    return (
        float(v),
        int(v),
        bool(v),
        np.asarray(v),
        outcome(len, tf.Variable([1, 2])),
        outcome(lambda: [float(t) for t in tf.Variable([1.0, 2.0])]),
    )


@program
def count_up(tf):
    v = tf.Variable(0)

    @tf.function
    def f(limit):
        while v < limit:
            v.assign_add(1)
        return v * 10

    return f(tf.constant(3)), f(tf.constant(2)), v


@program
def modules_collect_variables(tf):
    class Inner(tf.Module):
        def __init__(self):
            super().__init__(name="inner")
            self.w = tf.Variable(1.0, name="w")
            self.frozen = tf.Variable(2.0, name="frozen", trainable=False)

    class Outer(tf.Module):
        def __init__(self):
            super().__init__()
            self.z = tf.Variable(0.0, name="z")
            self.parts = [Inner(), {"k": Inner()}]
            self.alias = self.z

    outer = Outer()
    return (
        [v.name for v in outer.variables],
        [v.name for v in outer.trainable_variables],
        [v.name for v in outer.non_trainable_variables],
        [m.name for m in outer.submodules],
        outer.name,
    )


@program
def module_names(tf):
    class MyDenseLayer2D(tf.Module):
        pass

    return MyDenseLayer2D().name, MyDenseLayer2D(name="own").name, raised(tf.Module, name="not ok")


@program
def variable_in_a_traced_condition(tf):
    v = tf.Variable(3)

    @tf.function
    def f():
        if v > 2:
            v.assign(0)
            return tf.constant(1)
        return tf.constant(2)

    return f(), f(), v


@program
def swapped_variables(tf):
    a, b = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def swap():
        x = a.read_value()
        a.assign(b)
        b.assign(x)

    swap()
    return a, b


@program
def shape_after_open_assignment_in_a_function(tf):
    v = tf.Variable(tf.zeros([0]), shape=[None])

    @tf.function
    def push(x):
        v.assign(tf.concat([v, [x]], 0))
        return tf.size(v)

    return outcome(lambda: [push(tf.constant(float(i))) for i in range(3)]), v


@program
def casts_of_variables(tf):
    """A variable that has the dtype is given back itself: what is assigned later is seen."""
    v = tf.Variable([1.0, 2.0])
    same, wider, read = tf.cast(v, tf.float32), tf.cast(v, tf.float64), tf.identity(v)
    by_name = tf.cast(v, "float32", name="x")
    clamped, older = tf.saturate_cast(v, tf.float32), tf.compat.v1.to_float(v)
    v.assign([3.0, 4.0])
    return same is v, by_name is v, older is v, same + 0.0, wider, read, clamped


@program
def casts_of_variables_in_a_function(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f():
        same, wider = tf.cast(v, tf.float32), tf.cast(v, tf.float64)
        v.assign_add(1.0)
        return same, wider, same * 2.0, same is v

    return f(), f()


@program
def gradients_of_casts_of_variables(tf):
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.cast(v, tf.float32) ** 2
        z = tf.cast(tf.cast(v, tf.float64), tf.float32) ** 2
    with tf.GradientTape() as other:
        found = tf.cast(v, tf.float32)
        square = found * found
    return tape.gradient(y, v), tape.gradient(z, v), other.gradient(square, found)


@program
def casts_of_kerass_variables(tf):
    v = tf.keras.Variable([1.0, 2.0], dtype="float32")
    same, wider = tf.cast(v, "float32"), tf.cast(v, "float64")
    v.assign([3.0, 4.0])
    return same + 0.0, wider


@program
def casts_of_other_values_of_the_dtype(tf):
    sparse = tf.SparseTensor([[0]], [1.0], [3])
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]), tf.constant([2, 1]))
    x = tf.constant(1.0)
    return (
        tf.cast(x, tf.float32) is x, tf.cast(sparse, tf.float32).values,
        tf.cast(rows, tf.float64).values, tf.cast(tf.ragged.constant([[1.0], []]), tf.float32),
    )
