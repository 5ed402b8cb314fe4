"""Layers whose results are recorded from Keras and then expected of treadle.

A case makes layers by their names in `keras.layers` of the module under test (`tensorflow` or
`treadle`) and calls them. `step` computes the results, the loss, its gradients and one step of
gradient descent on the inputs and weights. Inputs and weights are made by formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEPS = 50
RATE = 0.05


def wave(*shape: int, phase: float = 0.0) -> Any:
    """Smooth numbers in [-1, 1] without ties."""
    return np.sin(1.7 * np.arange(np.prod(shape)) + phase).reshape(shape).astype("float32")


class Case(NamedTuple):
    """Layers, how they are called, and the shapes of the inputs.

    Args:
        make: gives the layers of ``keras.layers``.
        call: takes the layers, the inputs and whether they train.
        ints: the number of values of integer inputs; 0 for floats.
    """

    make: Callable[[Any], list[Any]]
    call: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    ints: int = 0

    def inputs(self, number: int) -> list[Any]:
        """The inputs of a training step."""
        parts = [wave(*s, phase=0.3 * number + i) for i, s in enumerate(self.shapes)]
        if self.ints:
            return [np.floor((x + 1) / 2 * self.ints * 0.999).astype("int32") for x in parts]
        return parts


def one(kind: str, *shape: int, ints: int = 0, training: bool = False, **settings: Any) -> Case:
    """A layer of one input."""
    return Case(
        lambda layers: [getattr(layers, kind)(**settings)],
        lambda made, inputs: made[0](inputs[0], training=True) if training else made[0](inputs[0]),
        (shape,), ints,
    )  # fmt: skip


def chain(*kinds: Any, shape: tuple[int, ...], ints: int = 0, training: bool = False) -> Case:
    """Layers one after the other: functions of ``keras.layers``."""

    def call(made: list[Any], inputs: list[Any]) -> Any:
        x = inputs[0]
        for layer in made:
            x = layer(x, training=True) if training else layer(x)
        return x

    return Case(lambda layers: [kind(layers) for kind in kinds], call, (shape,), ints)


OF_LISTS = ("Attention", "AdditiveAttention")


def attention(kind: str, shapes: Any, given: Any = None, **settings: Any) -> Case:
    """An attention layer of several tensors."""
    arguments = dict(given or {})

    def call(made: list[Any], inputs: list[Any]) -> Any:
        if kind in OF_LISTS:
            return made[-1](list(inputs), **arguments)
        return made[-1](*inputs, **arguments)

    return Case(lambda layers: [getattr(layers, kind)(**settings)], call, shapes)


def masked_attention(kind: str, **settings: Any) -> Case:
    """Attention between two sequences whose last steps are left out."""

    def call(made: list[Any], inputs: list[Any]) -> Any:
        table, layer = made
        query, value = table(inputs[0]), table(inputs[1])
        return layer([query, value]) if kind in OF_LISTS else layer(query, value)

    return Case(
        lambda layers: [layers.Embedding(5, 6, mask_zero=True), getattr(layers, kind)(**settings)],
        call, ((3, 4), (3, 5)), 5,
    )  # fmt: skip


LSTM = {"units": 3, "return_sequences": True}


def embedded(layers: Any) -> Any:
    return layers.Embedding(5, 4, mask_zero=True)



def recurrent(kind: str, **settings: Any) -> Case:
    """A masked recurrent layer: its results and states side by side."""

    return chain(embedded, lambda layers: getattr(layers, kind)(**settings), shape=(3, 5), ints=5)


def merged(kind: str, *shapes: tuple[int, ...], **settings: Any) -> Case:
    """A layer of a list of tensors."""
    return Case(
        lambda layers: [getattr(layers, kind)(**settings)],
        lambda made, inputs: made[0](list(inputs)), shapes,
    )  # fmt: skip


def stacked(layers: Any, **settings: Any) -> Any:
    cells = [layers.LSTMCell(3), layers.GRUCell(2), layers.SimpleRNNCell(4)]
    return layers.RNN(cells, **settings)


IMAGES = (2, 5, 6, 2)
IMAGES_3 = (2, 5, 6, 3)
VOLUMES = (1, 4, 5, 3, 2)
STEPS_ = (2, 6, 3)

CASES: dict[str, Case] = {
    # attention
    "multi head": attention("MultiHeadAttention", ((2, 4, 6), (2, 3, 6)), num_heads=2, key_dim=3),
    "multi head key": attention(
        "MultiHeadAttention", ((2, 4, 6), (2, 3, 5), (2, 3, 4)), num_heads=2, key_dim=3,
        value_dim=4, output_shape=7, use_bias=False,
    ),
    "multi head causal": attention(
        "MultiHeadAttention", ((2, 4, 6), (2, 4, 6)), {"use_causal_mask": True}, num_heads=3,
        key_dim=2,
    ),
    "multi head mask": attention(
        "MultiHeadAttention", ((2, 3, 4), (2, 4, 4)),
        {"attention_mask": wave(2, 3, 4) > -0.5, "return_attention_scores": True}, num_heads=2,
        key_dim=2,
    ),
    "multi head axes": attention(
        "MultiHeadAttention", ((2, 3, 4, 5), (2, 3, 4, 5)), num_heads=2, key_dim=2,
        attention_axes=(1, 2),
    ),
    "multi head one axis": attention(
        "MultiHeadAttention", ((2, 3, 4, 5), (2, 3, 4, 5)), num_heads=2, key_dim=2,
        attention_axes=2,
    ),
    "multi head gate window": attention(
        "MultiHeadAttention", ((2, 5, 4), (2, 5, 4)), num_heads=2, key_dim=2, use_gate=True,
        sliding_window=2,
    ),
    "multi head masked": masked_attention("MultiHeadAttention", num_heads=2, key_dim=3),
    "group query": attention(
        "GroupQueryAttention", ((2, 4, 6), (2, 3, 6)), head_dim=3, num_query_heads=4,
        num_key_value_heads=2,
    ),
    "group query gate": attention(
        "GroupQueryAttention", ((2, 4, 6), (2, 4, 6), (2, 4, 6)), {"use_causal_mask": True},
        head_dim=2, num_query_heads=2, num_key_value_heads=1, use_gate=True, use_bias=False,
        sliding_window=2,
    ),
    "group query masked": masked_attention(
        "GroupQueryAttention", head_dim=3, num_query_heads=2, num_key_value_heads=1
    ),
    "attention": attention("Attention", ((2, 4, 3), (2, 5, 3))),
    "attention key scale": attention(
        "Attention", ((2, 4, 3), (2, 5, 2), (2, 5, 3)), {"return_attention_scores": True},
        use_scale=True,
    ),
    "attention concat": attention(
        "Attention", ((2, 4, 3), (2, 5, 3)), {"use_causal_mask": True}, score_mode="concat",
        use_scale=True,
    ),
    "attention masked": masked_attention("Attention"),
    "additive attention": attention("AdditiveAttention", ((2, 4, 3), (2, 5, 3))),
    "additive attention masked": masked_attention("AdditiveAttention", use_scale=False),
    "einsum dense": one(
        "EinsumDense", 2, 3, 4, equation="abc,cd->abd", output_shape=(None, 5), bias_axes="d",
        activation="relu",
    ),
    "einsum dense dots": one(
        "EinsumDense", 2, 3, 2, 4, equation="...x,xy->...y", output_shape=5, bias_axes="y",
    ),
    "einsum dense last dots": one(
        "EinsumDense", 2, 3, 4, 2, equation="ab...,bc->ac...", output_shape=5, bias_axes="c",
    ),
    "einsum dense heads": one(
        "EinsumDense", 2, 3, 4, equation="abc,cde->abde", output_shape=(None, 2, 3),
        bias_axes="de",
    ),
    # masks
    "masking": chain(
        lambda k: k.Masking(0.0), lambda k: k.LSTM(3, return_sequences=True), shape=(2, 4, 3)
    ),
    "embedding mask": chain(embedded, lambda k: k.GRU(3), shape=(3, 5), ints=5),
    "mask dense": chain(
        embedded, lambda k: k.Dense(3), lambda k: k.Dropout(0.3), lambda k: k.Activation("tanh"),
        lambda k: k.LayerNormalization(), lambda k: k.LSTM(2), shape=(3, 5), ints=5,
    ),
    "mask global average": chain(
        embedded, lambda k: k.GlobalAveragePooling1D(), shape=(3, 5), ints=5
    ),
    "mask batch norm": chain(
        embedded, lambda k: k.BatchNormalization(), lambda k: k.LSTM(2), shape=(3, 5), ints=5,
        training=True,
    ),
    "mask softmax": chain(
        lambda k: k.Embedding(5, 5, mask_zero=True), lambda k: k.SimpleRNN(4), shape=(3, 5),
        ints=5,
    ),
    "mask bidirectional": chain(
        embedded, lambda k: k.Bidirectional(k.LSTM(2, return_sequences=True)),
        lambda k: k.Bidirectional(k.GRU(2), merge_mode="sum"), shape=(3, 5), ints=5,
    ),
    "mask time distributed": chain(
        embedded, lambda k: k.TimeDistributed(k.Dense(3)), lambda k: k.LSTM(2), shape=(3, 5),
        ints=5,
    ),
    "mask merged": Case(
        lambda k: [embedded(k), k.Add(), k.Concatenate(axis=1), k.LSTM(2), k.Concatenate()],
        lambda made, x: made[3](
            made[2]([made[1]([made[0](x[0]), made[0](x[1])]),
                     made[4]([made[0](x[1]), made[0](x[0])])[:, :, :4]])
        ),
        ((3, 5), (3, 5)), 5,
    ),
    # recurrent layers
    "lstm states masked": recurrent("LSTM", return_state=True, **LSTM),
    "gru masked backwards": recurrent(
        "GRU", units=3, return_sequences=True, go_backwards=True, return_state=True
    ),
    "simple rnn masked zero": recurrent(
        "SimpleRNN", units=3, return_sequences=True, zero_output_for_mask=True
    ),
    "lstm masked unrolled": recurrent("LSTM", units=3, unroll=True, return_sequences=True),
    "lstm masked last": recurrent("LSTM", units=3),
    "initial state": Case(
        lambda k: [k.LSTM(3)],
        lambda made, x: made[0](x[0], initial_state=[x[1], x[2]]),
        ((2, 4, 2), (2, 3), (2, 3)),
    ),
    "stacked cells": chain(lambda k: stacked(k, return_sequences=True), shape=(2, 4, 3)),
    "cells in a stack": chain(
        lambda k: k.RNN(k.StackedRNNCells([k.GRUCell(3), k.LSTMCell(2)]), return_state=True),
        shape=(2, 4, 3),
    ),
    "lstm backwards from states": Case(
        lambda k: [k.LSTM(3, go_backwards=True, return_sequences=True, return_state=True)],
        lambda made, x: made[0](x[0], initial_state=[x[1], x[2]]),
        ((2, 4, 2), (2, 3), (2, 3)),
    ),
    "stacked cells masked": chain(embedded, stacked, shape=(3, 5), ints=5),
    "time distributed conv": chain(
        lambda k: k.TimeDistributed(k.Conv2D(2, 2)), shape=(2, 3, 4, 4, 2)
    ),
    "time distributed norm": chain(
        lambda k: k.TimeDistributed(k.BatchNormalization()), shape=(3, 2, 4), training=True
    ),
    "bidirectional none": Case(
        lambda k: [k.Bidirectional(k.LSTM(2, return_state=True), merge_mode=None)],
        lambda made, x: made[0](x[0]),
        ((2, 4, 3),),
    ),
    "conv lstm 1d": one("ConvLSTM1D", 2, 3, 5, 2, filters=2, kernel_size=3),
    "conv lstm 2d": one(
        "ConvLSTM2D", 2, 3, 4, 4, 2, filters=2, kernel_size=2, padding="same",
        return_sequences=True, strides=2,
    ),
    "conv lstm 2d first": Case(
        lambda k: [k.ConvLSTM2D(2, 2, dilation_rate=2, return_state=True, use_bias=False)],
        lambda made, x: made[0](x[0]),
        ((1, 3, 4, 4, 1),),
    ),
    "conv lstm 3d": one("ConvLSTM3D", 1, 2, 3, 3, 3, 1, filters=2, kernel_size=2),
    # convolutions
    "conv 1d": one("Conv1D", *STEPS_, filters=4, kernel_size=3, strides=2, padding="same"),
    "conv 1d groups": one("Conv1D", 2, 6, 4, filters=4, kernel_size=2, groups=2, dilation_rate=2),
    "conv 1d causal": one("Conv1D", *STEPS_, filters=2, kernel_size=3, padding="causal"),
    "conv 3d": one("Conv3D", *VOLUMES, filters=3, kernel_size=2, activation="relu"),
    "conv 3d same": one(
        "Conv3D", *VOLUMES, filters=2, kernel_size=(2, 3, 2), strides=(1, 2, 1), padding="same"
    ),
    "conv 1d transposed": one("Conv1DTranspose", *STEPS_, filters=2, kernel_size=3, strides=2),
    "conv 1d transposed padded": one(
        "Conv1DTranspose", *STEPS_, filters=2, kernel_size=3, strides=2, output_padding=1
    ),
    "conv 2d transposed padded": one(
        "Conv2DTranspose", *IMAGES, filters=2, kernel_size=3, strides=2, padding="same",
        output_padding=1,
    ),
    "conv 2d transposed dilated": one(
        "Conv2DTranspose", *IMAGES, filters=2, kernel_size=2, dilation_rate=1
    ),
    "conv 3d transposed": one(
        "Conv3DTranspose", 1, 2, 3, 2, 2, filters=2, kernel_size=2, strides=2, padding="same"
    ),
    "separable 1d": one("SeparableConv1D", *STEPS_, filters=4, kernel_size=3, padding="same"),
    "separable 2d": one(
        "SeparableConv2D", *IMAGES, filters=3, kernel_size=3, strides=2, depth_multiplier=2
    ),
    "depthwise 1d": one(
        "DepthwiseConv1D", *STEPS_, kernel_size=3, depth_multiplier=2, strides=2, padding="same"
    ),
    "depthwise 1d dilated": one("DepthwiseConv1D", *STEPS_, kernel_size=2, dilation_rate=2),
    "depthwise 2d": one(
        "DepthwiseConv2D", *IMAGES, kernel_size=2, depth_multiplier=2, activation="tanh"
    ),
    # pools, margins, repetition
    "max pool 1d": one("MaxPooling1D", *STEPS_, pool_size=3, strides=2, padding="same"),
    "average pool 1d": one("AveragePooling1D", *STEPS_, pool_size=3, strides=1, padding="same"),
    "max pool 3d": one("MaxPooling3D", *VOLUMES),
    "max pool 3d same": one("MaxPooling3D", *VOLUMES, pool_size=3, strides=2, padding="same"),
    "average pool 3d": one("AveragePooling3D", *VOLUMES, pool_size=(2, 3, 1), strides=1),
    "average pool 3d same": one(
        "AveragePooling3D", *VOLUMES, pool_size=2, strides=1, padding="same"
    ),
    "global max 1d": one("GlobalMaxPooling1D", *STEPS_),
    "global average 1d keep": one("GlobalAveragePooling1D", *STEPS_, keepdims=True),
    "global max 3d": one("GlobalMaxPooling3D", *VOLUMES),
    "global average 3d": one("GlobalAveragePooling3D", *VOLUMES, data_format="channels_first"),
    "max pool 2d": one("MaxPooling2D", *IMAGES, pool_size=3, strides=2, padding="same"),
    "average pool 2d": one("AveragePooling2D", *IMAGES, pool_size=(2, 3), strides=1),
    "global max 2d": one("GlobalMaxPooling2D", *IMAGES, keepdims=True),
    "global average 2d": one("GlobalAveragePooling2D", *IMAGES),
    "adaptive average 1d": one("AdaptiveAveragePooling1D", *STEPS_, output_size=4),
    "adaptive average 2d": one("AdaptiveAveragePooling2D", *IMAGES, output_size=(2, 4)),
    "adaptive average 3d": one("AdaptiveAveragePooling3D", *VOLUMES, output_size=2),
    "adaptive max 1d": one("AdaptiveMaxPooling1D", *STEPS_, output_size=4),
    "adaptive max 2d": one("AdaptiveMaxPooling2D", *IMAGES, output_size=(2, 4)),
    "adaptive max 3d": one("AdaptiveMaxPooling3D", *VOLUMES, output_size=2),
    "up sampling 1d": one("UpSampling1D", *STEPS_, size=3),
    "up sampling 2d": one("UpSampling2D", 1, 3, 2, 2, size=(2, 3), interpolation="bilinear"),
    "up sampling 2d cubic": one("UpSampling2D", 1, 3, 4, 1, interpolation="bicubic"),
    "up sampling 3d": one("UpSampling3D", 1, 2, 2, 3, 2, size=(2, 1, 2)),
    "zero padding 1d": one("ZeroPadding1D", *STEPS_, padding=(1, 2)),
    "zero padding 2d": one("ZeroPadding2D", *IMAGES, padding=((1, 2), (0, 1))),
    "cropping 2d": one("Cropping2D", *IMAGES, cropping=((1, 0), (2, 1))),
    "center crop": one("CenterCrop", *IMAGES, height=3, width=4),
    "resizing": one("Resizing", *IMAGES, height=3, width=8),
    "zero padding 3d": one("ZeroPadding3D", *VOLUMES, padding=((1, 0), (0, 2), (1, 1))),
    "zero padding 3d first": one(
        "ZeroPadding3D", *VOLUMES, padding=(1, 2, 0), data_format="channels_first"
    ),
    "cropping 1d": one("Cropping1D", *STEPS_, cropping=(1, 2)),
    "cropping 3d": one("Cropping3D", *VOLUMES, cropping=((1, 0), (0, 2), (1, 1))),
    # normalization
    "group norm": one("GroupNormalization", 2, 3, 3, 4, groups=2),
    "group norm axis": one("GroupNormalization", 2, 4, 3, groups=2, axis=1, scale=False),
    "group norm instance": one("GroupNormalization", 2, 3, 3, 4, groups=-1, epsilon=0.1),
    "rms norm": one("RMSNormalization", 3, 4),
    "rms norm axes": one("RMSNormalization", 2, 3, 4, axis=[1, 2], epsilon=0.1),
    "unit norm": one("UnitNormalization", 3, 4),
    "unit norm axes": one("UnitNormalization", 2, 3, 4, axis=[1, 2]),
    "layer norm": one("LayerNormalization", 2, 3, 4, axis=[1]),
    "batch norm": one("BatchNormalization", 4, 3, 3, training=True),
    "batch norm axis": one("BatchNormalization", 4, 3, 3, training=True, axis=1, scale=False),
    "batch norm renorm": one(
        "BatchNormalization", 4, 3, 3, training=True, renorm=True, renorm_momentum=0.9,
        renorm_clipping={"rmax": 1.5, "rmin": 0.6, "dmax": 0.3},
    ),
    "batch norm renorm unscaled": one(
        "BatchNormalization", 4, 3, 3, training=True, renorm=True, scale=False, center=False,
    ),
    "batch norm synchronized": one(
        "BatchNormalization", 4, 3, 3, training=True, synchronized=True,
    ),
    "spectral norm": chain(
        lambda k: k.SpectralNormalization(k.Dense(3), power_iterations=2), shape=(3, 4),
    ),
    "normalization": chain(
        lambda k: k.Normalization(mean=0.3, variance=2.0), lambda k: k.Dense(3), shape=(4, 3)
    ),
    # merges
    "add": merged("Add", (2, 3, 4), (2, 3, 4), (2, 3, 4)),
    "subtract": merged("Subtract", (2, 3, 4), (2, 3, 4)),
    "multiply": merged("Multiply", (2, 3, 4), (2, 1, 4), (2, 3, 4)),
    "average": merged("Average", (2, 3, 4), (2, 3, 4), (2, 3, 4)),
    "maximum": merged("Maximum", (2, 3, 4), (2, 3, 4)),
    "minimum": merged("Minimum", (2, 3, 4), (2, 3, 4)),
    **{
        f"{kind.lower()} of masked": Case(
            lambda k, kind=kind: [k.Embedding(5, 4, mask_zero=True), getattr(k, kind)()],
            lambda made, x: made[1]([made[0](x[0]), made[0](x[1])]), ((3, 5), (3, 5)), ints=5,
        )
        for kind in ("Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract")
    },
    **{
        f"{kind.lower()} of one masked": Case(
            lambda k, kind=kind: [k.Embedding(5, 4, mask_zero=True), k.Embedding(5, 4),
                                  getattr(k, kind)()],
            lambda made, x: made[2]([made[0](x[0]), made[1](x[1])]), ((3, 5), (3, 5)), ints=5,
        )
        for kind in ("Maximum", "Multiply")
    },
    "concatenate": merged("Concatenate", (2, 3, 4), (2, 2, 4), axis=1),
    "dot": merged("Dot", (2, 3, 4), (2, 5, 4), axes=-1),
    "dot normalized": merged("Dot", (2, 3, 4), (2, 3, 5), axes=1, normalize=True),
    # what is random in training is the identity elsewhere
    "gaussian noise": one("GaussianNoise", 2, 3, stddev=0.5),
    "gaussian dropout": one("GaussianDropout", 2, 3, rate=0.5),
    "alpha dropout": one("AlphaDropout", 2, 3, rate=0.5),
    "spatial dropout 1d": one("SpatialDropout1D", *STEPS_, rate=0.5),
    "spatial dropout 2d": one("SpatialDropout2D", *IMAGES, rate=0.5),
    "spatial dropout 3d": one("SpatialDropout3D", *VOLUMES, rate=0.5),
    # the rest
    "relu": one("ReLU", 3, 4, max_value=0.7, negative_slope=0.1, threshold=0.2),
    "thresholded relu": one("ThresholdedReLU", 3, 4, theta=0.3),
    "leaky relu": one("LeakyReLU", 3, 4, negative_slope=0.2),
    "elu": one("ELU", 3, 4, alpha=0.7),
    "permute": one("Permute", 2, 3, 4, dims=(2, 1)),
    "repeat vector": one("RepeatVector", 3, 4, n=2),
    "reshape": one("Reshape", 2, 3, 4, target_shape=(2, -1)),
    "identity": one("Identity", 2, 3),
    "activity regularization": one("ActivityRegularization", 2, 3, l1=0.1, l2=0.2),
    "flatten first": one("Flatten", 2, 3, 2, 2, data_format="channels_first"),
    "softmax axes": one("Softmax", 2, 3, 4, axis=(1, 2)),
    "softmax mask": Case(
        lambda k: [k.Softmax()], lambda made, x: made[0](x[0], mask=wave(2, 3, 4) > -0.7),
        ((2, 3, 4),),
    ),
    "reversible embedding": Case(
        lambda k: [k.ReversibleEmbedding(5, 4)],
        lambda made, x: made[0](made[0](x[0]), reverse=True), ((3, 4),), 5,
    ),
    "prelu": one("PReLU", 2, 3, 3, 2, shared_axes=[1]),
    "rescaling": one("Rescaling", 2, 3, scale=0.5, offset=1.0),
    # what prepares sounds and images, before a layer that is trained
    "mel spectrogram": chain(
        lambda k: k.Dense(48),
        lambda k: k.MelSpectrogram(
            32, 16, num_mel_bins=4, sampling_rate=800, min_freq=20.0, min_power=2.0
        ),
        lambda k: k.Rescaling(0.02), lambda k: k.Dense(2), shape=(2, 10),
    ),
    "stft spectrogram": chain(
        lambda k: k.Dense(48), lambda k: k.Reshape((48, 1)),
        lambda k: k.STFTSpectrogram("magnitude", 16, 8), lambda k: k.Dense(2), shape=(2, 10),
    ),
    "solarization": chain(
        lambda k: k.Solarization(value_range=(-1, 1)), lambda k: k.Dense(2), shape=IMAGES_3
    ),
    "auto contrast": chain(
        lambda k: k.AutoContrast((-1, 1)), lambda k: k.Dense(2), shape=IMAGES_3
    ),
    "equalization": chain(
        lambda k: k.Equalization((-1, 1)), lambda k: k.Dense(2), shape=IMAGES_3
    ),
    "contrast limited": chain(
        lambda k: k.ContrastLimitedAdaptiveHistogramEqualization(
            value_range=(-1, 1), tile_grid_size=(2, 2)
        ),
        lambda k: k.Dense(2), shape=(2, 8, 8, 3),
    ),
}  # fmt: skip


def parts_of(result: Any) -> list[Any]:
    """What a call gave, as a list of tensors."""
    found: list[Any] = []
    for part in result if isinstance(result, list | tuple) else [result]:
        found += parts_of(part) if isinstance(part, list | tuple) else [part]
    return found


class Trained:
    """A case in training: its layers, with weights by formula, and variables added to inputs."""

    def __init__(self, tf: Any, case: Case) -> None:
        self.tf, self.case = tf, case
        self.made = case.make(tf.keras.layers)
        shapes = () if case.ints else case.shapes
        self.shifts = [tf.Variable(np.zeros(shape, "float32")) for shape in shapes]
        result = case.call(self.made, [tf.constant(x) for x in case.inputs(0)])
        self.targets = [tf.constant(wave(*p.shape, phase=5.0)) for p in parts_of(result)]
        weights = {id(w): w for layer in self.made for w in layer.trainable_weights}
        self.weights = list(weights.values())
        for n, weight in enumerate(self.weights):
            weight.assign(0.6 * wave(*weight.shape, phase=float(n + 1)))
        self.others = [w for layer in self.made for w in layer.non_trainable_weights]
        for n, weight in enumerate(self.others):
            weight.assign(0.2 * wave(*weight.shape, phase=float(n + 1)) + 0.5)

    def step(self, inputs: list[Any]) -> Any:
        """The loss, the results and the gradients, and one step down."""
        tf = self.tf
        variables = [*self.shifts, *self.weights]
        with tf.GradientTape() as tape:
            moved = [x + s for x, s in zip(inputs, self.shifts)] if self.shifts else inputs
            results = parts_of(self.case.call(self.made, moved))
            errors = [tf.reduce_mean(tf.square(r - t)) for r, t in zip(results, self.targets)]
            loss = tf.add_n([*errors, *(x for layer in self.made for x in layer.losses)])
        found = tape.gradient(loss, variables, unconnected_gradients="zero")
        gradients = [tf.convert_to_tensor(gradient) for gradient in found]  # rows of tables, too
        for variable, gradient in zip(variables, gradients):
            variable.assign(variable - RATE * gradient)
        return loss, results, gradients


def masks_of(tf: Any, case: Case) -> list[Any]:
    """The masks of the results; None where there is none."""
    made = case.make(tf.keras.layers)
    results = parts_of(case.call(made, [tf.constant(x) for x in case.inputs(0)]))
    return [getattr(result, "_keras_mask", None) for result in results]
