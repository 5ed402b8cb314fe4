"""Layers, by Keras's names."""

from collections.abc import Mapping
from typing import Any

from treadle.keras.layers.attention import (
    AdditiveAttention,
    Attention,
    GroupQueryAttention,
    MultiHeadAttention,
)
from treadle.keras.layers.base import Layer
from treadle.keras.layers.cells import GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells
from treadle.keras.layers.conv_recurrent import ConvLSTM1D, ConvLSTM2D, ConvLSTM3D
from treadle.keras.layers.convolutional import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    Convolution1D,
    Convolution1DTranspose,
    Convolution2D,
    Convolution2DTranspose,
    Convolution3D,
    Convolution3DTranspose,
    DepthwiseConv1D,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
    SeparableConvolution1D,
    SeparableConvolution2D,
)
from treadle.keras.layers.core import (
    ELU,
    Activation,
    ActivityRegularization,
    Dense,
    Embedding,
    Flatten,
    Identity,
    LeakyReLU,
    Masking,
    Permute,
    PReLU,
    ReLU,
    RepeatVector,
    Reshape,
    ReversibleEmbedding,
    Softmax,
    ThresholdedReLU,
)
from treadle.keras.layers.einsum import EinsumDense
from treadle.keras.layers.functions import Lambda
from treadle.keras.layers.input_spec import InputSpec
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
from treadle.keras.layers.noise import (
    AlphaDropout,
    Dropout,
    GaussianDropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
)
from treadle.keras.layers.normalization import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
    UnitNormalization,
)
from treadle.keras.layers.pooling import (
    AdaptiveAveragePooling1D,
    AdaptiveAveragePooling2D,
    AdaptiveAveragePooling3D,
    AdaptiveMaxPooling1D,
    AdaptiveMaxPooling2D,
    AdaptiveMaxPooling3D,
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)
from treadle.keras.layers.preprocessing.augmentation import (
    RandomBrightness,
    RandomContrast,
    RandomCrop,
    RandomFlip,
    RandomHeight,
    RandomRotation,
    RandomShear,
    RandomTranslation,
    RandomWidth,
    RandomZoom,
)
from treadle.keras.layers.preprocessing.categories import (
    CategoryEncoding,
    Discretization,
    HashedCrossing,
    Hashing,
)
from treadle.keras.layers.preprocessing.chains import AugMix, RandAugment
from treadle.keras.layers.preprocessing.colors import (
    AutoContrast,
    RandomColorDegeneration,
    RandomErasing,
    RandomGrayscale,
    RandomHue,
    RandomInvert,
    RandomPosterization,
    RandomSaturation,
    RandomSharpness,
    Solarization,
)
from treadle.keras.layers.preprocessing.filters import (
    RandomColorJitter,
    RandomElasticTransform,
    RandomGaussianBlur,
    RandomPerspective,
)
from treadle.keras.layers.preprocessing.histograms import (
    ContrastLimitedAdaptiveHistogramEqualization,
    Equalization,
)
from treadle.keras.layers.preprocessing.images import CenterCrop, MaxNumBoundingBoxes, Resizing
from treadle.keras.layers.preprocessing.mixing import CutMix, MixUp
from treadle.keras.layers.preprocessing.pipeline import Pipeline
from treadle.keras.layers.preprocessing.scaling import Normalization, Rescaling
from treadle.keras.layers.preprocessing.spectrograms import MelSpectrogram, STFTSpectrogram
from treadle.keras.layers.preprocessing.vocabularies import (
    IntegerLookup,
    StringLookup,
    TextVectorization,
)
from treadle.keras.layers.recurrent import GRU, LSTM, RNN, SimpleRNN
from treadle.keras.layers.resizing import (
    Cropping1D,
    Cropping2D,
    Cropping3D,
    UpSampling1D,
    UpSampling2D,
    UpSampling3D,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)
