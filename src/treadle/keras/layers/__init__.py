"""Layers, by Keras's names."""

from treadle.keras.layers.base import InputSpec, Layer
from treadle.keras.layers.convolutional import (
    AveragePooling2D,
    AvgPool2D,
    Conv2D,
    DepthwiseConv2D,
    GlobalAveragePooling2D,
    GlobalAvgPool2D,
    GlobalMaxPool2D,
    GlobalMaxPooling2D,
    MaxPool2D,
    MaxPooling2D,
)
from treadle.keras.layers.core import (
    Activation,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    Input,
    InputLayer,
    LeakyReLU,
    Permute,
    ReLU,
    Reshape,
    Softmax,
)
from treadle.keras.layers.normalization import BatchNormalization, LayerNormalization
from treadle.names import missing_in

__all__ = [
    "Activation", "AveragePooling2D", "AvgPool2D", "BatchNormalization", "Conv2D", "Dense",
    "DepthwiseConv2D", "Dropout", "Embedding", "Flatten", "GlobalAveragePooling2D",
    "GlobalAvgPool2D", "GlobalMaxPool2D", "GlobalMaxPooling2D", "Input", "InputLayer", "InputSpec",
    "Layer", "LayerNormalization", "LeakyReLU", "MaxPool2D", "MaxPooling2D", "Permute", "ReLU",
    "Reshape", "Softmax",
]  # fmt: skip

__getattr__ = missing_in(__name__)
