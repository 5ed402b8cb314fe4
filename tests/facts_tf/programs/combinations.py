"""Mechanisms with one another: strings, unknown ranks, structures, rows and arrays of tensors in
loops, branches, batches and derivatives. (Annotations of the classes are read as they are made.)"""

import numpy as np

from tests.facts_tf.registry import outcome, program


def of_any_rank(tf, *values):
    """``f(x)`` for each value, of a function whose argument's rank is unknown."""

    def decorated(fn):
        spec = tf.TensorSpec(None, tf.constant(values[0]).dtype)
        traced = tf.function(fn, input_signature=[spec])
        return [outcome(traced, tf.constant(v)) for v in values]

    return decorated


def kept(tf):
    """An extension type with a tensor and a string."""

    class Kept(tf.experimental.ExtensionType):
        values: tf.Tensor
        label: tf.Tensor

        def total(self):
            return tf.reduce_sum(self.values)

    return Kept


# -- strings -------------------------------------------------------------------------------------


@program
def strings_of_a_loop_in_an_array(tf):
    @tf.function
    def f(n):
        ta = tf.TensorArray(tf.string, 0, dynamic_size=True)
        s, i = tf.constant("a"), 0
        while i < n:
            s = tf.strings.join([s, tf.strings.as_string(i)])
            if i % 2 == 0:
                ta = ta.write(ta.size(), s)
            i += 1
        return s, ta.stack()

    return f(tf.constant(5)), f(tf.constant(0))


@program
def extension_types_with_strings_in_loops(tf):
    Kept = kept(tf)

    @tf.function
    def f(n):
        state = Kept(tf.constant([1.0, 2.0]), tf.constant("a"))
        ta = tf.TensorArray(tf.string, 0, dynamic_size=True)
        for i in tf.range(n):
            state = Kept(state.values * 2.0, state.label + tf.strings.as_string(i))
            if state.total() > 10.0:
                ta = ta.write(ta.size(), state.label)
        return state.values, state.label, ta.stack()

    return f(tf.constant(4)), f(tf.constant(0))


@program
def extension_types_chosen_by_switch_case(tf):
    Kept = kept(tf)

    @tf.function
    def f(i):
        made = [lambda: Kept([1.0], "a"), lambda: Kept([2.0], "b")]
        return tf.switch_case(i, made).label

    return f(tf.constant(0)), f(tf.constant(1))


@program
def strings_of_unknown_rank(tf):
    @of_any_rank(tf, "ab", ["a", "bcd"], [["x"]])
    def found(s):
        return tf.strings.length(s), tf.strings.upper(s), tf.rank(s)

    return found


@program
def strings_through_python_in_datasets(tf):
    def upper(s):
        y = tf.py_function(lambda t: tf.strings.upper(t), [s], tf.string)
        y.set_shape([])
        return y

    data = tf.data.Dataset.from_tensor_slices(["a", "b"]).map(upper)
    return list(data.filter(lambda s: tf.equal(s, "B")))


@program
def strings_mapped_and_folded(tf):
    words = tf.constant(["a", "bc", "d"])

    @tf.function
    def f(s):
        return (
            tf.map_fn(tf.strings.length, s, fn_output_signature=tf.int32),
            tf.scan(lambda a, b: a + b, s),
            tf.foldr(lambda a, b: a + b, s),
            tf.map_fn(tf.strings.as_string, tf.range(3), fn_output_signature=tf.string),
        )

    return f(words)


@program
def conditions_on_strings_in_loops(tf):
    @tf.function
    def f(s, n):
        while tf.strings.length(s) < n:
            if s == "aa":
                s = s + "b"
            else:
                s = "a" + s
        return s

    return f(tf.constant("a"), tf.constant(6)), f(tf.constant("aaa"), tf.constant(2))


@program
def different_strings(tf):
    def f(s):
        return tf.unique(s), tf.unique_with_counts(s, tf.int64)

    words = tf.constant(["b", "", "b", "a"])
    return f(words), tf.function(f)(words), tf.function(f)(tf.constant([], tf.string))


@program
def strings_of_variables(tf):
    v = tf.Variable("a")

    @tf.function
    def f(x):
        v.assign(v + x)
        return v.read_value()

    return f(tf.constant("b")), f(tf.constant("c")), v


# -- unknown ranks -------------------------------------------------------------------------------