from treadle.keras.layers.saved_layer import TFSMLayer
from treadle.keras.layers.wrappers import (
    Bidirectional,
    SpectralNormalization,
    TimeDistributed,
    Wrapper,
)
from treadle.keras.serialization import deserialize_keras_object, serialize_keras_object
from treadle.names import missing_in


def serialize(layer: Layer) -> Any:
    """A layer as data, without its weights."""
    return serialize_keras_object(layer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The layer that `serialize` described, with new weights."""
    return deserialize_keras_object(config, custom_objects)


__all__ = [
    "ELU", "GRU", "LSTM", "RNN", "Activation", "ActivityRegularization", "AdaptiveAveragePooling1D",
    "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D", "AdaptiveMaxPooling1D",
    "AdaptiveMaxPooling2D", "AdaptiveMaxPooling3D", "Add", "AdditiveAttention", "AlphaDropout",
    "Attention", "AugMix", "AutoContrast", "Average", "AveragePooling1D", "AveragePooling2D",
    "AveragePooling3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "BatchNormalization",
    "Bidirectional", "CategoryEncoding", "CenterCrop", "Concatenate",
    "ContrastLimitedAdaptiveHistogramEqualization", "Conv1D", "Conv1DTranspose", "Conv2D",
    "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D",
    "Convolution1D", "Convolution1DTranspose", "Convolution2D", "Convolution2DTranspose",
    "Convolution3D", "Convolution3DTranspose", "Cropping1D", "Cropping2D", "Cropping3D", "CutMix",
    "Dense", "DepthwiseConv1D", "DepthwiseConv2D", "Discretization", "Dot", "Dropout",
    "EinsumDense", "Embedding", "Equalization", "Flatten", "GRUCell", "GaussianDropout",
    "GaussianNoise", "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D",
    "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D",
    "GlobalMaxPool3D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D",
    "GroupNormalization", "GroupQueryAttention", "HashedCrossing", "Hashing", "Identity", "Input",
    "InputLayer", "InputSpec", "IntegerLookup", "LSTMCell", "Lambda", "Layer", "LayerNormalization",
    "LeakyReLU", "Masking", "MaxNumBoundingBoxes", "MaxPool1D", "MaxPool2D", "MaxPool3D",
    "MaxPooling1D", "MaxPooling2D",
    "MaxPooling3D", "Maximum", "MelSpectrogram", "Minimum", "MixUp", "MultiHeadAttention",
    "Multiply", "Normalization", "PReLU", "Permute", "Pipeline", "RMSNormalization", "RandAugment",
    "RandomBrightness", "RandomColorDegeneration", "RandomColorJitter", "RandomContrast",
    "RandomCrop", "RandomElasticTransform", "RandomErasing", "RandomFlip", "RandomGaussianBlur",
    "RandomGrayscale", "RandomHeight", "RandomHue", "RandomInvert", "RandomPerspective",
    "RandomPosterization", "RandomRotation", "RandomSaturation", "RandomSharpness", "RandomShear",
    "RandomTranslation", "RandomWidth", "RandomZoom", "ReLU", "RepeatVector", "Rescaling",
    "Reshape", "Resizing", "ReversibleEmbedding", "STFTSpectrogram", "SeparableConv1D",
    "SeparableConv2D", "SeparableConvolution1D", "SeparableConvolution2D", "SimpleRNN",
    "SimpleRNNCell", "Softmax", "Solarization", "SpatialDropout1D", "SpatialDropout2D",
    "SpatialDropout3D", "SpectralNormalization", "StackedRNNCells", "StringLookup", "Subtract",
    "TFSMLayer", "TextVectorization", "ThresholdedReLU", "TimeDistributed", "UnitNormalization",
    "UpSampling1D", "UpSampling2D", "UpSampling3D", "Wrapper", "ZeroPadding1D", "ZeroPadding2D",
    "ZeroPadding3D", "add", "average", "concatenate", "deserialize", "dot", "maximum", "minimum",
    "multiply", "serialize", "subtract",
]  # fmt: skip

__getattr__ = missing_in(__name__)
