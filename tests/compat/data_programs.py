"""Programs of TensorFlow 1 with metrics, sparse tensors and feature columns, as `programs.py` has
them: running this file with TensorFlow writes ``data_results.json``."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("data_results.json")
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def plain(value: Any) -> Any:
    """What a run gives in lists."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    array = np.asarray(value)
    return [x.decode() for x in array.ravel()] if array.dtype == object else array.tolist()


def streamed(tf: Any, pairs: dict[str, Any], feeds: list[dict[Any, Any]]) -> Any:
    """The values of metrics after batches, and what the operations give for the last one."""
    last: Any = None
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        before = s.run([v for v, _ in pairs.values()])
        for feed in feeds:
            last = s.run([u for _, u in pairs.values()], feed)
        names = sorted(v.name for v in tf.local_variables())
        return [plain(before), plain(last), plain(s.run([v for v, _ in pairs.values()])), names]


@program
def metrics_at_thresholds(tf: Any) -> Any:
    m, at = tf.metrics, [0.15, 0.5, 0.75]
    labels, weights = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
    scores = tf.placeholder(tf.float32, [None])
    pairs = {
        "precision": m.precision_at_thresholds(labels, scores, at),
        "recall": m.recall_at_thresholds(labels, scores, at, weights),
        "tp": m.true_positives_at_thresholds(labels, scores, at),
        "fp": m.false_positives_at_thresholds(labels, scores, at, weights),
        "tn": m.true_negatives_at_thresholds(labels, scores, at),
        "fn": m.false_negatives_at_thresholds(labels, scores, at),
        "sensitivity": m.sensitivity_at_specificity(labels, scores, 0.6),
        "specificity": m.specificity_at_sensitivity(labels, scores, 0.7, num_thresholds=21),
        "roc": m.auc(labels, scores, weights, num_thresholds=11, summation_method="minoring"),
        "pr": m.auc(labels, scores, curve="PR", summation_method="careful_interpolation"),
        "upper": m.auc(labels, scores, curve="PR", summation_method="majoring",
                       thresholds=[0.7, 0.3]),
    }  # fmt: skip
    feeds = [
        {labels: [1, 0, 1, 1], scores: [0.9, 0.6, 0.2, 0.8], weights: [1.0, 2.0, 0.5, 1.0]},
        {labels: [0, 0, 1], scores: [0.1, 0.7, 0.65], weights: [1.0, 0.0, 3.0]},
    ]
    return streamed(tf, pairs, feeds)[:3]


@program
def metrics_of_the_best(tf: Any) -> Any:
    m = tf.metrics
    labels, scores = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.float32, [None, 5])
    one, weights = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
    some = tf.sparse_placeholder(tf.int64, [None, None])
    best = tf.nn.top_k(scores, 3)[1]
    pairs = {
        "recall": m.recall_at_k(labels, scores, 3), "one": m.recall_at_k(one, scores, 2),
        "class": m.recall_at_k(labels, scores, 3, class_id=2),
        "weighted": m.recall_at_k(labels, scores, 2, weights=weights),
        "sparse": m.recall_at_k(some, scores, 3),
        "precision": m.precision_at_k(labels, scores, 3),
        "of_class": m.precision_at_k(labels, scores, 3, class_id=1),
        "of_sparse": m.precision_at_k(some, scores, 3, weights=weights),
        "top": m.precision_at_top_k(labels, best), "top_recall": m.recall_at_top_k(labels, best),
        "average": m.average_precision_at_k(labels, scores, 3),
        "average_of_sparse": m.average_precision_at_k(some, scores, 2, weights=weights),
    }  # fmt: skip
    rows = np.linspace(0, 7, 20).reshape(4, 5) % 1.7
    sparse = ([[0, 0], [0, 1], [1, 0], [2, 0], [3, 1]], [1, 4, 2, 0, 9], [4, 2])
    feeds = [
        {labels: [[1, 4], [2, 2], [-1, 0], [9, 3]], scores: rows, one: [0, 1, 2, 3],
         weights: [1.0, 0.5, 2.0, 1.0], some: sparse},
        {labels: [[0, 4]], scores: rows[:1] + [[0.0, 3.0, 0.0, 0.0, 1.0]], one: [1],
         weights: [2.0], some: ([[0, 0]], [1], [1, 1])},
    ]  # fmt: skip
    return streamed(tf, pairs, feeds)[:3]