@program
def gradients_of_loops_of_unknown_rank(tf):
    @of_any_rank(tf, [1.0, 2.0], [[3.0]], 2.0)
    def found(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                if tf.reduce_sum(y) < 20.0:
                    y = y * x
        return tape.gradient(y, x)

    return found


@program
def batches_of_unknown_rank(tf):
    @of_any_rank(tf, [[1.0, 2.0]], [[[1.0, 2.0]], [[3.0, 4.0]]])
    def found(x):
        return tf.vectorized_map(lambda row: tf.reduce_sum(row * row), x)

    return found


@program
def functions_of_unknown_rank_call_one_another(tf):
    inner = tf.function(
        lambda x: x * tf.cast(tf.rank(x), tf.float32), input_signature=[tf.TensorSpec(None)]
    )

    @of_any_rank(tf, [[1.0, 2.0]], 3.0)
    def found(x):
        return inner(x) + inner(tf.reduce_sum(x))

    return found


@program
def results_of_python_that_others_settle(tf):
    @tf.function
    def f(x):
        doubled = tf.numpy_function(lambda a: a * 2, [x], tf.float32)
        total = 0.0
        for row in tf.reshape(doubled, [-1]):
            total += row
        return total, tf.py_function(lambda a: a + 1, [doubled], tf.float32)

    return f(tf.constant([[1.0, 2.0], [3.0, 4.0]]))


@program
def results_of_python_in_loops_and_branches(tf):
    @tf.function
    def f(x, p):
        for _ in tf.range(3):
            y = tf.numpy_function(lambda a: a * np.float32(2), [x], tf.float32)
            y.set_shape(x.shape)
            x = y
        if p:
            z = tf.numpy_function(lambda a: -a, [x], tf.float32)
            x = tf.ensure_shape(z, [2])
        return x

    x = tf.constant([1.0, 2.0])
    return f(x, tf.constant(True)), f(x, tf.constant(False))


# -- rows ----------------------------------------------------------------------------------------


@program
def rows_through_loops_and_branches(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    @tf.function
    def f(ids, n):
        with tf.GradientTape() as tape:
            y = 0.0
            for i in tf.range(n):
                if i % 2 == 0:
                    y += tf.reduce_sum(tf.nn.embedding_lookup(v, ids) ** 2)
                else:
                    y += tf.reduce_sum(tf.gather(v, ids[::-1]) * v[0])
        return tf.convert_to_tensor(tape.gradient(y, v))

    ids = tf.constant([0, 1, 0])
    return f(ids, tf.constant(3)), f(ids, tf.constant(0))


@program
def rows_clipped_in_a_step(tf):
    v, w = tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([3.0])

    @tf.function
    def f(ids):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(v, ids) * w)
        (dv, dw), norm = tf.clip_by_global_norm(tape.gradient(y, [v, w]), 0.5)
        v.scatter_sub(dv)
        w.assign_sub(dw)
        return norm, dv.indices

    return f(tf.constant([0, 0])), f(tf.constant([1, 0])), v, w


@program
def rows_chosen_by_branches(tf):
    @tf.function
    def f(p):
        a = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([3, 1]))
        b = tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([2]), tf.constant([3, 1]))
        return tf.convert_to_tensor(tf.cond(p, lambda: a, lambda: b))

    return f(tf.constant(True)), f(tf.constant(False))


@program
def rows_of_batches(tf):
    table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def of_one(i):
        with tf.GradientTape() as tape:
            tape.watch(table)
            y = tf.reduce_sum(tf.gather(table, [i, i]) ** 2)
        return tf.convert_to_tensor(tape.gradient(y, table))

    return tf.vectorized_map(of_one, tf.constant([0, 2]))


