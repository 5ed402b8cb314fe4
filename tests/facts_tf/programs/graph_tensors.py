"""What tensors say of themselves, eagerly and while a function is traced."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def traced(tf, use, *values):
    """What `use` gives for the tensors of a trace."""
    found = []

    @tf.function
    def f(*args):
        found.append(outcome(use, *args))
        return tf.constant(0)

    f(*(tf.constant(v) for v in values))
    return found[0]


@program
def which_things_are_tensors(tf):
    things = [tf.constant(1), tf.Variable(1), np.ones(2), 1, [1], "a", None]
    things += [tf.TensorSpec([]), tf.TensorShape([])]
    return [tf.is_tensor(x) for x in things], traced(tf, tf.is_tensor, 1.0)


@program
def which_tensors_are_symbolic(tf):
    x, v = tf.constant(1.0), tf.Variable(1.0)
    return (
        tf.is_symbolic_tensor(x),
        raised(tf.is_symbolic_tensor, v),
        [
            traced(tf, tf.is_symbolic_tensor, 1.0),
            traced(tf, lambda t: tf.is_symbolic_tensor(t + 1), 1.0),
            traced(tf, lambda t: tf.is_symbolic_tensor(tf.constant(1.0)), 1.0),
            traced(tf, lambda t: tf.is_symbolic_tensor(x), 1.0),
        ],
    )


@program
def names_eagerly(tf):
    x = tf.constant(1.0)
    return [raised(getattr, x, name) for name in ("name", "op", "graph", "device", "shape")], [
        hasattr(x, name) for name in ("name", "op", "graph", "numpy", "eval")
    ]


@program
def names_in_a_function(tf):
    return [
        traced(tf, lambda x: x.name, 1.0),
        traced(tf, lambda x: x.op.type, 1.0),
        traced(tf, lambda x: x.op.name + ":0" == x.name, 1.0),
        traced(tf, lambda x: (x + 1.0).op.type, 1.0),
        traced(tf, lambda x: [type(i).__name__ for i in (x + 1.0).op.inputs], 1.0),
        traced(tf, lambda x: (x + 1.0).op.inputs[0] is x, 1.0),
        traced(tf, lambda x: len((x + 1.0).op.outputs), 1.0),
        traced(tf, lambda x: (x + 1.0).name.endswith(":0"), 1.0),
        traced(tf, lambda x: hasattr(x, "numpy"), 1.0),
        traced(tf, lambda x: x.value_index, 1.0),
        traced(tf, lambda x: tf.split(x, 2)[1].value_index, [1.0, 2.0]),
        traced(tf, lambda x: x.graph is tf.constant(2.0).graph, 1.0),
        traced(tf, lambda x: x.device, 1.0),
    ]


@program
def evaluated_in_a_function(tf):
    return raised(tf.constant(1.0).eval), traced(tf, lambda x: x.eval(), 1.0)


@program
def consumers(tf):
    def use(x):
        before = len(x.consumers())
        y = x + 1.0
        return before, len(x.consumers()), y.consumers()

    return traced(tf, use, 1.0)


@program
def references(tf):
    x, y, v = tf.constant(1.0), tf.constant(1.0), tf.Variable(1.0)
    table = {x.ref(): 1, v.ref(): 2}
    return (
        table[x.ref()],
        y.ref() in table,
        table[v.ref()],
        x.ref().deref() is x,
        x.ref() == x.ref(),
        x.ref() == y.ref(),
        raised(hash, x),
        traced(tf, lambda t: (t.ref().deref() is t, t.ref() in {t.ref()}), 1.0),
    )


@program
def shapes_by_method(tf):
    x = tf.ones([2, 3])
    return (
        x.get_shape(),
        x.get_shape().as_list(),
        x.ndim,
        traced(tf, lambda t: (t.get_shape(), t.shape.rank), [[1.0]]),
    )


@program
def symbolic_values_are_refused(tf):
    uses = (float, int, bool, list, np.asarray, lambda t: t.numpy(), hash)
    return [traced(tf, use, 1.0) for use in uses]
