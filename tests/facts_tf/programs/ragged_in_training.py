"""Models of Keras that are fitted to ragged and sparse elements."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program

ROWS = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10], [2, 2], [3]]
TARGETS = np.arange(6, dtype=np.float32)[:, None]


def ragged_batches(tf):
    rows = tf.ragged.constant(ROWS)
    return tf.data.Dataset.from_tensor_slices((rows, TARGETS)).batch(2)


def embedded(tf):
    """A model of layers, whose weights are known."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((None,), dtype="int32"),
            layers.Embedding(20, 4),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    for number, weight in enumerate(model.weights):
        values = np.random.RandomState(number).normal(size=weight.shape)
        weight.assign(0.3 * values.astype(np.float32))
    return model


def of_means(tf):
    """A model of a class, which knows of ragged rows."""

    class Means(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.table = self.add_weight(shape=(20, 3), initializer="ones")
            self.last = tf.keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x):
            table = tf.convert_to_tensor(self.table)
            rows = tf.ragged.map_flat_values(tf.gather, table, x)
            return self.last(tf.reduce_mean(rows, axis=1))

    model = Means()
    model.compile("sgd", "mse")
    return model


def losses(model, *args, **kwargs):
    found = model.fit(*args, epochs=3, shuffle=False, verbose=0, **kwargs)
    return [float(loss) for loss in found.history["loss"]]


@program
def ragged_rows(tf):
    rows, data = tf.ragged.constant(ROWS), ragged_batches(tf)
    only = data.map(lambda x, y: x)
    padded = data.map(lambda x, y: (x.to_tensor(), y))
    return [
        losses(embedded(tf), data),
        losses(embedded(tf), rows, TARGETS, batch_size=2),
        losses(embedded(tf), padded),
        losses(of_means(tf), data),
        float(of_means(tf).evaluate(data, verbose=0)),
        of_means(tf).predict(only, verbose=0),
        embedded(tf).predict(rows, verbose=0),
        embedded(tf)(rows).shape,
        [float(of_means(tf).train_on_batch(x, y)) for x, y in data],
    ]


@program
def sparse_rows(tf):
    def model():
        found = tf.keras.Sequential(
            [tf.keras.Input((6,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
        )
        found.compile("sgd", "mse")
        return found

    eye = tf.sparse.from_dense(np.eye(6, dtype=np.float32))
    data = tf.data.Dataset.from_tensor_slices((eye, TARGETS)).batch(2)
    return [
        losses(model(), data),
        losses(model(), eye, TARGETS, batch_size=6),
        model().predict(eye, verbose=0),
        outcome(lambda: model()(eye)),
    ]
