"""Freezes graphs of real TensorFlow, with arguments and results, for test_graph_defs.py:
``TF_CPP_MIN_LOG_LEVEL=3 python tests/compat/graph_defs/make.py`` where TensorFlow is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

HERE = Path(__file__).parent
RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def keep(name: str, graph_def: Any, given: dict[str, Any], found: dict[str, Any]) -> None:
    """Write a graph, and arrays by the names of its tensors: what it is given and what it gives."""
    (HERE / f"{name}.pb").write_bytes(graph_def.SerializeToString())
    arrays = {f"in {k}": v for k, v in given.items()} | {f"out {k}": v for k, v in found.items()}
    np.savez_compressed(HERE / f"{name}.npz", **arrays)


def frozen(name: str, function: Any, *arrays: Any, open_batch: bool = True) -> None:
    """Freeze a function of TensorFlow 2, with functional control flow."""
    specs = [
        tf.TensorSpec([None, *a.shape[1:]] if open_batch and a.ndim else a.shape, a.dtype)
        for a in arrays
    ]
    concrete = tf.function(function).get_concrete_function(*specs)
    made = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    results = made(*map(tf.constant, arrays))
    given = {t.name: a for t, a in zip(made.inputs, arrays, strict=True)}
    found = {t.name: r.numpy() for t, r in zip(made.outputs, results, strict=True)}
    keep(name, made.graph.as_graph_def(), given, found)


def mlp() -> None:
    """A session's graph, frozen as in TensorFlow 1."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 8], name="x")
        v1.set_random_seed(1)
        with v1.variable_scope("hidden"):
            w = v1.get_variable("w", [8, 16])
            hidden = tf.nn.relu(tf.matmul(x, w) + v1.get_variable("b", [16]))
        w = v1.get_variable("w", [16, 3], use_resource=False)
        b = v1.get_variable("b", [3], use_resource=False)
        logits = tf.nn.bias_add(tf.matmul(hidden, w), b)
        tf.nn.softmax(logits, name="shares")
        tf.argmax(logits, 1, name="classes")
        session.run(v1.global_variables_initializer())
        names = ["shares", "classes"]
        made = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), names)
        given = numbers(5, 8)
        found = session.run({n: f"{n}:0" for n in names}, {x: given})
    keep("mlp", made, {"x:0": given}, {f"{k}:0": v for k, v in found.items()})


def cnn() -> None:
    w1, w2 = tf.Variable(numbers(3, 3, 2, 4)), tf.Variable(numbers(3, 3, 4, 2))
    scale, offset = tf.Variable(numbers(4)), tf.Variable(numbers(4))
    mean, variance = tf.Variable(numbers(4)), tf.Variable(np.abs(numbers(4)) + 0.5)

    def net(image: Any) -> Any:
        y = tf.nn.conv2d(image, w1, 1, "SAME")
        y, _, _ = tf.compat.v1.nn.fused_batch_norm(
            y, scale, offset, mean, variance, is_training=False
        )
        y = tf.nn.max_pool2d(tf.nn.leaky_relu(y), 2, 2, "VALID")
        y = tf.nn.depthwise_conv2d(y, w2, [1, 2, 2, 1], "SAME")
        y = tf.nn.avg_pool2d(tf.pad(y, [[0, 0], [1, 1], [0, 1], [0, 0]]), 2, 1, "SAME")
        flat = tf.reshape(y, [tf.shape(y)[0], -1])
        return flat[:, ::2], tf.reduce_mean(y, [1, 2])

    frozen("cnn", net, numbers(3, 9, 8, 2))


def control() -> None:
    w = tf.Variable(numbers(4, 4) / 4)

    def f(x: Any, limit: Any) -> Any:
        def grown(i: Any, y: Any) -> Any:
            return i + 1, tf.tanh(y @ w) * 2.0 + x

        steps, y = tf.while_loop(lambda i, y: i < limit, grown, (0, x))
        y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: y * y, lambda: tf.cond(
            steps > 2, lambda: -y, lambda: tf.exp(y)))
        return y, steps

    for case, start in (("up", 1.0), ("down", -1.0)):
        x = np.abs(numbers(3, 4)) * np.float32(start)
        frozen(f"control_{case}", f, x, np.array(3, np.int32))


def recurrent() -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((6, 3)), layers.LSTM(4, return_sequences=True), layers.GRU(3), layers.Dense(2),
    ])  # fmt: skip
    frozen("recurrent", lambda x: model(x, training=False), numbers(2, 6, 3))


def many() -> None:
    """Operations of many types."""

    def f(x: Any, k: Any) -> Any:
        a, b = tf.split(x, 2, 1)
        parts = tf.unstack(tf.stack([a, b], 1), axis=1)
        top, places = tf.math.top_k(x, 2)
        rows = tf.gather(x, k)
        return (
            tf.concat([parts[1], parts[0]], 1), top, places, rows, tf.one_hot(k, 3),
            tf.einsum("ij,kj->ik", x, x), tf.transpose(tf.tile(x, [1, 2])), tf.cast(x, tf.int32),
            tf.where(x > 0.0, x, tf.zeros_like(x)), tf.cumsum(x, 1, reverse=True),
            tf.clip_by_value(x, -1.0, 1.0), tf.reverse(x, [1]), tf.range(tf.shape(x)[0]),
            tf.squeeze(tf.expand_dims(x, 0), [0]) // 2.0, tf.math.floormod(k, 3),
            tf.reduce_logsumexp(x, 1), tf.math.rsqrt(tf.abs(x) + 1.0), tf.fill([2, 2], 3.0),
            tf.linalg.matmul(x[None], x[None], transpose_b=True), tf.reduce_any(x > 1.0),
            tf.nn.log_softmax(x), tf.gather_nd(x, [[0, 1], [1, 0]]), tf.strided_slice(
                x, [0, 1], [2, 4], [1, 2]), tf.slice(x, [0, 1], [-1, 2]), tf.pow(tf.abs(x), 2.0),
            tf.nn.gelu(x), tf.add_n([x, x, x]), tf.math.erf(x),
            tf.nn.sparse_softmax_cross_entropy_with_logits(k, tf.gather(x, [0, 1, 0])),
        )  # fmt: skip

    frozen("many", f, numbers(2, 4), np.array([1, 0, 1], np.int32), open_batch=False)