@program
def other_metrics(tf: Any) -> Any:
    m = tf.metrics
    a, b = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
    weights = tf.placeholder(tf.float32, [None])
    pairs = {
        "cosine": m.mean_cosine_distance(a, b, 1),
        "tensor": m.mean_tensor(tf.reduce_mean(a, 0)),
        "weighted": m.mean_tensor(tf.reduce_mean(a, 0), weights=[0.5, 2.0]),
        "class": m.mean_per_class_accuracy(
            tf.to_int64(weights > 0.5), tf.to_int64(a[:, 0] > 0), 2
        ),
    }
    feeds = [
        {a: [[1.0, 0.0], [0.6, 0.8]], b: [[0.0, 1.0], [0.6, 0.8]], weights: [1.0, 0.0]},
        {a: [[0.0, 1.0]], b: [[0.0, -1.0]], weights: [1.0]},
    ]
    return streamed(tf, pairs, feeds)


@program
def sparse_tensors(tf: Any) -> Any:
    fed = tf.sparse_placeholder(tf.float32)
    of_shape = tf.sparse_placeholder(tf.float32, [3, None], name="given")
    s = tf.SparseTensor(indices=[[0, 1], [2, 0]], values=[1.0, 2.0], dense_shape=[3, 2])
    w = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    found = {
        "product": tf.sparse_tensor_dense_matmul(s, w), "fed": tf.sparse.matmul(fed, w),
        "turned": tf.sparse_tensor_dense_matmul(s, tf.ones([3, 1]), adjoint_a=True),
        "dense": tf.sparse_tensor_to_dense(s, -1.0), "sum": tf.sparse_reduce_sum(fed, 1),
        "kept": tf.sparse_reduce_sum(s, reduction_axes=[0], keep_dims=True),
        "most": tf.sparse_reduce_max(s, 1), "scaled": s * 3.0, "halves": s / [[2.0], [1.0], [4.0]],
        "added": tf.sparse_add(s, tf.ones([3, 2])), "twice": tf.sparse_add(s, s),
        "joined": tf.sparse_concat(0, [s, s]), "retained": tf.sparse_retain(s, [True, False]),
        "reshaped": tf.sparse_reshape(s, [2, 3]), "turned_around": tf.sparse_transpose(s),
        "slice": tf.sparse_slice(s, [0, 0], [2, 2]), "parts": tf.sparse_split(
            sp_input=s, num_split=3, axis=0),
        "filled": tf.sparse_fill_empty_rows(s, 9.0), "soft": tf.sparse_softmax(s),
        "indicator": tf.sparse_to_indicator(
            tf.SparseTensor([[0, 0], [1, 0]], tf.constant([2, 0], tf.int64), [2, 1]), 3),
        "merged": tf.sparse_merge(
            tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([3, 0, 1], tf.int64), [2, 2]),
            tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0], [2, 2]), 4),
        "words": tf.string_split(["a b  c", "d"]),
        "marks": tf.string_split(["a,b-c", "d,"], ",-", skip_empty=False),
        "given": of_shape, "both": tf.sets.size(
            tf.sets.intersection([[1, 2, 3]], [[3, 1, 1]])),
        "looked_up": tf.nn.embedding_lookup_sparse(
            w, tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 0, 1], tf.int64), [2, 2]),
            None, combiner="mean"),
    }  # fmt: skip
    (slope,) = tf.gradients(tf.reduce_sum(tf.square(tf.sparse.matmul(fed, w))), [fed.values])
    shapes = [str(s.get_shape().as_list()), str(of_shape.shape.as_list()), s.dtype.name,
              str(fed.get_shape().rank)]  # fmt: skip
    names = [x.name for x in (fed.indices, fed.values, fed.dense_shape, of_shape.indices,
                              of_shape.values, of_shape.dense_shape, s.indices)]  # fmt: skip
    value = tf.SparseTensorValue([[0, 0], [1, 1]], [2.0, 3.0], [2, 2])
    with tf.Session() as session:
        feed = {fed: value, of_shape: ([[1, 0]], [5.0], [3, 1])}
        got = session.run({**found, "slope": slope, "itself": fed}, feed)
        return [plain(got), shapes, names, plain(s.eval())]


