"""``td.keras.applications.mobilenet_v3``: wide bottlenecks with gates of channels
(https://arxiv.org/abs/1905.02244)."""

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
    correct_pad,
    extents,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.applications.mobilenet import warn_of_size
from treadle.keras.applications.mobilenet_v2 import divisible
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.models import Model
from treadle.names import missing_in

# Of a block: how much wider it is inside, filters, whether its kernel is 5 x 5, its stride, whether
# it has gates, and whether its activation is the hard swish. The small kind of network ("minimal")
# has kernels of 3 x 3, no gates, and rectifiers only.
_SMALL = [
    (1, 16, False, 2, True, False), (72 / 16, 24, False, 2, False, False),
    (88 / 24, 24, False, 1, False, False), (4, 40, True, 2, True, True),
    (6, 40, True, 1, True, True), (6, 40, True, 1, True, True), (3, 48, True, 1, True, True),
    (3, 48, True, 1, True, True), (6, 96, True, 2, True, True), (6, 96, True, 1, True, True),
    (6, 96, True, 1, True, True),
]  # fmt: skip
_LARGE = [
    (1, 16, False, 1, False, False), (4, 24, False, 2, False, False),
    (3, 24, False, 1, False, False), (3, 40, True, 2, True, False), (3, 40, True, 1, True, False),
    (3, 40, True, 1, True, False), (6, 80, False, 2, False, True),
    (2.5, 80, False, 1, False, True), (2.3, 80, False, 1, False, True),
    (2.3, 80, False, 1, False, True), (6, 112, False, 1, True, True),
    (6, 112, False, 1, True, True), (6, 160, True, 2, True, True), (6, 160, True, 1, True, True),
    (6, 160, True, 1, True, True),
]  # fmt: skip
_SETTINGS: dict[str, Any] = {"epsilon": 1e-3, "momentum": 0.999}


def _active(x: Any, swish: bool) -> Any:
    return (layers.Activation("hard_swish") if swish else layers.ReLU())(x)


def _convolved(x: Any, filters: int, name: str, norm: str = "_bn") -> Any:
    """A convolution of each position by itself, normalized."""
    x = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=name)(x)
    return normalized(x, f"{name}{norm}", **_SETTINGS)


def _gated(x: Any, name: str) -> Any:
    """The channels, each times what the means of all make of it."""
    channels = int(x.shape[channel_axis()])
    gates = layers.GlobalAveragePooling2D(keepdims=True, name=f"{name}_avg_pool")(x)
    inner = divisible(channels * 0.25)
    gates = layers.Conv2D(inner, 1, padding="same", name=f"{name}_conv")(gates)
    gates = layers.ReLU(name=f"{name}_relu")(gates)
    gates = layers.Conv2D(channels, 1, padding="same", name=f"{name}_conv_1")(gates)
    gates = layers.ReLU(6.0)(gates + 3.0) * (1.0 / 6.0)
    return layers.Multiply(name=f"{name}_mul")([x, gates])


def _block(
    x: Any, number: int, wider: float, filters: int, kernel: int, stride: int, gates: bool,
    swish: bool,
) -> Any:  # fmt: skip
    given, channels = x, int(x.shape[channel_axis()])
    name = f"expanded_conv_{number}_" if number else "expanded_conv_"
    if number:
        x = _active(_convolved(x, divisible(channels * wider), f"{name}expand"), swish)
    if stride == 2:
        x = layers.ZeroPadding2D(correct_pad(x, kernel), name=f"{name}depthwise_pad")(x)
    x = layers.DepthwiseConv2D(
        kernel, strides=stride, padding="same" if stride == 1 else "valid", use_bias=False,
        name=f"{name}depthwise",
    )(x)  # fmt: skip
    x = _active(normalized(x, f"{name}depthwise_bn", **_SETTINGS), swish)
    if gates:
        x = _gated(x, f"{name}squeeze_excite")
    x = _convolved(x, filters, f"{name}project")
    if stride == 1 and channels == filters:
        return layers.Add(name=f"{name}add")([given, x])
    return x


