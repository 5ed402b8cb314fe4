"""VGG: blocks of 3 x 3 convolutions (https://arxiv.org/abs/1409.1556)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    Wanted,
    application,
    finished,
    image_input,
    image_shape,
    pooled,
    prediction,
    usual_file,
)
from treadle.keras.applications.imagenet_utils import preprocessing
from treadle.keras.models import Model

_FILTERS = (64, 128, 256, 512, 512)


def _vgg(wanted: Wanted, depth: int, counts: tuple[int, ...]) -> Model:
    image = x = image_input(wanted, image_shape(wanted, 224))
    for block, (filters, count) in enumerate(zip(_FILTERS, counts, strict=True), 1):
        for number in range(1, count + 1):
            name = f"block{block}_conv{number}"
            x = layers.Conv2D(filters, 3, activation="relu", padding="same", name=name)(x)
        x = layers.MaxPooling2D(2, strides=2, name=f"block{block}_pool")(x)
    x = _top(x, wanted) if wanted.include_top else pooled(x, wanted)
    file = partial(usual_file, f"vgg{depth}", f"vgg{depth}", wanted.include_top)
    return finished(image, x, wanted, file)


def _top(x: Any, wanted: Wanted) -> Any:
    x = layers.Flatten(name="flatten")(x)
    for name in ("fc1", "fc2"):
        x = layers.Dense(4096, activation="relu", name=name)(x)
    return prediction(x, wanted)


def _variant(depth: int, *counts: int) -> Callable[..., Model]:
    return application(
        f"VGG{depth}", f"vgg{depth}", partial(_vgg, depth=depth, counts=counts),
        f"VGG with {depth} layers of weights.",
    )  # fmt: skip


VGG16 = _variant(16, 2, 2, 3, 3, 3)
VGG19 = _variant(19, 2, 2, 4, 4, 4)
preprocess_input = preprocessing("caffe")
