"""``td.keras.applications.xception``: separable convolutions with shortcuts
(https://arxiv.org/abs/1610.02357)."""

from __future__ import annotations

from functools import partial
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    Wanted,
    application,
    classifier,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
    usual_file,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.models import Model
from treadle.names import missing_in


def _relu(x: Any, name: str) -> Any:
    return layers.Activation("relu", name=f"{name}_act")(x)


def _separable(x: Any, filters: int, name: str) -> Any:
    x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False, name=name)(x)
    return normalized(x, f"{name}_bn")


def _halving(x: Any, block: int, first: int, second: int) -> Any:
    """Two separable convolutions and a pool, beside a convolution that takes every other
    position."""
    name = f"block{block}"
    shortcut = layers.Conv2D(second, 1, strides=2, padding="same", use_bias=False)(x)
    shortcut = normalized(shortcut, None)
    if block > 2:  # what comes before the second block is rectified
        x = _relu(x, f"{name}_sepconv1")
    x = _relu(_separable(x, first, f"{name}_sepconv1"), f"{name}_sepconv2")
    x = _separable(x, second, f"{name}_sepconv2")
    x = layers.MaxPooling2D(3, strides=2, padding="same", name=f"{name}_pool")(x)
    return layers.add([x, shortcut])


def _middle(x: Any, block: int) -> Any:
    y = x
    for number in (1, 2, 3):
        name = f"block{block}_sepconv{number}"
        y = _separable(_relu(y, name), 728, name)
    return layers.add([y, x])


def _xception(wanted: Wanted) -> Model:
    image = x = image_input(wanted, image_shape(wanted, 299, smallest=71))
    for number, filters, stride in ((1, 32, 2), (2, 64, 1)):
        name = f"block1_conv{number}"
        x = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=name)(x)
        x = _relu(normalized(x, f"{name}_bn"), name)
    for block, filters in ((2, 128), (3, 256), (4, 728)):
        x = _halving(x, block, filters, filters)
    for block in range(5, 13):
        x = _middle(x, block)
    x = _halving(x, 13, 728, 1024)
    for number, filters in ((1, 1536), (2, 2048)):
        name = f"block14_sepconv{number}"
        x = _relu(_separable(x, filters, name), name)
    x = classifier(x, wanted) if wanted.include_top else pooled(x, wanted)
    file = partial(usual_file, "xception", "xception", wanted.include_top)
    return finished(image, x, wanted, file)


Xception = application("Xception", "xception", _xception, "Xception, of separable convolutions.")
preprocess_input = preprocessing("tf")

__all__ = ["Xception", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