@program
def sparse_features(tf: Any) -> Any:
    def example(values: list[int]) -> Any:
        numbers = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        return tf.train.Example(
            features=tf.train.Features(feature={"n": numbers})
        ).SerializeToString()

    spec = {"n": tf.VarLenFeature(tf.int64)}
    parsed = tf.parse_example([example([1, 2]), example([3])], spec)
    data = tf.data.Dataset.from_tensor_slices(tf.constant([example([4]), example([5, 6, 7])]))
    data = data.batch(2).map(lambda x: tf.parse_example(x, spec))
    got = data.make_one_shot_iterator().get_next()
    rows = tf.data.Dataset.from_tensor_slices(
        tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2])
    ).make_one_shot_iterator().get_next()  # fmt: skip
    with tf.Session() as s:
        return plain([s.run([parsed["n"], tf.sparse_tensor_to_dense(got["n"], -1)]),
                      s.run(rows), s.run(rows)])  # fmt: skip


def columns(tf: Any, folder: str) -> tuple[Any, Any]:
    """Columns of all kinds, and features for them."""
    c = tf.feature_column
    path = os.path.join(folder, "words")
    Path(path).write_text("red\ngreen\nblue\n")
    age = c.numeric_column("age")
    buckets = c.bucketized_column(age, [1.0, 10.0])
    pair = c.bucketized_column(c.numeric_column("pair", shape=2), [0.0])
    color = c.categorical_column_with_vocabulary_file("color", path, num_oov_buckets=2)
    few = c.categorical_column_with_vocabulary_file("few", path, vocabulary_size=2)
    listed = c.categorical_column_with_vocabulary_list("listed", [3, 5, 7], default_value=1)
    number = c.categorical_column_with_identity("number", 4, default_value=0)
    hashed = c.categorical_column_with_hash_bucket("hashed", 6)
    many = c.categorical_column_with_identity("many", 5)
    weighted = c.weighted_categorical_column(many, "weights")
    all_columns = {
        "age": age, "buckets": buckets, "pair": pair, "color": color, "few": few, "listed": listed,
        "number": number, "hashed": hashed, "many": many, "weighted": weighted,
        "cross": c.crossed_column(["color", "hashed"], 50),
        "mixed": c.crossed_column([buckets, "listed", color], 30, hash_key=17),
        "inner": c.crossed_column([c.crossed_column([pair, number], 7), "number"], 40),
        "bags": c.crossed_column([many, "words"], 20),
    }  # fmt: skip
    features = {
        "age": tf.constant([[0.5], [3.0], [20.0]]),
        "pair": tf.constant([[1.0, -1.0], [0.0, 2.0], [-3.0, -4.0]]),
        "color": tf.constant([["red"], ["pink"], [""]]), "few": tf.constant(["blue", "red", ""]),
        "listed": tf.constant([[5], [9], [3]], tf.int64), "number": tf.constant([[2], [-1], [9]]),
        "hashed": tf.constant([["a"], ["b"], [""]]),
        "many": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 4, 1], tf.int64), [3, 2]),
        "weights": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 2.0, -1.0], [3, 2]),
        "words": tf.SparseTensor([[0, 0], [1, 0], [2, 0], [2, 1]], ["x", "y", "x", "z"], [3, 2]),
    }  # fmt: skip
    return all_columns, features


@program
def dense_columns(tf: Any) -> Any:
    c = tf.feature_column
    with tempfile.TemporaryDirectory() as folder:
        known, features = columns(tf, folder)
        numbers = tf.constant_initializer(np.arange(10.0).reshape(5, 2))
        found = {
            name: c.input_layer(features, column if hasattr(column, "normalizer_fn")
                                else c.indicator_column(column))
            for name, column in known.items()
        }  # fmt: skip
        found["pair"] = c.input_layer(features, known["pair"])
        for combiner in ("mean", "sum", "sqrtn"):
            for name in ("many", "weighted", "color"):
                found[f"{combiner}_{name}"] = c.input_layer(features, c.embedding_column(
                    known[name], 2, combiner, initializer=numbers))  # fmt: skip
        found["short"] = c.input_layer(
            features, c.embedding_column(known["many"], 2, initializer=numbers, max_norm=2.0)
        )
        shared = c.shared_embedding_columns(
            [known["many"], c.categorical_column_with_identity("listed", 5, 2)], 2,
            initializer=numbers,
        )
        found["shared"] = c.input_layer(features, shared)
        names = [v.name for v in tf.global_variables()]
        with tf.Session() as s:
            s.run([tf.global_variables_initializer(), tf.tables_initializer()])
            return [plain(s.run(found)), names]


