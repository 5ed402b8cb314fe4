"""``td.keras.applications.nasnet``: cells that a search found (https://arxiv.org/abs/1707.07012)."""

from __future__ import annotations

from functools import partial
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    File,
    Wanted,
    application,
    channel_axis,
    classifier,
    correct_pad,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.config import image_data_format
from treadle.keras.models import Model
from treadle.names import missing_in

_PLACES = {
    "nasnet_mobile": ("NASNet-mobile", 224), "nasnet_large": ("NASNet-large", 331),
}  # fmt: skip


def _normalized(x: Any, name: str) -> Any:
    return normalized(x, name, momentum=0.9997, epsilon=1e-3)


def _convolved(x: Any, filters: int, name: str) -> Any:
    """A convolution of each position by itself."""
    return layers.Conv2D(
        filters, 1, padding="same", name=name, use_bias=False, kernel_initializer="he_normal"
    )(x)  # fmt: skip


def _separable(x: Any, filters: int, size: int, name: str, stride: int = 1) -> Any:
    """Two separable convolutions, each with a rectifier before it and a normalization after it."""
    x, padding = layers.Activation("relu")(x), "same"
    if stride == 2:
        x = layers.ZeroPadding2D(correct_pad(x, size), name=f"separable_conv_1_pad_{name}")(x)
        padding = "valid"
    for number in (1, 2):
        x = layers.SeparableConv2D(
            filters, size, strides=stride, name=f"separable_conv_{number}_{name}",
            padding=padding, use_bias=False,
        )(x)  # fmt: skip
        x = _normalized(x, f"separable_conv_{number}_bn_{name}")
        if number == 1:
            x, stride, padding = layers.Activation("relu")(x), 1, "same"
    return x


def _every_other(x: Any, name: str) -> Any:
    return layers.AveragePooling2D(1, strides=2, padding="valid", name=name)(x)


