"""``td.keras.applications.efficientnet``: wide bottlenecks with gates, in several sizes
(https://arxiv.org/abs/1905.11946)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    File,
    Wanted,
    application,
    channel_axis,
    correct_pad,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
    prediction,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.applications.mobilenet_v2 import divisible
from treadle.keras.config import image_data_format
from treadle.keras.models import Model
from treadle.names import missing_in

# Of the stages: size of the kernels, blocks, filters, how much wider they are inside, the stride of
# the first block.
_STAGES = [
    (3, 1, 16, 1, 1), (3, 2, 24, 6, 2), (5, 2, 40, 6, 2), (3, 3, 80, 6, 2), (5, 3, 112, 6, 1),
    (5, 4, 192, 6, 2), (3, 1, 320, 6, 1),
]  # fmt: skip
KERNEL = {
    "class_name": "VarianceScaling",
    "config": {"scale": 2.0, "mode": "fan_out", "distribution": "truncated_normal"},
}
DENSE_KERNEL = {
    "class_name": "VarianceScaling",
    "config": {"scale": 1.0 / 3.0, "mode": "fan_out", "distribution": "uniform"},
}


def convolved(x: Any, filters: int, kernel: int, name: str, **settings: Any) -> Any:
    """A convolution without biases."""
    settings = {"padding": "same", **settings}
    return layers.Conv2D(
        filters, kernel, use_bias=False, kernel_initializer=KERNEL, name=name, **settings
    )(x)  # fmt: skip


def active(x: Any, norm: str, activation: str, **settings: Any) -> Any:
    """Normalized, then the swish."""
    return layers.Activation("swish", name=activation)(normalized(x, norm, 3, **settings))


def gated(x: Any, inner: int, name: str) -> Any:
    """The channels, each times what the means of all make of it.

    Args:
        inner: the numbers that the means are squeezed into.
    """
    channels = int(x.shape[channel_axis(3)])
    shape = (channels, 1, 1) if image_data_format() == "channels_first" else (1, 1, channels)
    gates = layers.GlobalAveragePooling2D(name=f"{name}se_squeeze")(x)
    gates = layers.Reshape(shape, name=f"{name}se_reshape")(gates)
    for filters, kind, part in ((inner, "swish", "reduce"), (channels, "sigmoid", "expand")):
        gates = layers.Conv2D(
            filters, 1, padding="same", activation=kind, kernel_initializer=KERNEL,
            name=f"{name}se_{part}",
        )(gates)  # fmt: skip
    return layers.multiply([x, gates], name=f"{name}se_excite")


def residual(x: Any, given: Any, drop: float, name: str) -> Any:
    """The sum, where whole examples of x are dropped in training."""
    if drop:
        x = layers.Dropout(drop, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(x)
    return layers.add([x, given], name=f"{name}add")


def top(x: Any, wanted: Wanted, dropout: float, **settings: Any) -> Any:
    """The classifier with dropout before it."""
    x = layers.GlobalAveragePooling2D(name="avg_pool")(x)
    x = layers.Dropout(dropout, name="top_dropout")(x) if dropout > 0 else x
    return prediction(x, wanted, kernel_initializer=DENSE_KERNEL, **settings)


def _block(
    x: Any, name: str, kernel: int, filters: int, wider: int, stride: int, drop: float
) -> Any:
    given, channels = x, int(x.shape[channel_axis(3)])
    if wider > 1:
        x = convolved(x, channels * wider, 1, f"{name}expand_conv")
        x = active(x, f"{name}expand_bn", f"{name}expand_activation")
    if stride == 2:
        x = layers.ZeroPadding2D(correct_pad(x, kernel), name=f"{name}dwconv_pad")(x)
    x = layers.DepthwiseConv2D(
        kernel, strides=stride, padding="valid" if stride == 2 else "same", use_bias=False,
        depthwise_initializer=KERNEL, name=f"{name}dwconv",
    )(x)  # fmt: skip
    x = active(x, f"{name}bn", f"{name}activation")
    x = gated(x, max(1, int(channels * 0.25)), name)
    x = convolved(x, filters, 1, f"{name}project_conv")
    x = normalized(x, f"{name}project_bn", 3)
    if stride == 1 and channels == filters:
        return residual(x, given, drop, name)
    return x


def _efficientnet(
    wanted: Wanted, width: float, depth: float, size: int, dropout: float
) -> Model:
    """
    Args:
        width, depth: times the filters and blocks of the smallest one.
        size: of its images.
        dropout: before the classifier.
    """
    image = image_input(wanted, image_shape(wanted, size))
    x = layers.Rescaling(1.0 / 255.0)(image)
    x = layers.Normalization(axis=channel_axis(3))(x)
    if wanted.trained:
        # The weights were trained on images over their variances, the layer has deviations.
        x = layers.Rescaling([1.0 / math.sqrt(d) for d in (0.229, 0.224, 0.225)])(x)
    x = layers.ZeroPadding2D(correct_pad(x, 3), name="stem_conv_pad")(x)
    x = convolved(x, divisible(32 * width), 3, "stem_conv", strides=2, padding="valid")
    x = active(x, "stem_bn", "stem_activation")
    counts = [math.ceil(depth * count) for _, count, *_ in _STAGES]
    number, total = 0, sum(counts)
    for stage, (kernel, _, filters, wider, stride) in enumerate(_STAGES):
        for block in range(counts[stage]):
            x = _block(
                x, f"block{stage + 1}{chr(block + 97)}_", kernel, divisible(filters * width),
                wider, 1 if block else stride, 0.2 * number / total,
            )  # fmt: skip
            number += 1
    x = convolved(x, divisible(1280 * width), 1, "top_conv")
    x = active(x, "top_bn", "top_activation")
    x = top(x, wanted, dropout) if wanted.include_top else pooled(x, wanted, named=True)

    def file() -> File:
        end = ".h5" if wanted.include_top else "_notop.h5"
        place = "https://storage.googleapis.com/keras-applications"
        return File(f"{wanted.name}{end}", place)

    return finished(image, x, wanted, file)


def _variant(
    kind: str, width: float, depth: float, size: int, dropout: float
) -> Callable[..., Model]:
    return application(
        f"EfficientNet{kind}", f"efficientnet{kind.lower()}",
        partial(_efficientnet, width=width, depth=depth, size=size, dropout=dropout),
        f"EfficientNet {kind} for images of {size} x {size} in 0 ... 255.",
    )  # fmt: skip


EfficientNetB0 = _variant("B0", 1.0, 1.0, 224, 0.2)
EfficientNetB1 = _variant("B1", 1.0, 1.1, 240, 0.2)
EfficientNetB2 = _variant("B2", 1.1, 1.2, 260, 0.3)
EfficientNetB3 = _variant("B3", 1.2, 1.4, 300, 0.3)
EfficientNetB4 = _variant("B4", 1.4, 1.8, 380, 0.4)
EfficientNetB5 = _variant("B5", 1.6, 2.2, 456, 0.4)
EfficientNetB6 = _variant("B6", 1.8, 2.6, 528, 0.5)
EfficientNetB7 = _variant("B7", 2.0, 3.1, 600, 0.5)
preprocess_input = preprocessing(None)

__all__ = [
    "EfficientNetB0", "EfficientNetB1", "EfficientNetB2", "EfficientNetB3", "EfficientNetB4",
    "EfficientNetB5", "EfficientNetB6", "EfficientNetB7", "decode_predictions", "preprocess_input",
]  # fmt: skip

__getattr__ = missing_in(__name__)
