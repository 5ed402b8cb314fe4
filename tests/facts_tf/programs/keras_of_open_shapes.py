"""Keras layers called in functions with tensors of open sizes and of unknown rank."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import error_types, program


def ramp(tf, *shape):
    return tf.reshape(tf.range(float(np.prod(shape))), shape) / 10.0


def called(tf, make, specs, values, built=True):
    """What a layer gives in a function for each of the specs of its argument, and its shape."""
    found = []
    for spec in specs:
        layer, shapes = make(tf.keras.layers), []
        if built:
            layer(values[0])
        f = shown(tf, layer, shapes, tf.TensorSpec(spec, values[0].dtype))
        for value in values:
            try:
                f(value)
                found.append("called")
            except Exception as error:
                found.append(error_types(error).split(" < ")[0])
        found += shapes[:1]
    return found


def shown(tf, layer, shapes, spec):
    """The layer as a function, which notes the shape of its result."""

    @tf.function(input_signature=[spec])
    def f(x):
        y = layer(x)
        shapes.append(y.shape)
        return y

    return f


def checked(tf, make, spec, values):
    """What a layer that was built gives for values of one spec."""
    layer = make(tf.keras.layers)
    layer(values[0])
    f = tf.function(lambda x: layer(x), input_signature=[tf.TensorSpec(spec, values[0].dtype)])
    return [f(v) for v in values]


ONES = {"kernel_initializer": "ones"}
ROWS = ([None, 3], [None, None])


@program
def dense_of_open_batches(tf):
    values = [ramp(tf, 2, 3), ramp(tf, 5, 3)]
    return called(tf, lambda k: k.Dense(2), ROWS, values), checked(
        tf, lambda k: k.Dense(2, **ONES), [None, None], values
    )


@program
def layers_of_unknown_rank(tf):
    images = [ramp(tf, 2, 3, 3, 1)]
    layers = {
        "Dense": (lambda k: k.Dense(2), [ramp(tf, 2, 3), ramp(tf, 2, 2, 3)]),
        "LayerNormalization": (lambda k: k.LayerNormalization(), [ramp(tf, 2, 3)]),
        "BatchNormalization": (lambda k: k.BatchNormalization(), [ramp(tf, 2, 3)]),
        "Flatten": (lambda k: k.Flatten(), [ramp(tf, 2, 3, 2), ramp(tf, 2, 3)]),
        "MaxPooling2D": (lambda k: k.MaxPooling2D(2), images),
        "Conv2D": (lambda k: k.Conv2D(2, 2), images),
        "LSTM": (lambda k: k.LSTM(2), [ramp(tf, 2, 3, 1)]),
        "Softmax": (lambda k: k.Softmax(), [ramp(tf, 2, 3), ramp(tf, 4)]),
        "ReLU": (lambda k: k.ReLU(), [ramp(tf, 2, 3)]),
        "Dropout": (lambda k: k.Dropout(0.5), [ramp(tf, 2, 3)]),
        "Embedding": (lambda k: k.Embedding(3, 2), [tf.constant([[0, 1]]), tf.constant([2])]),
    }
    return {
        k: called(tf, make, (None,), values)[: len(values)] for k, (make, values) in layers.items()
    }


@program
def dense_of_three_open_axes(tf):
    values = [ramp(tf, 2, 4, 3), ramp(tf, 1, 1, 3)]
    return checked(tf, lambda k: k.Dense(2, **ONES), [None, None, None], values)


@program
def a_dense_layer_not_built(tf):
    return called(tf, lambda k: k.Dense(2), ([None, None],), [ramp(tf, 2, 3)], built=False)


@program
def layer_normalization_of_open_sizes(tf):
    values = [ramp(tf, 2, 3), ramp(tf, 1, 3)]
    return called(tf, lambda k: k.LayerNormalization(), ROWS[:1], values), checked(
        tf, lambda k: k.LayerNormalization(), [None, 3], values
    )


@program
def batch_normalization_of_open_sizes(tf):
    values = [ramp(tf, 2, 3), ramp(tf, 1, 3)]
    return called(tf, lambda k: k.BatchNormalization(), ROWS, values), checked(
        tf, lambda k: k.BatchNormalization(), [None, None], values
    )


@program
def flatten_of_open_sizes(tf):
    values = [ramp(tf, 2, 3, 2), ramp(tf, 1, 1, 4)]
    specs = ([None, 3, 2], [None, None, None], [None, None, 2])
    return called(tf, lambda k: k.Flatten(), specs, values), checked(
        tf, lambda k: k.Flatten(), [None, None, None], values
    )


@program
def pooling_of_open_images(tf):
    values = [ramp(tf, 1, 4, 4, 1), ramp(tf, 2, 5, 3, 1)]
    spec = [None, None, None, 1]
    return (
        called(tf, lambda k: k.MaxPooling2D(2), (spec, [None] * 4), values),
        checked(tf, lambda k: k.MaxPooling2D(2), spec, values),
        checked(tf, lambda k: k.AveragePooling2D(2, padding="same"), spec, values),
        checked(tf, lambda k: k.GlobalAveragePooling2D(), [None] * 4, values),
        checked(tf, lambda k: k.GlobalMaxPooling2D(keepdims=True), [None] * 4, values),
    )


@program
def convolutions_of_open_images(tf):
    values = [ramp(tf, 1, 4, 4, 1), ramp(tf, 2, 5, 3, 1)]
    spec = [None, None, None, 1]
    return (
        called(tf, lambda k: k.Conv2D(2, 2), (spec, [None] * 4), values),
        checked(tf, lambda k: k.Conv2D(2, 2, **ONES), spec, values),
        checked(tf, lambda k: k.Conv2D(1, 3, strides=2, padding="same", **ONES), spec, values),
        checked(tf, lambda k: k.Conv2DTranspose(1, 2, strides=2, **ONES), spec, values),
    )


@program
def embeddings_of_open_shapes(tf):
    values = [tf.constant([[0, 1]]), tf.constant([[2], [1]])]

    def make(k):
        return k.Embedding(3, 2, embeddings_initializer="ones")

    return called(tf, make, ([None, None], [None, 2]), values), checked(
        tf, make, [None, None], values
    )


@program
def recurrent_layers_of_open_lengths(tf):
    values = [ramp(tf, 1, 2, 3), ramp(tf, 2, 4, 3)]
    options = {**ONES, "recurrent_initializer": "ones", "return_sequences": True}
    return (
        called(tf, lambda k: k.LSTM(2), ([None, None, 3], [None] * 3), values),
        checked(tf, lambda k: k.SimpleRNN(2, **options), [None, None, 3], values),
        checked(tf, lambda k: k.GRU(1, **options), [None, None, 3], values),
    )


@program
def attention_of_open_lengths(tf):
    layer = tf.keras.layers.Attention()

    @tf.function(input_signature=[tf.TensorSpec([None, None, 2])] * 2)
    def f(q, v):
        return layer([q, v])

    return f(ramp(tf, 1, 2, 2), ramp(tf, 1, 3, 2)), f(ramp(tf, 2, 1, 2), ramp(tf, 2, 1, 2))


@program
def layers_that_reshape(tf):
    values = [ramp(tf, 2, 4), ramp(tf, 1, 8)]
    rows = [ramp(tf, 1, 2, 2), ramp(tf, 2, 1, 2)]
    return (
        checked(tf, lambda k: k.Reshape((-1, 2)), [None, None], values),
        checked(tf, lambda k: k.RepeatVector(2), [None, None], values),
        checked(tf, lambda k: k.Permute((2, 1)), [None] * 3, rows),
        checked(tf, lambda k: k.ZeroPadding1D(1), [None] * 3, rows),
        checked(tf, lambda k: k.UpSampling1D(2), [None] * 3, rows),
    )


@program
def layers_of_several_tensors_of_open_sizes(tf):
    k = tf.keras.layers
    specs = [tf.TensorSpec([None, None])] * 2

    @tf.function(input_signature=specs)
    def f(x, y):
        return k.Concatenate()([x, y]), k.Add()([x, x]), k.Dot(1)([x, x])

    return f(ramp(tf, 2, 3), ramp(tf, 2, 1)), f(ramp(tf, 1, 2), ramp(tf, 1, 2))


@program
def activations_of_open_sizes(tf):
    layers = (
        lambda k: k.ReLU(),
        lambda k: k.Activation("tanh"),
        lambda k: k.Dropout(0.5),
        lambda k: k.LeakyReLU(),
        lambda k: k.Rescaling(2.0),
    )
    values = [ramp(tf, 2, 3), ramp(tf, 4)]
    return [called(tf, make, ([None, None],), values) for make in layers]


@program
def a_model_of_open_sizes(tf):
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(2, **ONES), tf.keras.layers.LayerNormalization()]
    )
    model.build((None, 3))
    f = tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([None, None])])
    return f(ramp(tf, 2, 3)), f(ramp(tf, 4, 3))


@program
def a_functional_model_of_open_images(tf):
    k = tf.keras.layers
    inputs = tf.keras.Input((None, None, 1))
    x = k.MaxPooling2D(2)(k.Conv2D(2, 2, **ONES)(inputs))
    outputs = k.Dense(1, **ONES)(k.GlobalAveragePooling2D()(x))
    model = tf.keras.Model(inputs, outputs)
    return model.output_shape, model(ramp(tf, 1, 4, 4, 1)), model(ramp(tf, 2, 3, 5, 1))
