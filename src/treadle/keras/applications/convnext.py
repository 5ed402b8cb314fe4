"""``td.keras.applications.convnext``: large kernels of single channels between dense layers
(https://arxiv.org/abs/2201.03545)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    File,
    Wanted,
    application,
    channel_axis,
    finished,
    image_input,
    image_shape,
    pooled,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.config import image_data_format
from treadle.keras.initializers import Constant
from treadle.keras.models import Model, Sequential
from treadle.names import missing_in

# Blocks and channels of the four stages.
_SIZES = {
    "Tiny": ((3, 3, 9, 3), (96, 192, 384, 768)),
    "Small": ((3, 3, 27, 3), (96, 192, 384, 768)),
    "Base": ((3, 3, 27, 3), (128, 256, 512, 1024)),
    "Large": ((3, 3, 27, 3), (192, 384, 768, 1536)),
    "XLarge": ((3, 3, 27, 3), (256, 512, 1024, 2048)),
}
_MEANS, _DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class LayerScale(layers.Layer):
    """The channels, each times a weight.

    Args:
        init_values: what the weights are at first.
        projection_dim: the number of channels.
    """

    _saved_as = ("keras.src.applications.convnext", "LayerScale")

    def __init__(self, init_values: float, projection_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.init_values = init_values
        self.projection_dim = projection_dim

    def build(self, input_shape: Any) -> None:
        self.gamma = self.add_weight(
            shape=(self.projection_dim,), initializer=Constant(self.init_values), name="gamma"
        )

    def call(self, x: Any) -> Any:
        return x * self.gamma


def _block(x: Any, channels: int, name: str) -> Any:
    y = layers.Conv2D(
        channels, 7, padding="same", groups=channels, name=f"{name}_depthwise_conv"
    )(x)  # fmt: skip
    y = layers.LayerNormalization(epsilon=1e-6, name=f"{name}_layernorm")(y)
    y = layers.Dense(4 * channels, name=f"{name}_pointwise_conv_1")(y)
    y = layers.Activation("gelu", name=f"{name}_gelu")(y)
    y = layers.Dense(channels, name=f"{name}_pointwise_conv_2")(y)
    y = LayerScale(1e-6, channels, name=f"{name}_layer_scale")(y)
    return x + layers.Activation("linear", name=f"{name}_identity")(y)


def _scaling(name: str, channels: tuple[int, ...]) -> list[Sequential]:
    """What comes before the stages: fewer positions with more channels."""
    first = [
        layers.Conv2D(channels[0], 4, strides=4, name=f"{name}_stem_conv"),
        layers.LayerNormalization(epsilon=1e-6, name=f"{name}_stem_layernorm"),
    ]
    parts = [Sequential(first, name=f"{name}_stem")]
    for number, filters in enumerate(channels[1:]):
        norm = f"{name}_downsampling_layernorm_{number}"
        conv = f"{name}_downsampling_conv_{number}"
        part = [
            layers.LayerNormalization(epsilon=1e-6, name=norm),
            layers.Conv2D(filters, 2, strides=2, name=conv),
        ]
        parts.append(Sequential(part, name=f"{name}_downsampling_block_{number}"))
    return parts


def _convnext(wanted: Wanted, include_preprocessing: bool, kind: str) -> Model:
    if image_data_format() == "channels_first":
        raise ValueError(
            "ConvNeXt does not support the `channels_first` image data format: call "
            "keras.config.set_image_data_format('channels_last')"
        )
    counts, channels = _SIZES[kind]
    shape, name = image_shape(wanted, 224), str(wanted.name)
    image = x = image_input(wanted, shape)
    if include_preprocessing and shape[channel_axis(3) - 1] == 3:
        x = layers.Normalization(
            mean=[mean * 255 for mean in _MEANS],
            variance=[(deviation * 255) ** 2 for deviation in _DEVIATIONS],
            name=f"{name}_prestem_normalization",
        )(x)  # fmt: skip
    for stage, smaller in enumerate(_scaling(name, channels)):
        x = smaller(x)
        for block in range(counts[stage]):
            x = _block(x, channels[stage], f"{name}_stage_{stage}_block_{block}")
    x = _top(x, wanted) if wanted.include_top else pooled(x, wanted)
    if not wanted.include_top:
        x = layers.LayerNormalization(epsilon=1e-6)(x)

    def file() -> File:
        end = ".h5" if wanted.include_top else "_notop.h5"
        return File(f"{wanted.name}{end}", "convnext")

    return finished(image, x, wanted, file)


def _top(x: Any, wanted: Wanted) -> Any:
    name = f"{wanted.name}_head"
    x = layers.GlobalAveragePooling2D(name=f"{name}_gap")(x)
    x = layers.LayerNormalization(epsilon=1e-6, name=f"{name}_layernorm")(x)
    kind = wanted.classifier_activation
    return layers.Dense(wanted.classes, activation=kind, name=f"{name}_dense")(x)


def _variant(kind: str) -> Callable[..., Model]:
    return application(
        f"ConvNeXt{kind}", f"convnext_{kind.lower()}", partial(_convnext, kind=kind),
        f"The {kind.lower()} ConvNeXt for images in 0 ... 255.",
        {
            "include_top": True, "include_preprocessing": True, "weights": "imagenet",
            "input_tensor": None, "input_shape": None, "pooling": None, "classes": 1000,
            "classifier_activation": "softmax",
        },
    )  # fmt: skip


ConvNeXtTiny = _variant("Tiny")
ConvNeXtSmall = _variant("Small")
ConvNeXtBase = _variant("Base")
ConvNeXtLarge = _variant("Large")
ConvNeXtXLarge = _variant("XLarge")
preprocess_input = preprocessing(None)

__all__ = [
    "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtSmall", "ConvNeXtTiny", "ConvNeXtXLarge",
    "decode_predictions", "preprocess_input",
]  # fmt: skip

__getattr__ = missing_in(__name__)