def _adjusted(before: Any, x: Any, filters: int, name: str) -> Any:
    """What came before the last cell, with as many positions as x and so many channels."""
    if before is None:
        return x
    if before.shape[-2] != x.shape[-2]:
        before = layers.Activation("relu", name=f"adjust_relu_1_{name}")(before)
        even = _every_other(before, f"adjust_avg_pool_1_{name}")
        even = _convolved(even, filters // 2, f"adjust_conv_1_{name}")
        odd = layers.ZeroPadding2D(((0, 1), (0, 1)))(before)
        odd = layers.Cropping2D(((1, 0), (1, 0)))(odd)
        odd = _every_other(odd, f"adjust_avg_pool_2_{name}")
        odd = _convolved(odd, filters // 2, f"adjust_conv_2_{name}")
        joined = layers.concatenate([even, odd], axis=channel_axis())
        return _normalized(joined, f"adjust_bn_{name}")
    if before.shape[channel_axis()] != filters:
        before = layers.Activation("relu")(before)
        before = _convolved(before, filters, f"adjust_conv_projection_{name}")
        return _normalized(before, f"adjust_bn_{name}")
    return before


def _narrowed(x: Any, filters: int, kind: str, name: str) -> Any:
    x = _convolved(layers.Activation("relu")(x), filters, f"{kind}_conv_1_{name}")
    return _normalized(x, f"{kind}_bn_1_{name}")


def _mean(x: Any, name: str, stride: int = 1) -> Any:
    padding = "same" if stride == 1 else "valid"
    return layers.AveragePooling2D(3, strides=stride, padding=padding, name=name)(x)


def _normal_cell(x: Any, before: Any, filters: int, name: str) -> tuple[Any, Any]:
    p = _adjusted(before, x, filters, name)
    h = _narrowed(x, filters, "normal", name)

    def convolved(given: Any, size: int, part: str) -> Any:
        return _separable(given, filters, size, f"normal_{part}_{name}")

    def added(number: int, *parts: Any) -> Any:
        return layers.add(list(parts), name=f"normal_add_{number}_{name}")

    sums = [
        p,
        added(1, convolved(h, 5, "left1"), convolved(p, 3, "right1")),
        added(2, convolved(p, 5, "left2"), convolved(p, 3, "right2")),
        added(3, _mean(h, f"normal_left3_{name}"), p),
        added(4, _mean(p, f"normal_left4_{name}"), _mean(p, f"normal_right4_{name}")),
        added(5, convolved(h, 3, "left5"), h),
    ]
    return layers.concatenate(sums, axis=channel_axis(), name=f"normal_concat_{name}"), x


def _reduction_cell(x: Any, before: Any, filters: int, name: str) -> tuple[Any, Any]:
    p = _adjusted(before, x, filters, name)
    h = _narrowed(x, filters, "reduction", name)
    padded = layers.ZeroPadding2D(correct_pad(h, 3), name=f"reduction_pad_1_{name}")(h)

    def convolved(given: Any, size: int, part: str, stride: int = 2) -> Any:
        return _separable(given, filters, size, f"reduction_{part}_{name}", stride)

    def largest(part: str) -> Any:
        called = f"reduction_{part}_{name}"
        return layers.MaxPooling2D(3, strides=2, padding="valid", name=called)(padded)

    def added(number: str, *parts: Any) -> Any:
        return layers.add(list(parts), name=f"reduction_add{number}_{name}")

    first = added("_1", convolved(h, 5, "left1"), convolved(p, 7, "right1"))
    second = added("_2", largest("left2"), convolved(p, 7, "right2"))
    third = added("3", _mean(padded, f"reduction_left3_{name}", 2), convolved(p, 5, "right3"))
    fourth = layers.add([second, _mean(first, f"reduction_left4_{name}")])
    fifth = added("4", convolved(first, 3, "left4", 1), largest("right5"))
    sums = [second, third, fourth, fifth]
    return layers.concatenate(sums, axis=channel_axis(), name=f"reduction_concat_{name}"), x


def _nasnet(wanted: Wanted, kind: str, filters: int, blocks: int, stem: int, skip: bool) -> Model:
    """
    Args:
        filters: of the last stage, in all of its branches.
        blocks: normal cells in each of the three stages.
        stem: filters of the first convolution.
        skip: cells after a reduction see what came before it.
    """
    if image_data_format() == "channels_first":
        raise ValueError(
            "NASNet does not support the `channels_first` image data format: call "
            "keras.config.set_image_data_format('channels_last')"
        )
    if wanted.trained and None in tuple(wanted.input_shape or ()):
        raise ValueError(
            "When specifying the input shape of a NASNet and loading `ImageNet` weights, the "
            "input_shape argument must be static (no None entries). Got: "
            f"`input_shape={wanted.input_shape}`."
        )
    place, size = _PLACES[kind]
    if not wanted.include_top and wanted.input_shape is None and size == 224:
        wanted = wanted._replace(input_shape=(224, 224, 3))
    image = image_input(wanted, image_shape(wanted, size))
    x = layers.Conv2D(
        stem, 3, strides=2, padding="valid", use_bias=False, name="stem_conv1",
        kernel_initializer="he_normal",
    )(image)  # fmt: skip
    x, before = _normalized(x, "stem_bn1"), None
    width = filters // 24
    x, before = _reduction_cell(x, before, width // 4, "stem_1")
    x, before = _reduction_cell(x, before, width // 2, "stem_2")
    for stage in range(3):
        if stage:
            name = f"reduce_{stage * blocks}"
            x, last = _reduction_cell(x, before, width * 2**stage, name)
            before = before if skip else last
        for block in range(blocks):
            name = str(stage * blocks + block + (stage > 0))
            x, before = _normal_cell(x, before, width * 2**stage, name)
    x = layers.Activation("relu")(x)
    x = classifier(x, wanted, None) if wanted.include_top else pooled(x, wanted)

    def file() -> File:
        top = wanted.include_top
        origin = f"{place}.h5" if top else f"{place}-no-top.h5"
        return File(f"{kind}.h5" if top else f"{kind}_no_top.h5", "nasnet", origin)

    return finished(image, x, wanted, file)


_PARAMETERS = {
    "input_shape": None, "include_top": True, "weights": "imagenet", "input_tensor": None,
    "pooling": None, "classes": 1000, "classifier_activation": "softmax",
}  # fmt: skip
NASNetMobile = application(
    "NASNetMobile", "nasnet_mobile",
    partial(_nasnet, kind="nasnet_mobile", filters=1056, blocks=4, stem=32, skip=False),
    "The small NASNet, for images of 224 x 224.", _PARAMETERS,
)  # fmt: skip
NASNetLarge = application(
    "NASNetLarge", "nasnet_large",
    partial(_nasnet, kind="nasnet_large", filters=4032, blocks=6, stem=96, skip=True),
    "The large NASNet, for images of 331 x 331.", _PARAMETERS,
)  # fmt: skip
preprocess_input = preprocessing("tf")

__all__ = ["NASNetLarge", "NASNetMobile", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