@program
def linear_models(tf: Any) -> Any:
    c = tf.feature_column
    with tempfile.TemporaryDirectory() as folder:
        known, features = columns(tf, folder)
        chosen = [known[n] for n in ("age", "buckets", "color", "many", "weighted", "cross")]
        owners: dict[Any, Any] = {}
        y = c.linear_model(features, chosen, units=2, cols_to_vars=owners)
        names = [v.name for v in tf.global_variables()]
        mean = c.linear_model(features, [known["many"]], sparse_combiner="mean")
        loss = tf.reduce_sum(tf.square(y - 1.0)) + tf.reduce_sum(tf.square(mean - 2.0))
        step = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
        spec = {
            k: [type(v).__name__, v.dtype.name]
            for k, v in c.make_parse_example_spec(list(known.values())[:11]).items()
        }
        with tf.Session() as s:
            s.run([tf.global_variables_initializer(), tf.tables_initializer()])
            losses = [float(s.run([loss, step])[0]) for _ in range(3)]
            owned = sorted(v.name for vs in owners.values() for v in vs)
            return [losses, plain(s.run([y, mean])), names, owned, spec]


@program
def values_of_checkpoints(tf: Any) -> Any:
    def build(scope: str) -> tuple[Any, Any]:
        with tf.variable_scope(scope):
            a = tf.get_variable("a", [2, 2], initializer=tf.ones_initializer())
            with tf.variable_scope("inner"):
                return a, tf.get_variable("b", [3], initializer=tf.zeros_initializer())

    with tempfile.TemporaryDirectory() as folder:
        with tf.Graph().as_default():
            a, b = build("old")
            with tf.Session() as s:
                s.run(tf.global_variables_initializer())
                s.run([a.assign([[1.0, 2.0], [3.0, 4.0]]), b.assign([5.0, 6.0, 7.0])])
                path = tf.train.Saver().save(s, os.path.join(folder, "model"))

        def begun(change: Callable[..., Any]) -> Any:
            with tf.Graph().as_default():
                a, b = build("new")
                c = tf.Variable([0.0, 0.0, 0.0], name="c")
                try:
                    change(a, b, c)
                except ValueError as error:
                    return type(error).__name__
                with tf.Session() as s:
                    s.run(tf.global_variables_initializer())
                    return plain(s.run([a, b, c]))

        mappings: list[Callable[..., Any]] = [
            lambda a, b, c: {"old/": "new/"}, lambda a, b, c: {"old/inner/": "new/inner/"},
            lambda a, b, c: {"old/a": a, "old/inner/b": c}, lambda a, b, c: {"old/none": a},
            lambda a, b, c: {"old/inner/b": a}, lambda a, b, c: {"/": "new/"},
            lambda a, b, c: {"old/a": "new/other"}, lambda a, b, c: {"old/a": "new/a"},
        ]  # fmt: skip
        found = [
            begun(lambda a, b, c, m=m: tf.train.init_from_checkpoint(path, m(a, b, c)))
            for m in mappings
        ]
        renamed = {"new/inner/b": "old/inner/b"}
        warm = begun(lambda a, b, c: tf.train.warm_start(
            path, "new.*inner.*", var_name_to_prev_var_name=renamed))  # fmt: skip
        return [*found, warm]


@program
def decays_and_other_names(tf: Any) -> Any:
    step, t = tf.placeholder(tf.int32, []), tf.train
    rates = [
        t.cosine_decay_restarts(0.1, step, 10),
        t.cosine_decay_restarts(0.1, step, 10, 1.0, 0.5, 0.1),
        t.cosine_decay_restarts(0.1, step, 5, 1.5, 0.9), t.linear_cosine_decay(0.1, step, 40),
        t.linear_cosine_decay(0.1, step, 40, 2.0, 0.1, 0.01),
    ]
    found = [
        tf.batch_gather([[1, 2, 3], [4, 5, 6]], [[2, 0], [1, 1]]),
        tf.clip_by_average_norm([3.0, 4.0], 1.0), *tf.setdiff1d([1, 2, 3, 2, 5], [2, 7]),
        tf.real(tf.spectral.fft([1 + 0j, 2, 3])), tf.manip.roll([1, 2, 3], 1, 0),
        tf.tensor_scatter_update([1, 2, 3], [[1]], [9]), tf.debugging.is_nan([1.0, float("nan")]),
        tf.image.resize_area(tf.reshape(tf.range(16.0), [1, 4, 4, 1]), [2, 2]),
    ]
    with tf.Session() as s:
        return [plain([s.run(rates, {step: n}) for n in (0, 3, 10, 17, 33, 60)]),
                plain(s.run(found))]  # fmt: skip


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    from tests.compat.programs import record

    tf.disable_v2_behavior()
    record(tf, PROGRAMS, FILE)