# -- branches and loops of Switch, Merge, Enter, Exit and NextIteration ---------------------------


def old(name: str, function: Any, *cases: tuple[Any, ...]) -> None:
    """Freeze a function as TensorFlow 1 did, and record what it gives in some cases."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        given = [v1.placeholder(a.dtype, [None, *a.shape[1:]] if a.ndim else []) for a in cases[0]]
        names = [
            tf.identity(y, name=f"y{i}").op.name for i, y in enumerate(function(*given))
        ]
        session.run(v1.global_variables_initializer())
        made = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), names)
        for number, case in enumerate(cases):
            found = session.run({f"{n}:0": f"{n}:0" for n in names},
                                dict(zip(given, case, strict=True)))  # fmt: skip
            arrays = {x.name: a for x, a in zip(given, case, strict=True)}
            keep(name if len(cases) == 1 else f"{name}_{number}", made, arrays, found)


def old_control() -> None:
    v1 = tf.compat.v1

    def f(x: Any, limit: Any) -> Any:
        w = v1.get_variable("w", [4, 4], initializer=v1.constant_initializer(numbers(4, 4) / 4))

        def grown(i: Any, y: Any) -> Any:
            even = lambda: tf.tanh(y @ w) * 2.0 + x
            return i + 1, v1.cond(tf.equal(i % 2, 0), even, lambda: y - 0.5)

        steps, y = v1.while_loop(lambda i, y: i < limit, grown, (0, x))
        a, b = v1.cond(tf.reduce_sum(y) > 0.0, lambda: (y * y, y + 1.0), lambda: v1.cond(
            steps > 2, lambda: (-y, y @ w), lambda: (tf.exp(y), y)))  # fmt: skip
        return a, b, steps

    x = np.abs(numbers(3, 4))
    old("old_control", f, *((s * x, np.array(n, np.int32)) for s, n in ((1, 3), (-1, 4), (-1, 1))))


def old_arrays() -> None:
    """Arrays of tensors, and a loop in a loop."""
    v1 = tf.compat.v1

    def f(x: Any) -> Any:
        def outer(i: Any, total: Any) -> Any:
            _, inner = v1.while_loop(
                lambda j, s: j < i, lambda j, s: (j + 1, s + tf.cast(j, tf.float32) * x[0, 0]),
                (0, 0.0),
            )  # fmt: skip
            return i + 1, total + inner

        _, total = v1.while_loop(lambda i, t: i < 4, outer, (0, 0.0))
        return (
            tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), tf.scan(
                lambda a, row: a * 0.5 + row, x), tf.foldl(lambda a, row: a + row, x), total,
        )  # fmt: skip

    old("old_arrays", f, (numbers(3, 2),))


class Cell:
    """Long short-term memory."""

    state_size, output_size, trainable, dtype = (4, 4), 4, True, tf.float32

    def zero_state(self, count: Any, dtype: Any) -> Any:
        return tf.zeros([count, 4], dtype), tf.zeros([count, 4], dtype)

    def __call__(self, x: Any, state: Any, scope: Any = None) -> Any:
        v1, (c, h) = tf.compat.v1, state
        w = v1.get_variable("w", [7, 16], initializer=v1.constant_initializer(numbers(7, 16) / 3))
        i, j, f, o = tf.split(tf.concat([x, h], 1) @ w, 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, (c, h)


def old_rnn() -> None:
    def f(x: Any, lengths: Any) -> Any:
        outputs, (c, h) = tf.compat.v1.nn.dynamic_rnn(
            Cell(), x, sequence_length=lengths, dtype=tf.float32
        )
        return outputs, c, h

    old("old_rnn", f, (numbers(2, 5, 3), np.array([5, 2], np.int32)))


def old_training() -> None:
    """Layers that do other things while a model is trained."""
    v1 = tf.compat.v1

    def f(x: Any) -> Any:
        training = v1.placeholder_with_default(False, [], name="training")
        y = v1.cond(training, lambda: v1.nn.dropout(x, rate=0.5), lambda: x)
        y = v1.cond(training, lambda: y * 0.0, lambda: tf.nn.relu(y))
        return (v1.cond(tf.reduce_any(y > 1.0), lambda: y * 2.0, lambda: y),)

    old("old_training", f, (numbers(3, 4),))


def old_functions() -> None:
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.disable_control_flow_v2()
    tf.compat.v1.disable_resource_variables()
    for make in (old_control, old_arrays, old_rnn, old_training):
        make()


if __name__ == "__main__":
    tf.keras.utils.set_random_seed(0)
    for make in (mlp, cnn, control, recurrent, many, old_functions):
        make()
