"""Writes the SavedModels of this folder with TensorFlow, and the results that they give there.

    python make.py               with tensorflow
    python make.py --keras2      with tensorflow and tf_keras: the model of Keras 2 only

Each model is a zip file, and ``results.json`` has what its functions gave TensorFlow.
"""

import collections
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
if "--keras2" in sys.argv:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
X = np.array([[1, 2, 3], [0.1, 0.2, 0.3]], np.float32)
IMAGES = np.random.RandomState(0).rand(2, 8, 8, 1).astype(np.float32)
GRIDS = np.random.RandomState(3).randn(2, 6, 6, 2).astype(np.float32)
TOKENS = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], np.int32)
Point = collections.namedtuple("Point", "x y")


def packed(name, write):
    """The folder that `write` fills as a zip file."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder)
        shutil.rmtree(f"{folder}/assets.extra", ignore_errors=True)
        shutil.make_archive(str(HERE / name), "zip", folder)


def noted(**found):
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known |= {k: np.asarray(v).tolist() for k, v in found.items()}
    RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True))


class Classifier(tf.Module):
    """Variables in containers, control flow, defaults, nested results, a step of training."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2) / 10, name="w")
        self.b = tf.Variable([0.5, -0.5], name="b")
        self.count = tf.Variable(0, trainable=False, name="count", dtype=tf.int64)
        self.parts = {"l": [tf.Variable(1.0), (tf.Variable(2.0),)]}
        self.offset = tf.constant([3.0, 4.0])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def scores(self, x):
        y = tf.nn.relu(x @ self.w + self.b)
        if tf.reduce_max(y) > 2.0:
            y = y / tf.reduce_max(y)
        i = tf.constant(0)
        while tf.reduce_sum(y) < 10.0 and i < 20:
            y = y * 1.5
            i += 1
        return y

    @tf.function
    def __call__(self, x, training=False, scale=2.0):
        self.count.assign_add(1)
        if training:
            return {"y": self.scores(x) * scale, "t": (x, tf.constant(1))}
        return {"y": self.scores(x) + self.offset, "t": (x, tf.constant(0))}

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 2])])
    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.tanh(x @ self.w + self.b) - y) ** 2)
        for variable, gradient in zip(
            (self.w, self.b), tape.gradient(loss, [self.w, self.b]), strict=True
        ):
            variable.assign_sub(0.1 * gradient)
        return loss

    @tf.function(input_signature=[tf.TensorSpec([4])])
    def doubled(self, x):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in tf.range(4):
            array = array.write(i, x[i] * 2)
        return array.stack()


def classifier():
    model = Classifier()
    first, second = model(X), model(X, training=True)
    model(X, scale=3.0)
    model.count.assign(7)
    packed(
        "classifier", lambda folder: tf.saved_model.save(model, folder, signatures=model.scores)
    )
    noted(
        scores=model.scores(X), called=first["y"], trained=second["y"],
        losses=[float(model.train(X, np.ones((2, 2), np.float32))) for _ in range(3)],
    )  # fmt: skip


