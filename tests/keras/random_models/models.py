"""A model for each number: layers drawn for the shape that the ones before gave, and merges."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

Make = Callable[[], Any]

ACTIVATIONS = [
    "relu", "tanh", "sigmoid", "gelu", "selu", "swish", "softplus", "elu", None, "softmax",
    "leaky_relu", "mish", "hard_sigmoid", "exponential", "relu6", "softsign", "celu",
    "log_softmax", "hard_silu",
]  # fmt: skip
MOST_ELEMENTS = 600  # of an example, before it is flattened
SHAPES = [(6,), (5, 4), (6, 5, 3), (8,), (7, 2), (4, 6, 2), (3, 4, 4, 2)]


class Chooser:
    """Draws layers by the rank of their input."""

    def __init__(self, keras: Any, seed: int) -> None:
        self.keras, self.layers, self.random = keras, keras.layers, random.Random(seed)

    def one(self, *of: Any) -> Any:
        return self.random.choice(of)

    def activation(self) -> Any:
        return self.random.choice(ACTIVATIONS)

    def size(self, most: int) -> int:
        return self.random.randint(1, most)

    def layer(self, shape: tuple[int, ...]) -> Any:
        """A layer for examples of a shape. Those of the rank count twice."""
        by_rank = {1: self._of_vectors, 2: self._of_sequences, 3: self._of_images}
        own = by_rank.get(len(shape), self._of_volumes)(shape)
        return self.random.choice([*self._of_any_rank(), *own, *own])()

    def _of_any_rank(self) -> list[Make]:
        layers, one = self.layers, self.one
        return [
            lambda: layers.Activation(one(*(a for a in ACTIVATIONS if a))),
            lambda: layers.Dropout(0.3), lambda: layers.GaussianNoise(0.1),
            lambda: layers.AlphaDropout(0.2), lambda: layers.Identity(), layers.Flatten,
            lambda: layers.BatchNormalization(
                momentum=one(0.9, 0.99), center=one(True, False), scale=one(True, False)
            ),
            lambda: layers.LayerNormalization(epsilon=1e-3), layers.RMSNormalization,
            layers.UnitNormalization, lambda: layers.Rescaling(0.5, 0.1), layers.Softmax,
            lambda: layers.Dense(
                self.size(6), activation=self.activation(), use_bias=one(True, False)
            ),
            lambda: layers.Dense(
                self.size(5), kernel_regularizer="l2",
                activity_regularizer=self.keras.regularizers.L1(0.01),
                kernel_constraint=one("non_neg", "max_norm", None),
            ),
            lambda: layers.LeakyReLU(negative_slope=0.1), layers.PReLU,
            lambda: layers.ELU(alpha=0.7), lambda: layers.ActivityRegularization(l2=0.01),
            lambda: layers.ReLU(
                max_value=one(None, 1.5), negative_slope=one(0.0, 0.1), threshold=one(0.0, 0.2)
            ),
            lambda: layers.SpectralNormalization(layers.Dense(3)),
        ]  # fmt: skip

    def _of_vectors(self, shape: tuple[int, ...]) -> list[Make]:
        layers, (size,) = self.layers, shape
        found: list[Make] = [
            lambda: layers.RepeatVector(self.size(4)), lambda: layers.Reshape((size, 1)),
            lambda: layers.Reshape((1, size)), lambda: layers.Dense(4),
            lambda: layers.Discretization([-0.5, 0, 0.5], output_mode=self.one("int", "one_hot")),
        ]  # fmt: skip
        return [*found, lambda: layers.Reshape((size // 2, -1))] if size % 2 == 0 else found

    def _of_sequences(self, shape: tuple[int, ...]) -> list[Make]:
        layers, one, (time, size) = self.layers, self.one, shape
        found: list[Make] = [
            lambda: layers.Conv1D(
                self.size(5), one(1, 2, 3), strides=one(1, 1, 2), padding=one("same", "causal"),
                activation=self.activation(),
            ),
            lambda: layers.Conv1D(self.size(5), 3, dilation_rate=2, padding=one("same", "causal")),
            lambda: layers.SeparableConv1D(3, 2, padding="same", activation=self.activation()),
            lambda: layers.DepthwiseConv1D(2, padding="same", depth_multiplier=2),
            lambda: layers.Conv1DTranspose(3, 2, strides=one(1, 2), padding=one("same", "valid")),
            lambda: layers.LSTM(
                self.size(4), return_sequences=one(True, False), go_backwards=one(True, False)
            ),
            lambda: layers.GRU(
                self.size(4), return_sequences=one(True, False), reset_after=one(True, False)
            ),
            lambda: layers.SimpleRNN(
                self.size(4), return_sequences=one(True, False), activation="relu"
            ),
            lambda: layers.LSTM(3, unroll=True),
            lambda: layers.RNN(
                layers.StackedRNNCells([layers.LSTMCell(2), layers.GRUCell(3)]),
                return_sequences=one(True, False),
            ),
            lambda: layers.Bidirectional(
                layers.LSTM(2, return_sequences=one(True, False)),
                merge_mode=one("sum", "mul", "concat", "ave"),
            ),
            lambda: layers.TimeDistributed(layers.Dense(3, activation="tanh")),
            lambda: layers.Masking(0.0), lambda: layers.SpatialDropout1D(0.2),
            lambda: layers.GlobalAveragePooling1D(keepdims=one(True, False)),
            layers.GlobalMaxPooling1D,
            lambda: layers.MaxPooling1D(2, strides=one(1, 2, None), padding="same"),
            lambda: layers.AveragePooling1D(2, padding="same"), lambda: layers.UpSampling1D(2),
            lambda: layers.ZeroPadding1D(one(1, (1, 2))), lambda: layers.Permute((2, 1)),
            lambda: layers.Reshape((time, size, 1)), lambda: layers.Reshape((1, time, size)),
            lambda: layers.EinsumDense("abc,cd->abd", output_shape=(time, 4), bias_axes="d"),
            lambda: layers.GroupNormalization(1),
        ]  # fmt: skip
        if time > 3:
            found += [
                lambda: layers.Cropping1D(1), lambda: layers.Conv1D(2, 2, padding="valid")
            ]  # fmt: skip
        return found

    def _of_images(self, shape: tuple[int, ...]) -> list[Make]:
        layers, one, (height, width, size) = self.layers, self.one, shape
        found: list[Make] = [
            lambda: layers.Conv2D(
                self.size(4), one(1, 2, 3, (1, 3)), strides=one(1, 1, 2, (2, 1)), padding="same",
                activation=self.activation(),
            ),
            lambda: layers.Conv2D(2, 2, dilation_rate=2, padding="same"),
            lambda: layers.DepthwiseConv2D(
                one(2, 3), padding="same", depth_multiplier=one(1, 2), strides=one(1, 2)
            ),
            lambda: layers.SeparableConv2D(
                3, one(2, 3), padding="same", activation=self.activation()
            ),
            lambda: layers.Conv2DTranspose(
                2, one(2, 3), strides=one(1, 2), padding=one("same", "valid")
            ),
            lambda: layers.ConvLSTM1D(2, 2, padding="same", return_sequences=one(True, False)),
            lambda: layers.TimeDistributed(layers.Conv1D(2, 2, padding="same")),
            lambda: layers.TimeDistributed(layers.LSTM(2)),
            lambda: layers.MaxPooling2D(2, padding="same", strides=one(1, 2, None)),
            lambda: layers.AveragePooling2D((2, 1), padding="same"), layers.GlobalMaxPooling2D,
            lambda: layers.GlobalAveragePooling2D(keepdims=one(True, False)),
            lambda: layers.UpSampling2D(2, interpolation=one("nearest", "bilinear")),
            lambda: layers.ZeroPadding2D(one(1, (1, 2), ((1, 0), (2, 1)))),
            lambda: layers.Permute(one((2, 1, 3), (3, 1, 2))),
            lambda: layers.Reshape((height * width, size)),
            lambda: layers.SpatialDropout2D(0.2), lambda: layers.GroupNormalization(1),
            lambda: layers.Resizing(
                height + 1, max(1, width - 1), interpolation=one("bilinear", "nearest")
            ),
            lambda: layers.CenterCrop(max(1, height - 1), max(1, width - 1)),
        ]  # fmt: skip
        if height > 2 and width > 2:
            found += [
                lambda: layers.Cropping2D(((1, 0), (0, 1))),
                lambda: layers.Conv2D(2, 2, padding="valid"),
            ]
        return found

    def _of_volumes(self, shape: tuple[int, ...]) -> list[Make]:
        layers = self.layers
        found: list[Make] = [layers.Flatten, lambda: layers.Reshape((shape[0], -1))]
        if len(shape) == 4:
            found += [
                layers.GlobalAveragePooling3D, lambda: layers.MaxPooling3D(2, padding="same"),
                lambda: layers.Conv3D(2, 2, padding="same"),
            ]  # fmt: skip
        return found

    def merged(self, a: Any, b: Any) -> Any:
        """Two tensors as one."""
        layers, ops = self.layers, self.keras.ops
        if a.shape[1:] == b.shape[1:]:
            kind = self.one(
                "Add", "Multiply", "Average", "Maximum", "Minimum", "Subtract", "Concatenate",
                "operators", "where",
            )  # fmt: skip
            if kind == "operators":
                return a * 2.0 - b / 3.0 + 1.0
            if kind == "where":
                return ops.where(ops.greater(a, b), a, b * 0.5)
            if kind == "Concatenate":
                return layers.Concatenate(axis=self.one(-1, 1))([a, b])
            return getattr(layers, kind)()([a, b])
        if len(a.shape) == len(b.shape) == 3:
            kind = self.size(3)
            if kind == 1:
                return layers.MultiHeadAttention(2, 3, output_shape=4)(a, b)
            if kind == 2 and a.shape[-1] == b.shape[-1]:
                attention = self.one(
                    lambda: layers.Attention(use_scale=True), layers.AdditiveAttention
                )
                return attention()([a, b])
            if a.shape[1] == b.shape[1]:
                return layers.Concatenate()([a, b])
            if a.shape[-1] == b.shape[-1]:
                return layers.Dot(axes=2)([a, b])
        return layers.Concatenate()([layers.Flatten()(a), layers.Flatten()(b)])


def build(keras: Any, seed: int) -> Any:
    """The model of a number."""
    chooser = Chooser(keras, seed)
    draw, layers = chooser.random, keras.layers
    first = keras.Input(draw.choice(SHAPES))
    inputs, beside, x = [first], [], first
    if draw.random() < 0.3:
        inputs.append(keras.Input(draw.choice([(4,), (5, 4)])))
        beside.append(inputs[1])
    for _ in range(draw.randint(2, 7)):
        if draw.random() < 0.25:
            beside.append(x)
        shape = tuple(x.shape[1:])
        if any(size is None for size in shape) or not shape:
            break
        if np.prod(shape) > MOST_ELEMENTS:
            x = layers.Dense(5)(layers.Flatten()(x))
            continue
        x = chooser.layer(shape)(x)
        if x.dtype != "float32":
            x = keras.ops.cast(x, "float32")
        if beside and draw.random() < 0.35:
            x = chooser.merged(x, draw.choice(beside))
    outputs = [x]
    if beside and draw.random() < 0.3:
        outputs.append(layers.Dense(2)(layers.Flatten()(beside[-1])))
    if len(inputs) == 2:  # which is used then
        outputs[0] = layers.Concatenate()([layers.Flatten()(x), layers.Flatten()(inputs[1])])
    return keras.Model(
        inputs if len(inputs) > 1 else first, outputs if len(outputs) > 1 else outputs[0]
    )


def weights_of(model: Any, seed: int) -> list[Any]:
    """Values for the model's weights."""
    draw, found = np.random.default_rng(seed), []
    for weight in model.weights:
        kind = weight.dtype if isinstance(weight.dtype, str) else weight.dtype.name
        value = 0.4 * draw.standard_normal(tuple(weight.shape))
        if "variance" in weight.name:
            value = np.abs(value) + 0.5
        if weight.name in ("gamma", "scale"):
            value = 1 + 0.5 * value
        if "int" in kind:  # states of random numbers
            value = np.asarray(weight)
        found.append(np.asarray(value).astype(kind))
    return found


def data_of(model: Any, seed: int) -> Any:
    """Three examples."""
    draw = np.random.default_rng(seed + 1)
    found = [
        draw.standard_normal((3, *source.shape[1:])).astype(np.float32) for source in model.inputs
    ]
    return found if len(found) > 1 else found[0]