def _shape(wanted: Wanted) -> tuple[Any, ...]:
    """As `image_shape`, but the model takes images of any size with its classifier, too."""
    if wanted.input_shape is None and isinstance(wanted.input_tensor, KerasTensor):
        wanted = wanted._replace(input_shape=tuple(wanted.input_tensor.shape.as_list()[1:]))
    if wanted.input_shape is not None and isinstance(wanted.input_tensor, KerasTensor):
        given = wanted.input_tensor.shape.as_list()
        if tuple(extents(given)) != tuple(extents(wanted.input_shape)):
            raise ValueError(
                "`input_shape` and the shape of `input_tensor` differ: "
                f"{wanted.input_shape} and {given}"
            )
    return image_shape(wanted._replace(include_top=False), 224)


def _mobilenet(
    wanted: Wanted, alpha: float, minimalistic: bool, dropout_rate: float,
    include_preprocessing: bool, size: str, blocks: list[tuple[Any, ...]], last: int,
) -> Model:  # fmt: skip
    shape = _shape(wanted)
    if wanted.trained:
        if alpha != 1.0 and (minimalistic or alpha != 0.75):
            raise ValueError(
                "If imagenet weights are being loaded, alpha can be one of `0.75`, `1.0` for non "
                "minimalistic or `1.0` for minimalistic only."
            )
        warn_of_size((224,), shape)
    swish = not minimalistic
    image = x = image_input(wanted, shape)
    if include_preprocessing:
        x = layers.Rescaling(scale=1.0 / 127.5, offset=-1.0)(x)
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False, name="conv")(x)
    x = _active(normalized(x, "conv_bn", **_SETTINGS), swish)
    for number, (wider, filters, large, stride, gates, hard) in enumerate(blocks):
        x = _block(
            x, number, wider, divisible(filters * alpha), 5 if large and swish else 3, stride,
            gates and swish, hard and swish,
        )  # fmt: skip
    x = _convolved(x, divisible(int(x.shape[channel_axis()]) * 6), "conv_1")
    x = _active(x, swish)
    if wanted.include_top:
        x = layers.GlobalAveragePooling2D(keepdims=True)(x)
        last = divisible(last * alpha) if alpha > 1.0 else last
        x = _active(layers.Conv2D(last, 1, padding="same", name="conv_2")(x), swish)
        x = layers.Dropout(dropout_rate)(x) if dropout_rate > 0 else x
        x = layers.Flatten()(layers.Conv2D(wanted.classes, 1, padding="same", name="logits")(x))
        x = layers.Activation(wanted.classifier_activation, name="predictions")(x)
    else:
        x = pooled(x, wanted, named=True)

    def file() -> File:
        kind = f"{size}{'_minimalistic' if minimalistic else ''}_224_{alpha}_float"
        end = "" if wanted.include_top else "_no_top_v2"
        return File(f"weights_mobilenet_v3_{kind}{end}.h5", "mobilenet_v3")

    return finished(image, x, wanted, file)


def _variant(size: str, blocks: list[Any], last: int) -> Callable[..., Model]:
    return application(
        f"MobileNetV3{size}", f"MobileNetV3{size}",
        partial(_mobilenet, size=size.lower(), blocks=blocks, last=last),
        f"The {size.lower()} kind of the third version of MobileNet; ``alpha`` is the part of the "
        "filters.",
        {
            "input_shape": None, "alpha": 1.0, "minimalistic": False, "include_top": True,
            "weights": "imagenet", "input_tensor": None, "classes": 1000, "pooling": None,
            "dropout_rate": 0.2, "classifier_activation": "softmax",
            "include_preprocessing": True,
        },
    )  # fmt: skip


MobileNetV3Small = _variant("Small", _SMALL, 1024)
MobileNetV3Large = _variant("Large", _LARGE, 1280)
preprocess_input = preprocessing(None)

__all__ = ["decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
