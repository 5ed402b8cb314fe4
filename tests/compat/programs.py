"""Programs of TensorFlow 1 whose numbers are compared with TensorFlow's.

``TF_CPP_MIN_LOG_LEVEL=3 PYTHONPATH=. /path/with/tensorflow/python tests/compat/programs.py`` writes
what TensorFlow gives into ``results.json``. A program takes the module and gives numbers in lists.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("results.json")
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def trained(tf: Any, optimizer: Any, sparse: bool) -> Any:
    """The variable and what the optimizer keeps, after some steps."""
    v = tf.Variable(np.linspace(-1, 1, 10).reshape(5, 2).astype("float32"), name="v")
    if sparse:
        loss = tf.reduce_sum(tf.square(tf.gather(v, [1, 3, 1]) - 3.0))
    else:
        loss = tf.reduce_sum(tf.square(tf.matmul(v, [[1.0], [2.0]]) - 3.0))
    step = optimizer.minimize(loss)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        losses = [float(s.run([loss, step])[0]) for _ in range(4)]
        slots = [s.run(optimizer.get_slot(v, n)).tolist() for n in optimizer.get_slot_names()]
        return [losses, s.run(v).tolist(), slots, optimizer.get_slot_names(),
                [x.name for x in tf.global_variables()]]  # fmt: skip


_OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda t: t.GradientDescentOptimizer(0.01),
    "momentum": lambda t: t.MomentumOptimizer(0.01, 0.9),
    "nesterov": lambda t: t.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
    "adam": lambda t: t.AdamOptimizer(0.1),
    "adagrad": lambda t: t.AdagradOptimizer(0.1),
    "adadelta": lambda t: t.AdadeltaOptimizer(0.5),
    "rmsprop": lambda t: t.RMSPropOptimizer(0.01, momentum=0.5),
    "centered": lambda t: t.RMSPropOptimizer(0.01, centered=True),
    "ftrl": lambda t: t.FtrlOptimizer(0.1, l1_regularization_strength=0.01,
                                      l2_regularization_strength=0.02),
    "proximal": lambda t: t.ProximalGradientDescentOptimizer(0.01, 0.1, 0.2),
}  # fmt: skip
for _name, _make in _OPTIMIZERS.items():
    for _sparse in (False, True):
        PROGRAMS[f"{_name}_{'rows' if _sparse else 'dense'}"] = (
            lambda tf, make=_make, sparse=_sparse: trained(tf, make(tf.train), sparse)
        )


@program
def changing_rows_and_constraints(tf: Any) -> Any:
    found = []
    for make in _OPTIMIZERS.values():
        with tf.Graph().as_default(), tf.Session() as s:
            optimizer, rows = make(tf.train), tf.placeholder(tf.int32, [None])
            v = tf.Variable([[1.0], [2.0], [4.0]])
            w = tf.Variable([1.0, -2.0], constraint=lambda x: tf.clip_by_value(x, 0.0, 0.995))
            loss = tf.reduce_sum(tf.square(tf.gather(v, rows))) + tf.reduce_sum(w)
            step = optimizer.minimize(loss)
            s.run(tf.global_variables_initializer())
            for chosen in ([0, 2, 0], [1], [0, 1]):
                s.run(step, {rows: chosen})
            names = [x.name for x in optimizer.variables()]
            found.append([s.run(v).tolist(), s.run(w).tolist(), names])
    return found


@program
def variables_that_are_trained(tf: Any) -> Any:
    read = tf.VariableSynchronization.ON_READ
    with tf.variable_scope("s") as scope:
        tf.get_variable("b", [])
        tf.get_variable("c", [], trainable=False)
        tf.get_variable("d", [], synchronization=read)
        tf.get_variable("e", [], synchronization=read, trainable=True)
        tf.Variable(1.0, name="f", synchronization=read)
        found = [[v.name for v in scope.trainable_variables()]]
    given = [(5, tf.float32), (5.0, tf.float64), (np.ones(2), tf.float32), ([1.5], tf.int32),
             (tf.constant(3), tf.float32), (5, None), (5.0, tf.float32),
             (np.ones(2), None)]  # fmt: skip
    for number, (value, dtype) in enumerate(given):
        try:
            made = tf.get_variable(f"v{number}", initializer=value, dtype=dtype)
            found.append(made.dtype.base_dtype.name)
        except ValueError:
            found.append("ValueError")
    try:
        tf.Variable(1.0, constraint=5)
    except ValueError:
        found.append("ValueError")
    return [*found, [v.name for v in tf.trainable_variables()]]


@program
def operations_by_their_types(tf: Any) -> Any:
    i, ops = tf.placeholder(tf.int32, []), tf.raw_ops
    loop = tf.while_loop(lambda i: ops.Less(x=i, y=10), lambda i: ops.AddV2(x=i, y=1), [i])
    either = tf.cond(i > 0, lambda: ops.Mul(x=i, y=10), lambda: ops.Sub(x=2, y=i))
    with tf.Session() as s:
        return [[int(x) for x in s.run([loop, either], {i: n})] for n in (3, -3)]


@program
def fed_tensors_as_control_inputs(tf: Any) -> Any:
    x, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.bool)
    v = tf.Variable(0.0, use_resource=True)
    count = tf.identity(v.assign_add(1.0))
    with tf.control_dependencies([b, count]):
        y, z = x + 1.0, tf.scan(lambda a, e: a * e, x)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        found = [s.run([y, z], {x: [1.0, 3.0], b: True})[0].tolist(), float(s.run(v))]
        return [*found, s.run(z, {x: [2.0, 3.0], b: [1], count: 5.0}).tolist(), float(s.run(v))]


@program
def decays(tf: Any) -> Any:
    step = tf.placeholder(tf.int64, [])
    t = tf.train
    rates = [
        t.exponential_decay(0.1, step, 10, 0.5), t.exponential_decay(0.1, step, 10, 0.5, True),
        t.natural_exp_decay(0.1, step, 10, 0.5), t.inverse_time_decay(0.1, step, 10, 0.5),
        t.polynomial_decay(0.1, step, 10), t.polynomial_decay(0.1, step, 10, 0.01, 2.0, True),
        t.piecewise_constant(step, [5, 15], [1.0, 0.5, 0.1]), t.cosine_decay(0.1, step, 20),
    ]  # fmt: skip
    with tf.Session() as s:
        return [[float(x) for x in s.run(rates, {step: n})] for n in (0, 3, 5, 10, 17, 30)]


@program
def averages(tf: Any) -> Any:
    v = tf.Variable([1.0, 2.0], name="v")
    average = tf.train.ExponentialMovingAverage(0.9)
    keep = average.apply([v])
    change = v.assign_add([1.0, 1.0])
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        found = []
        for _ in range(3):
            s.run(change)
            s.run(keep)
            found.append(s.run(average.average(v)).tolist())
        return [found, average.average(v).name, average.average_name(v)]


@program
def averages_of_tensors(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [2])
    found = []
    for corrects in (False, True):
        average = tf.train.ExponentialMovingAverage(0.9, zero_debias=corrects)
        keep = average.apply([tf.multiply(x, 2.0, name="y" if corrects else "z")])
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            for n in range(3):
                s.run(keep, {x: [1.0, n]})
                found.append([s.run(v).tolist() for v in tf.global_variables()])
    return [found, [v.name for v in tf.global_variables()]]


@program
def clipping(tf: Any) -> Any:
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.Variable([3.0], name="w")
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(tf.reduce_sum(v * v) + tf.reduce_sum(w * 5.0), [v, w])
    clipped = [(tf.clip_by_norm(g, 1.0), x) for g, x in pairs]
    grads, norm = tf.clip_by_global_norm([g for g, _ in pairs], 2.0)
    step = tf.train.get_or_create_global_step()
    train = optimizer.apply_gradients(clipped, global_step=step)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        found = [float(s.run(norm)), [g.tolist() for g in s.run(grads)]]
        s.run(train)
        return [found, s.run(v).tolist(), s.run(w).tolist(), int(s.run(step)), step.name]


@program
def losses(tf: Any) -> Any:
    y = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    p = tf.constant([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    w = tf.constant([1.0, 3.0])
    found = [
        tf.losses.mean_squared_error(y, p), tf.losses.absolute_difference(y, p),
        tf.losses.softmax_cross_entropy(y, p), tf.losses.softmax_cross_entropy(y, p, w),
        tf.losses.sparse_softmax_cross_entropy([1, 0], p), tf.losses.sigmoid_cross_entropy(y, p),
        tf.losses.log_loss(y, p), tf.losses.hinge_loss(y, p), tf.losses.huber_loss(y, p, delta=0.3),
        tf.losses.cosine_distance(y, p, axis=1), tf.losses.mean_pairwise_squared_error(y, p),
        tf.losses.mean_squared_error(y, p, [[1.0], [0.0]], reduction=tf.losses.Reduction.MEAN),
        tf.losses.softmax_cross_entropy(y, p, label_smoothing=0.1), tf.losses.get_total_loss(),
    ]  # fmt: skip
    with tf.Session() as s:
        return [[float(x) for x in s.run(found)], len(tf.losses.get_losses())]


@program
def metrics(tf: Any) -> Any:
    labels = tf.placeholder(tf.int64, [None])
    found = tf.placeholder(tf.int64, [None])
    scores = tf.placeholder(tf.float32, [None])
    pairs = {
        "accuracy": tf.metrics.accuracy(labels, found), "mean": tf.metrics.mean(scores),
        "precision": tf.metrics.precision(labels, found),
        "recall": tf.metrics.recall(labels, found),
        "auc": tf.metrics.auc(labels, scores), "error": tf.metrics.mean_squared_error(
            tf.cast(labels, tf.float32), scores),
        "root": tf.metrics.root_mean_squared_error(tf.cast(labels, tf.float32), scores),
        "absolute": tf.metrics.mean_absolute_error(tf.cast(labels, tf.float32), scores),
        "fn": tf.metrics.false_negatives(labels, found),
        "tp": tf.metrics.true_positives(labels, found),
        "iou": tf.metrics.mean_iou(labels, found, 2),
        "class": tf.metrics.mean_per_class_accuracy(labels, found, 2),
    }  # fmt: skip
    values = [v for v, _ in pairs.values()]
    updates = [u for _, u in pairs.values()]
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        s.run(updates, {labels: [1, 0, 1, 1], found: [1, 1, 0, 1], scores: [0.9, 0.6, 0.2, 0.8]})
        s.run(updates, {labels: [0, 0, 1], found: [0, 1, 1], scores: [0.1, 0.7, 0.65]})
        return [float(x) for x in s.run(values)]


@program
def forms_of_nn(tf: Any) -> Any:
    x = tf.constant(np.linspace(-2, 2, 24).reshape(2, 3, 4).astype("float32"))
    image = tf.constant(np.linspace(-1, 1, 2 * 6 * 6 * 3).reshape(2, 6, 6, 3).astype("float32"))
    kernel = tf.constant(np.linspace(-1, 1, 3 * 3 * 3 * 4).reshape(3, 3, 3, 4).astype("float32"))
    found = [
        tf.nn.softmax(x, dim=1), tf.nn.log_softmax(x, axis=0), tf.nn.l2_normalize(x, dim=2),
        tf.nn.conv2d(image, kernel, strides=[1, 2, 2, 1], padding="SAME"),
        tf.nn.max_pool(image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        tf.nn.avg_pool(image, [1, 3, 3, 1], [1, 1, 1, 1], "SAME"),
        *tf.nn.moments(x, [0, 1], keep_dims=True),
        tf.nn.xw_plus_b(x[0], tf.ones([4, 2]), [1.0, 2.0]),
        tf.nn.dropout(x, keep_prob=1.0), tf.nn.relu_layer(x[0], tf.ones([4, 2]), [1.0, 2.0]),
        tf.nn.weighted_cross_entropy_with_logits(targets=tf.sigmoid(x), logits=x, pos_weight=2.0),
        tf.nn.batch_normalization(x, 1.0, 2.0, 0.5, 3.0, 0.1),
        tf.nn.local_response_normalization(image),
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(x), logits=x * 2.0),
        tf.nn.separable_conv2d(
            image, tf.ones([2, 2, 3, 1]), tf.ones([1, 1, 3, 2]), [1, 1, 1, 1], "SAME"
        ),
        tf.nn.conv2d_transpose(image, tf.ones([2, 2, 5, 3]), [2, 12, 12, 5], [1, 2, 2, 1]),
        tf.nn.embedding_lookup(tf.reshape(tf.range(10.0), [5, 2]), [1, 4]),
        tf.cast(tf.nn.in_top_k(x[0], [0, 3, 1], 2), tf.float32),
    ]  # fmt: skip
    with tf.Session() as s:
        return [[list(a.shape), [float(v) for v in a.ravel()[:40]]] for a in s.run(found)]


@program
def old_names(tf: Any) -> Any:
    x = tf.constant([[1.0, -2.0], [3.0, 4.0]])
    found = [
        tf.reduce_sum(x, reduction_indices=[1], keep_dims=True), tf.div(7, 2), tf.mod(-7, 3),
        tf.argmax(x, dimension=1), tf.expand_dims(x, dim=0), tf.squeeze(x[:1], squeeze_dims=[0]),
        tf.where([True, False], x, -x), tf.to_int32(x), tf.count_nonzero(x - 1.0, keep_dims=True),
        tf.norm(x, axis=1, keep_dims=True), tf.reduce_logsumexp(x, 1, keep_dims=True),
        tf.batch_to_space(tf.ones([4, 1, 1, 1]), [[0, 0], [0, 0]], 2), tf.diag([1.0, 2.0]),
        tf.matrix_inverse(x), tf.trace(x), tf.log(x + 3.0), tf.ceil(x / 2), tf.floor_div(7, 2),
        tf.segment_sum(x, [0, 0]), tf.unsorted_segment_sum(x, [1, 0], 2),
        tf.invert_permutation([1, 0]),
        tf.is_nan(x), tf.lgamma(x + 3.0), tf.rsqrt(x + 3.0), tf.truncatediv(-7, 2), tf.erf(x),
        tf.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), tf.matrix_diag([1.0, 2.0]),
        tf.cholesky(tf.eye(2)),
        tf.reverse_v2(x, [0]), tf.accumulate_n([x, x]), tf.string_join(["a", "b"]),
        tf.string_to_number(["1.5"]), tf.as_string([1]),
        tf.sparse_to_dense([[0], [2]], [4], [5, 6]),
        tf.betainc(1.0, 2.0, 0.5), tf.confusion_matrix([0, 1], [1, 1]), tf.bincount([1, 1, 2]),
        tf.verify_tensor_all_finite(x, "bad"), tf.extract_image_patches(
            tf.reshape(tf.range(16.0), [1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1],
            "VALID"),
    ]  # fmt: skip
    with tf.Session() as s:
        arrays = [np.asarray(a) for a in s.run(found)]
        return [
            [str(v) for v in a.ravel()] if a.dtype.kind in "OS" else [float(v) for v in a.ravel()]
            for a in arrays
        ]


@program
def in_python(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0])
    one, two = tf.py_func(lambda a: (a * 2, np.int64(len(a))), [x], [tf.float32, tf.int64])
    square = tf.py_func(lambda: np.ones([2, 3], np.float32), [], tf.float32)
    with tf.Session() as s:
        found = s.run([one + 1.0, two, tf.reduce_sum(square), tf.matmul(square, tf.ones([3, 1]))])
        return [np.asarray(a).tolist() for a in found]


@program
def values_of_control_flow(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [])
    chosen = tf.cond(x > 0.0, lambda: x * 2.0, lambda: -x)
    cases = tf.case([(x > 1.0, lambda: tf.constant(1.0))], default=lambda: tf.constant(0.0))
    _, total = tf.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t * x), (0, x))
    (slope,) = tf.gradients(total + chosen, [x])
    with tf.Session() as s:
        return [[float(v) for v in s.run([chosen, cases, total, slope], {x: n})]
                for n in (-1.0, 0.5, 2.0)]  # fmt: skip


@program
def templates_and_regularizers(tf: Any) -> Any:
    def layer(x: Any, scale: float) -> Any:
        w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer(),
                            regularizer=lambda v: scale * tf.reduce_sum(v))  # fmt: skip
        return tf.matmul(x, w)

    shared = tf.make_template("shared", layer, scale=0.5)
    x = tf.ones([1, 2])
    y = shared(shared(x))
    other = tf.make_template("shared", layer, scale=0.5)(x)
    with tf.variable_scope("a", initializer=tf.constant_initializer(3.0)):
        c = tf.get_variable("c", [2])
        with tf.variable_scope("b", reuse=tf.AUTO_REUSE):
            d = tf.get_variable("c", [2])
            e = tf.get_variable("c", [2])
    with tf.variable_scope("", reuse=True):
        f = tf.get_variable("a/c", [2])
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return [s.run(y).tolist(), s.run(other).tolist(), s.run(d).tolist(), d is e, f is c,
                [v.name for v in tf.global_variables()], shared.variable_scope_name,
                [float(v) for v in s.run(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))],
                [v.name for v in shared.trainable_variables]]  # fmt: skip


def results(tf: Any, function: Callable[[Any], Any]) -> Any:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        return function(tf)


def record(tf: Any, programs: dict[str, Callable[[Any], Any]], file: Path) -> None:
    """Write what TensorFlow gives for programs."""
    found = {name: results(tf, function) for name, function in programs.items()}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    file.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    record(tf, PROGRAMS, FILE)
