"""Keras: what seeds decide. Weights, dropout and noise after `set_random_seed`, and what is left of
Python's random numbers when layers are made."""

from __future__ import annotations

import random

import numpy as np

from tests.facts_tf.registry import program

X2 = np.sin(np.arange(6.0)).reshape(2, 3).astype("float32")
X3 = np.sin(np.arange(24.0)).reshape(2, 4, 3).astype("float32")
X4 = np.sin(np.arange(216.0)).reshape(2, 6, 6, 3).astype("float32")
X5 = np.sin(np.arange(384.0)).reshape(2, 4, 4, 4, 3).astype("float32")


def made(tf, make, *inputs):
    """The weights of a layer of which no seed is said, and the next of Python's numbers."""
    tf.keras.utils.set_random_seed(5)
    layer = make(tf.keras.layers)
    layer(*inputs)
    return [[np.asarray(w) for w in layer.get_weights()], random.random()]


@program
def weights_of_layers(tf):
    return [
        made(tf, lambda layers: layers.Dense(2), X2),
        made(tf, lambda layers: layers.Dense(2, use_bias=False, bias_initializer="normal"), X2),
        made(tf, lambda layers: layers.Conv1D(2, 2), X3),
        made(tf, lambda layers: layers.Conv2D(2, 2), X4),
        made(tf, lambda layers: layers.Conv3D(2, 2), X5),
        made(tf, lambda layers: layers.Conv2DTranspose(2, 2), X4),
        made(tf, lambda layers: layers.DepthwiseConv2D(2), X4),
        made(tf, lambda layers: layers.SeparableConv2D(2, 2), X4),
        made(tf, lambda layers: layers.Embedding(4, 3), np.ones((2, 2), int)),
        made(tf, lambda layers: layers.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d"), X3),
        made(tf, lambda layers: layers.MultiHeadAttention(2, 3), X3, X3),
        made(tf, lambda layers: layers.MultiHeadAttention(2, 3, dropout=0.1), X3, X3),
        made(tf, lambda layers: layers.GroupQueryAttention(2, 4, 2), X3, X3),
        made(tf, lambda layers: layers.AdditiveAttention(), [X3, X3]),
        made(tf, lambda layers: layers.PReLU(alpha_initializer="uniform"), X3),
        made(tf, lambda layers: layers.TimeDistributed(layers.Dense(2)), X3),
    ]


@program
def weights_of_recurrent_layers(tf):
    return [
        made(tf, lambda layers: layers.SimpleRNN(3), X3),
        made(tf, lambda layers: layers.GRU(3), X3),
        made(tf, lambda layers: layers.LSTM(3), X3),
        made(tf, lambda layers: layers.Bidirectional(layers.LSTM(3)), X3),
        made(tf, lambda layers: layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)]), X3),
        made(tf, lambda layers: layers.ConvLSTM2D(2, 2), X5),
    ]


@program
def weights_of_a_model_and_what_it_drops(tf):
    tf.keras.backend.clear_session()
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), layers.Dense(4), layers.Dropout(0.5), layers.Dense(2)]
    )
    first = model(X2, training=True)
    return [
        [np.asarray(w) for w in model.get_weights()], first, model(X2, training=True), model(X2),
        [v.path for v in model.variables], [np.asarray(v) for v in model.variables][2],
        len(model.non_trainable_variables), len(model.non_trainable_weights),
    ]  # fmt: skip


@program
def what_layers_drop_and_add(tf):
    layers, found = tf.keras.layers, []
    for layer in (
        layers.Dropout(0.4, seed=3), layers.Dropout(0.4, noise_shape=(2, 1, 3), seed=3),
        layers.SpatialDropout1D(0.4, seed=3), layers.GaussianDropout(0.4, seed=3),
        layers.GaussianNoise(0.4, seed=3), layers.AlphaDropout(0.4, seed=3),
    ):  # fmt: skip
        found.append([layer(X3, training=True), layer(X3, training=True), layer(X3)])
        found.append([len(layer.variables), len(layer.weights), layer.get_config()["seed"]])
    return found


@program
def what_recurrent_layers_drop(tf):
    layers, found = tf.keras.layers, []
    for kind in (layers.SimpleRNN, layers.GRU, layers.LSTM):
        for rates in ((0.4, 0.0), (0.0, 0.3), (0.4, 0.3)):
            tf.keras.utils.set_random_seed(2)
            layer = kind(3, dropout=rates[0], recurrent_dropout=rates[1], seed=5)
            found.append([layer(X3, training=True), layer(X3)])
    tf.keras.utils.set_random_seed(2)
    layer = layers.GRU(3, dropout=0.4, recurrent_dropout=0.3, reset_after=False, seed=5)
    found.append(layer(X3, training=True))
    return found


@program
def what_attention_drops(tf):
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(2)
    return [
        layers.MultiHeadAttention(2, 3, dropout=0.5, seed=3)(X3, X3, training=True),
        layers.Attention(dropout=0.5, seed=3)([X3, X3], training=True),
        layers.GroupQueryAttention(2, 4, 2, dropout=0.5, seed=3)(X3, X3, training=True),
    ]


@program
def initializers_without_seeds(tf):
    tf.keras.utils.set_random_seed(9)
    free, other = tf.keras.initializers.GlorotUniform(), tf.keras.initializers.RandomNormal()
    return [free((2, 3)), free((2, 3)), other((4,)), free.get_config(), other.get_config()["seed"]]


@program
def numbers_without_seeds(tf):
    tf.keras.utils.set_random_seed(9)
    return [tf.keras.random.normal((3,)), tf.keras.random.uniform((3,)), random.random()]
