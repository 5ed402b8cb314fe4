"""Functions of variables that they also reach otherwise, variables that calls make of arguments of
open shapes, sparse arguments of known shapes, and states of reductions that change their rank."""

from __future__ import annotations

import tempfile

from tests.facts_tf.registry import outcome, program, raised


def of_captured(tf, first):
    """What calls of concrete functions for (w) and (u), or for (u) alone, do to u and w."""
    u, w = tf.Variable(1.0), tf.Variable(10.0)

    @tf.function
    def f(v):
        v.assign_add(3.0)
        u.assign(u * 2.0)

    by_number = [f.get_concrete_function(v) for v in ((w, u) if first else (u,))][-1]
    found = []
    for variable in (w, u, w):
        by_number(variable)
        found.append((u.numpy(), w.numpy()))
    f(u), f(w)
    found.append((u.numpy(), w.numpy()))

    @tf.function
    def outer(a, b):
        by_number(a), by_number(b)

    outer(w, u)
    return [*found, (u.numpy(), w.numpy())]


@program
def concrete_functions_of_captured_variables(tf):
    return of_captured(tf, True)


@program
def first_concrete_functions_of_captured_variables(tf):
    return of_captured(tf, False)


@program
def variables_made_of_arguments_of_open_shapes(tf):
    class Model(tf.Module):
        v = None

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def keep(self, x):
            if self.v is None:
                self.v = tf.Variable(x * 2.0)
            before = self.v.read_value() + 0.0
            self.v.assign(x)
            return before

    model = Model()
    found = [model.keep([[1.0, 2.0]]), model.v.shape, model.v.numpy()]
    found += [model.keep([[3.0, 4.0], [5.0, 6.0]]), model.v.numpy()]
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, folder)
        loaded = tf.saved_model.load(folder)
    found += [loaded.v.shape, loaded.v.numpy(), loaded.keep([[7.0, 8.0]]), loaded.v.numpy()]
    return [*found, loaded.keep([[1.0, 1.0]] * 3), loaded.v.numpy()]


def pair(tf, rows, columns, *, kind="int32"):
    return tf.SparseTensor([[0, 0], [1, 1]], tf.constant([1, 2], kind), [rows, columns])


@program
def shapes_of_sparse_arguments(tf):
    shapes = []

    @tf.function
    def f(x):
        shapes.append(x.shape)
        return tf.sparse.to_dense(x)

    found = [f(pair(tf, *sizes)) for sizes in ((2, 3), (2, 3), (4, 2), (2, 3), (4, 2), (2, 3))]
    return found, shapes, f.experimental_get_tracing_count()


@program
def shapes_of_sparse_arguments_of_a_signature(tf):
    shapes = []

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.int32)])
    def f(x):
        shapes.append(x.shape)
        return tf.sparse.to_dense(x)

    found = [f(pair(tf, 2, 3)), f(pair(tf, 4, 3)), f(pair(tf, 5, 3)), raised(f, pair(tf, 2, 4))]
    return found, shapes


@program
def shapes_of_sparse_arguments_of_concrete_functions(tf):
    shapes = []

    @tf.function
    def f(x):
        shapes.append(x["a"].shape)
        return tf.sparse.to_dense(x["a"])

    c = f.get_concrete_function({"a": tf.SparseTensorSpec([None, 3], tf.int32)})
    d = f.get_concrete_function({"a": pair(tf, 2, 4)})
    found = [c({"a": pair(tf, 2, 3)}), raised(c, {"a": pair(tf, 2, 4)}), d({"a": pair(tf, 2, 4)})]
    found += [raised(d, {"a": pair(tf, 3, 4)}), f({"a": pair(tf, 6, 3)})]
    return found, shapes, f.experimental_get_tracing_count()


@program
def shapes_of_sparse_arguments_of_relaxed_functions(tf):
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape)
        return tf.sparse.to_dense(x)

    found = [f(pair(tf, *sizes)) for sizes in ((2, 3), (4, 3), (5, 3), (2, 2), (3, 4), (3, 4))]
    return found, shapes


@program
def shapes_of_sparse_arguments_of_inner_functions(tf):
    shapes = []

    @tf.function
    def inner(x):
        shapes.append(x.shape)
        return tf.sparse.reduce_sum(x, 0)

    @tf.function
    def outer(x, n):
        made = tf.SparseTensor(x.indices, x.values, tf.stack([n, 3]))
        return inner(x), inner(tf.sparse.transpose(x)), inner(made)

    return outer(pair(tf, 2, 3), tf.constant(5, tf.int64)), shapes


@program
def states_that_change_their_rank(tf):
    d = tf.data.Dataset.from_tensor_slices([1, 2, 3])

    def grown(state, x):
        return tf.reshape(tf.stack([tf.reduce_sum(state), x]), [1, 2])

    def pairs(state, x):
        return grown(state, x), tf.reduce_sum(state)

    return [
        outcome(lambda: d.reduce(0, grown)),
        outcome(lambda: list(d.scan(0, pairs))),
        outcome(lambda: d.reduce((0, 1), lambda s, x: (tf.expand_dims(s[0], 0), s[1] + x))),
        outcome(lambda: tf.function(lambda: d.reduce(0, grown))()),
        raised(d.reduce, 0, lambda s, x: tf.cast(s, tf.float32)),
    ]
