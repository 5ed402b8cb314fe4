"""``td.keras.applications.densenet``: blocks whose layers see all before them
(https://arxiv.org/abs/1608.06993)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    Wanted,
    application,
    channel_axis,
    classifier,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
    usual_file,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.config import image_data_format
from treadle.keras.models import Model
from treadle.names import missing_in

_GROWTH = 32


def _active(x: Any, norm: str, relu: str) -> Any:
    x = normalized(x, norm, 3, epsilon=1.001e-5)
    return layers.Activation("relu", name=relu)(x)


def _grown(x: Any, name: str) -> Any:
    """The features, and 32 new ones beside them."""
    y = _active(x, f"{name}_0_bn", f"{name}_0_relu")
    y = layers.Conv2D(4 * _GROWTH, 1, use_bias=False, name=f"{name}_1_conv")(y)
    y = _active(y, f"{name}_1_bn", f"{name}_1_relu")
    y = layers.Conv2D(_GROWTH, 3, padding="same", use_bias=False, name=f"{name}_2_conv")(y)
    return layers.Concatenate(axis=channel_axis(3), name=f"{name}_concat")([x, y])


def _halved(x: Any, name: str) -> Any:
    """Half of the features on a quarter of the positions."""
    x = _active(x, f"{name}_bn", f"{name}_relu")
    half = int(x.shape[channel_axis(3)]) // 2
    x = layers.Conv2D(half, 1, use_bias=False, name=f"{name}_conv")(x)
    return layers.AveragePooling2D(2, strides=2, name=f"{name}_pool")(x)


def _densenet(wanted: Wanted, stem: str, counts: tuple[int, ...]) -> Model:
    if image_data_format() == "channels_first":
        raise ValueError(
            "DenseNet does not support the `channels_first` image data format: call "
            "keras.config.set_image_data_format('channels_last')"
        )
    image = image_input(wanted, image_shape(wanted, 224))
    x = layers.ZeroPadding2D(((3, 3), (3, 3)))(image)
    x = layers.Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(x)
    x = layers.ZeroPadding2D(((1, 1), (1, 1)))(_active(x, "conv1_bn", "conv1_relu"))
    x = layers.MaxPooling2D(3, strides=2, name="pool1")(x)
    for stage, count in enumerate(counts, 2):
        for block in range(1, count + 1):
            x = _grown(x, f"conv{stage}_block{block}")
        if stage < len(counts) + 1:
            x = _halved(x, f"pool{stage}")
    x = _active(x, "bn", "relu")
    x = classifier(x, wanted) if wanted.include_top else pooled(x, wanted, named=True)
    return finished(image, x, wanted, partial(usual_file, stem, "densenet", wanted.include_top))


def _variant(depth: int, *counts: int) -> Callable[..., Model]:
    stem = f"densenet{depth}"
    return application(
        f"DenseNet{depth}", stem, partial(_densenet, stem=stem, counts=counts),
        f"DenseNet with {depth} layers of weights.",
    )  # fmt: skip


DenseNet121 = _variant(121, 6, 12, 24, 16)
DenseNet169 = _variant(169, 6, 12, 32, 32)
DenseNet201 = _variant(201, 6, 12, 48, 32)
preprocess_input = preprocessing("torch")

__all__ = ["DenseNet121", "DenseNet169", "DenseNet201", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