class Many(tf.Module):
    """A vocabulary in a file, branches by number, structures, scatter, random numbers, gradients of
    windows, a gradient of the program's own, any rank."""

    def __init__(self, vocabulary):
        super().__init__()
        lines = tf.lookup.TextFileInitializer(
            vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )  # fmt: skip
        self.table = tf.lookup.StaticHashTable(lines, -1)
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        self.pairs = tf.lookup.StaticHashTable(pairs, -1)
        self.rows = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
        self.sums = tf.Variable(tf.zeros([4, 2]), trainable=False)
        self.v = tf.Variable(2.0)
        self.generator = tf.random.Generator.from_seed(1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def words(self, words):
        places = self.table.lookup(tf.strings.lower(words)) + 1
        return tf.nn.embedding_lookup(self.rows, places)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def letters(self, keys):
        return self.pairs.lookup(keys), self.pairs.size()

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([None])])
    def switch(self, i, x):
        return tf.switch_case(i, [lambda: x + 1, lambda: x * 2, lambda: x - self.v])

    @tf.function
    def nested(self, d, *rest, flag=True, p=None):
        y = d["a"] + d["b"][0] * d["b"][1]
        for part in rest:
            y = y + part
        if p is not None:
            y = y + p.x - p.y
        return Point(y, [y * 2, None]) if flag else Point(y, [y * 3, None])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 2])])
    def scatter(self, i, rows):
        self.sums.scatter_add(tf.IndexedSlices(rows, i))
        self.sums.scatter_nd_update([[0]], [[9.0, 9.0]])
        largest = tf.reduce_max(self.sums)
        tf.debugging.assert_less(largest, 100.0, message="the sums are too large")
        return self.sums + 0.0

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def random(self, x):
        return {
            "dropped": tf.nn.dropout(x, 0.5),
            "uniform": tf.random.stateless_uniform([3], [1, 2]),
            "integers": tf.random.stateless_uniform([3], [1, 2], 0, 9, tf.int32),
            "normal": tf.random.normal([2]),
            "shuffled": tf.random.shuffle(x),
            "generated": self.generator.normal([2]),
        }

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 2])])
    def windows(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            filters = tf.ones([3, 3, 2, 3]) * self.v
            y = tf.nn.conv2d(x, filters, 2, "SAME")
            y = tf.nn.max_pool2d(tf.nn.elu(y), 2, 1, "VALID")
            y = tf.concat([y, tf.nn.avg_pool2d(y, 2, 1, "SAME")], -1)
            loss = tf.reduce_sum(tf.nn.log_softmax(y)[..., 0:2] ** 2)
        return tape.gradient(loss, [x, self.v])

    @tf.function(input_signature=[tf.TensorSpec([])])
    def steep(self, x):
        @tf.custom_gradient
        def exponential(a):
            return tf.exp(a), lambda upstream: upstream * 100.0

        return exponential(x)

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def total(self, x):
        return tf.reduce_sum(x * 2)


def many():
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = f"{folder}/vocabulary.txt"
        Path(vocabulary).write_text("the\ncat\nsat\n")
        model = Many(vocabulary)
        d = {"a": tf.constant([1.0, 2.0]), "b": (tf.constant(3.0), tf.constant(4.0))}
        model.nested(d)
        model.nested(d, tf.constant(1.0), flag=False)
        model.nested(d, p=Point(tf.constant(1.0), tf.constant(2.0)))
        packed("many", lambda folder: tf.saved_model.save(model, folder))
        slopes, slope = model.windows(GRIDS)
        drawn = model.random(X)
        noted(
            words=model.words(["CAT", "dog"]), letters=model.letters(["b", "z"])[0],
            switch=[model.switch(i, [1.0, 2.0]) for i in (0, 1, 2, 7)],
            scatter=model.scatter([1, 2, 1], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]),
            slopes=slopes, slope=slope, uniform=drawn["uniform"], integers=drawn["integers"],
        )  # fmt: skip


def keras3():
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
        keras.layers.BatchNormalization(), keras.layers.MaxPooling2D(), keras.layers.Flatten(),
        keras.layers.Dropout(0.5), keras.layers.Dense(3, activation="softmax"),
    ])  # fmt: skip
    packed("keras_cnn", lambda folder: model.export(folder, verbose=False))
    noted(keras_cnn=model(IMAGES))
    model = keras.Sequential([
        keras.Input((5,), dtype="int32"), keras.layers.Embedding(10, 4),
        keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True)),
        keras.layers.GRU(3), keras.layers.Dense(1),
    ])  # fmt: skip
    packed("keras_recurrent", lambda folder: model.export(folder, verbose=False))
    noted(keras_recurrent=model(TOKENS))


def keras2():
    """A model that is trained further: batch normalization, dropout, regularization."""
    import tf_keras as keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
        keras.layers.BatchNormalization(), keras.layers.Flatten(), keras.layers.Dropout(0.5),
        keras.layers.Dense(3, activation="softmax"),
    ])  # fmt: skip
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(IMAGES, np.array([0, 1]), verbose=0)
    packed("keras2_cnn", lambda folder: model.save(folder, save_format="tf"))
    noted(keras2_cnn=model(IMAGES))


def of_tensorflow_1():
    """A graph with signatures, and one that trains, as the files of a Saver."""
    v1 = tf.compat.v1
    for use_resource in (False, True):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 3], name="x")
            wanted = v1.placeholder(tf.float32, [None, 2], name="wanted")
            with v1.variable_scope("layer", use_resource=use_resource):
                w = v1.get_variable("w", initializer=np.ones((3, 2), np.float32))
                b = v1.get_variable("b", [2], initializer=v1.zeros_initializer())
            y = tf.nn.relu(x @ w + b, name="y")
            loss = tf.reduce_mean(tf.square(y - wanted), name="loss")
            step = v1.train.get_or_create_global_step()
            optimizer = v1.train.AdamOptimizer(0.1)
            train = optimizer.minimize(loss, global_step=step, name="train")
            v1.add_to_collection("train_op", train)
            session.run(v1.global_variables_initializer())
            feed = {x: np.eye(3, dtype=np.float32), wanted: np.zeros((3, 2), np.float32)}
            for _ in range(3):
                session.run(train, feed)
            kind = "handles" if use_resource else "references"

            def both(folder, session=session, x=x, y=y):
                v1.train.Saver().save(session, f"{folder}/model.ckpt")
                v1.saved_model.simple_save(session, f"{folder}/saved", {"a": x}, {"b": y})

            packed(f"tensorflow_1_{kind}", both)
            losses = []
            for _ in range(3):
                losses.append(float(session.run(loss, feed)))
                session.run(train, feed)
            noted(**{f"losses_{kind}": losses})


if __name__ == "__main__":
    if "--keras2" in sys.argv:
        keras2()
    else:
        for make in (classifier, many, keras3, of_tensorflow_1):
            make()
