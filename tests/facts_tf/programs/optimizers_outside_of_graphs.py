"""Optimizers of TensorFlow 1 in programs of TensorFlow 2: eagerly and in functions."""

from __future__ import annotations

from tests.facts_tf.registry import program, raised


def steps(tf, make, kind):
    rows = [[2, 1, 2], [0], [0, 1]]

    def clipped(x):
        return tf.clip_by_value(x, 0.0, 1.5)

    limit = clipped if kind == "constraint" else None
    v = tf.Variable([[1.0], [2.0], [4.0]], constraint=limit, name="a")
    w = tf.Variable([1.0, -2.0], constraint=limit, name="b")
    optimizer, count = make(tf.compat.v1.train), tf.Variable(0, trainable=False)

    def loss(chosen):
        if kind == "rows":
            return tf.reduce_sum(tf.square(tf.gather(v, chosen))) + tf.reduce_sum(w * w)
        return tf.reduce_sum(tf.square(v) * [[1.0], [2.0], [3.0]]) + tf.reduce_sum(w)

    def step(chosen):
        optimizer.minimize(lambda: loss(chosen), var_list=[v, w], global_step=count)

    run = tf.function(step) if kind == "function" else step
    for chosen in rows:
        run(tf.constant(chosen))
    slots = [optimizer.get_slot(v, name).numpy() for name in optimizer.get_slot_names()]
    return [v.numpy(), w.numpy(), count.numpy(), slots, len(optimizer.variables())]


@program
def updates(tf):
    makers = [
        lambda t: t.MomentumOptimizer(0.1, 0.9, use_nesterov=True), lambda t: t.AdamOptimizer(0.1),
        lambda t: t.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
        lambda t: t.FtrlOptimizer(3.0, l1_regularization_strength=0.1),
    ]  # fmt: skip
    kinds = ("all", "rows", "constraint", "function")
    return [[steps(tf, make, kind) for kind in kinds] for make in makers]


@program
def constraints_of_rows(tf):
    v = tf.Variable([[1.0], [2.0]], constraint=tf.abs)
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    return raised(optimizer.minimize, lambda: tf.reduce_sum(tf.gather(v, [0])), var_list=[v])