@program
def jacobians_of_rows(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.gather(v, [0, 1, 0]) ** 2
    with tf.autodiff.ForwardAccumulator(v, tf.ones([2, 2])) as forward:
        z = tf.gather(v, [0, 1, 0]) ** 2
    return tape.jacobian(y, v), forward.jvp(z)


@program
def types_of_rows(tf):
    spec = tf.IndexedSlicesSpec([None, 2], tf.float32, tf.int32, tf.int32)

    @tf.function(input_signature=[spec])
    def f(rows):
        return rows.values * 2.0, tf.convert_to_tensor(rows)

    found = [
        f(tf.IndexedSlices(tf.ones([n, 2]), tf.range(n), tf.constant([4, 2]))) for n in (1, 3)
    ]
    return found, f.experimental_get_tracing_count(), spec.value_type is tf.IndexedSlices


# -- batches and derivatives ---------------------------------------------------------------------


@program
def batches_of_loops_and_branches(tf):
    def doubled(x):
        return tf.while_loop(lambda i, y: y < 10.0, lambda i, y: (i + 1, y * 2.0), [0, x])

    def chosen(row):
        return tf.cond(tf.reduce_sum(row) > 0.0, lambda: row * 2.0, lambda: row - 1.0)

    return (
        tf.vectorized_map(doubled, tf.constant([1.0, 3.0, 20.0])),
        tf.vectorized_map(chosen, tf.constant([[1.0, 2.0], [-3.0, 1.0]])),
    )


@program
def batches_of_functions_with_loops(tf):
    @tf.function
    def g(x, n):
        for i in tf.range(n):
            if i % 2 == 0:
                x = x * 2.0
            else:
                x += 1.0
        return x

    pairs = tf.constant([1.0, 2.0]), tf.constant([1, 4])
    return tf.vectorized_map(lambda pair: g(pair[0], pair[1]), pairs)


@program
def hessians_of_loops(tf):
    @tf.function
    def f(x, n):
        y = tf.reduce_sum(x)
        for _ in tf.range(n):
            y = y * x[0] + tf.reduce_sum(x * x)
        return tf.hessians(y, [x])

    x = tf.constant([1.0, 2.0])
    return f(x, tf.constant(3)), f(x, tf.constant(1))


@program
def hessians_of_mapped_elements(tf):
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for e in x:
            if e > 0.0:
                ta = ta.write(ta.size(), e**3)
        mapped = tf.map_fn(lambda e: e**3, x)
        return tf.hessians(tf.reduce_sum(mapped), x), tf.hessians(tf.reduce_sum(ta.stack()), x)

    return f(tf.constant([1.0, -2.0, 3.0]))


@program
def gradients_of_gradients_of_a_loop(tf):
    @tf.function
    def f(x, n):
        y = x
        for _ in tf.range(n):
            y = y * x + tf.sin(y)
        first = tf.gradients(y, x)[0]
        second = tf.gradients(first, x)[0]
        return y, first, second, tf.gradients(y + first * second, x)[0]

    return f(tf.constant(1.5), tf.constant(2)), f(tf.constant(0.5), tf.constant(0))


@program
def gradients_inside_a_loop(tf):
    @tf.function
    def f(x, n):
        total = tf.zeros_like(x)
        for i in tf.range(n):
            y = tf.reduce_sum(x**2) * tf.cast(i, tf.float32)
            total += tf.gradients(y, x)[0]
        return total

    return f(tf.constant([1.0, 2.0]), tf.constant(3))


# -- optionals -----------------------------------------------------------------------------------


@program
def optionals(tf):
    made = tf.experimental.Optional.from_value({"a": tf.constant(42), "b": (1.0, "x")})
    missing = tf.experimental.Optional.empty(tf.TensorSpec([None], tf.int32))
    return (
        made.has_value(), made.get_value()["a"], missing.has_value(), outcome(missing.get_value),
        missing.element_spec == tf.TensorSpec([None], tf.int32),
    )  # fmt: skip


@program
def optionals_in_branches(tf):
    @tf.function
    def f(x):
        if x > 0:
            found = tf.experimental.Optional.from_value(x)
        else:
            found = tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32))
        if found.has_value():
            return found.get_value()
        else:
            return -1

    return f(tf.constant(3)), f(tf.constant(-3))


@program
def optionals_of_loops(tf):
    @tf.function
    def first_over(xs, least):
        found = tf.experimental.Optional.empty(tf.TensorSpec([], tf.float32))
        for x in xs:
            if tf.logical_and(x > least, tf.logical_not(found.has_value())):
                found = tf.experimental.Optional.from_value(x)
        return found.get_value()

    xs = tf.constant([1.0, 5.0, 9.0])
    return [outcome(first_over, xs, tf.constant(v)) for v in (0.0, 3.0, 10.0)]


@program
def optionals_as_arguments(tf):
    spec = tf.OptionalSpec(tf.TensorSpec([None], tf.int32))

    @tf.function(input_signature=[spec])
    def f(optional):
        return optional.get_value() + 1

    empty = tf.experimental.Optional.empty(tf.TensorSpec([None], tf.int32))
    found = f(tf.experimental.Optional.from_value(tf.constant([42])))
    return found, outcome(f, empty), f.experimental_get_tracing_count()


@program
def name_scopes_of_modules(tf):
    class Model(tf.Module):
        def __init__(self):
            super().__init__("model")
            with self.name_scope:
                self.v = tf.Variable(1.0, name="v")
                self.w = [tf.Variable(2.0, name="w")]

    model = Model()
    with tf.name_scope("outer") as scope:
        inner = tf.Variable(1.0, name="inner").name
    return [v.name for v in model.variables], model.name_scope.name, scope, inner
