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
    ELU,
    Activation,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GaussianNoise,
    LeakyReLU,
    Permute,
    PReLU,
    ReLU,
    RepeatVector,
    Reshape,
    Softmax,
)
from treadle.keras.layers.functions import Lambda
from treadle.keras.layers.inputs import Input, InputLayer
from treadle.keras.layers.merging import (
    Add,
    Average,
    Concatenate,
    Dot,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
    add,
    average,
    concatenate,
    dot,
    maximum,
    minimum,
    multiply,
    subtract,
)
from treadle.keras.layers.normalization import BatchNormalization, LayerNormalization
from treadle.keras.layers.one_dimensional import (
    AveragePooling1D,
    AvgPool1D,
    Conv1D,
    GlobalAveragePooling1D,
    GlobalAvgPool1D,
    GlobalMaxPool1D,
    GlobalMaxPooling1D,
    MaxPool1D,
    MaxPooling1D,
)
from treadle.keras.layers.recurrent import (
    GRU,
    LSTM,
    RNN,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    SimpleRNNCell,
)
from treadle.keras.layers.resizing import Conv2DTranspose, Cropping2D, UpSampling2D, ZeroPadding2D
from treadle.keras.layers.wrappers import Bidirectional, TimeDistributed
from treadle.names import missing_in

__all__ = [
    "Activation", "Add", "Average", "AveragePooling1D", "AveragePooling2D", "AvgPool1D",
    "AvgPool2D", "BatchNormalization", "Bidirectional", "Concatenate", "Conv1D", "Conv2D",
    "Conv2DTranspose", "Cropping2D", "Dense", "DepthwiseConv2D", "Dot", "Dropout", "ELU",
    "Embedding", "Flatten", "GRU", "GRUCell", "GaussianNoise", "GlobalAveragePooling1D",
    "GlobalAveragePooling2D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalMaxPool1D",
    "GlobalMaxPool2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "Input", "InputLayer",
    "InputSpec", "LSTM", "LSTMCell", "Lambda", "Layer", "LayerNormalization", "LeakyReLU",
    "MaxPool1D", "MaxPool2D", "MaxPooling1D", "MaxPooling2D", "Maximum", "Minimum", "Multiply",
    "PReLU", "Permute", "RNN", "ReLU", "RepeatVector", "Reshape", "SimpleRNN", "SimpleRNNCell",
    "Softmax", "Subtract", "TimeDistributed", "UpSampling2D", "ZeroPadding2D", "add", "average",
    "concatenate", "dot", "maximum", "minimum", "multiply", "subtract",
]  # fmt: skip

__getattr__ = missing_in(__name__)
