"""``td.keras.applications.resnet``: bottlenecks with shortcuts around them
(https://arxiv.org/abs/1512.03385), and with activations before convolutions in the second version
(https://arxiv.org/abs/1603.05027)."""

from __future__ import annotations

from collections.abc import Callable
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


def _active(x: Any, name: str, activation: str = "relu") -> Any:
    """Normalized and rectified."""
    x = normalized(x, f"{name}_bn", 3, epsilon=1.001e-5)
    return layers.Activation("relu", name=f"{name}_{activation}")(x)


def _padded(x: Any, size: int, name: str) -> Any:
    return layers.ZeroPadding2D(((size, size), (size, size)), name=name)(x)


def _bottleneck(x: Any, filters: int, stride: int, name: str, widen: bool) -> Any:
    shortcut = x
    if widen:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(x)
        shortcut = normalized(shortcut, f"{name}_0_bn", 3, epsilon=1.001e-5)
    x = layers.Conv2D(filters, 1, strides=stride, name=f"{name}_1_conv")(x)
    x = _active(x, f"{name}_1")
    x = layers.Conv2D(filters, 3, padding="same", name=f"{name}_2_conv")(x)
    x = _active(x, f"{name}_2")
    x = layers.Conv2D(4 * filters, 1, name=f"{name}_3_conv")(x)
    x = normalized(x, f"{name}_3_bn", 3, epsilon=1.001e-5)
    x = layers.Add(name=f"{name}_add")([shortcut, x])
    return layers.Activation("relu", name=f"{name}_out")(x)


def _bottleneck_v2(x: Any, filters: int, stride: int, name: str, widen: bool) -> Any:
    active = _active(x, f"{name}_preact")
    if widen:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(active)
    else:
        shortcut = layers.MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
    y = layers.Conv2D(filters, 1, strides=1, use_bias=False, name=f"{name}_1_conv")(active)
    y = _padded(_active(y, f"{name}_1"), 1, f"{name}_2_pad")
    y = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")(y)
    y = layers.Conv2D(4 * filters, 1, name=f"{name}_3_conv")(_active(y, f"{name}_2"))
    return layers.Add(name=f"{name}_out")([shortcut, y])


def _resnet(wanted: Wanted, stem: str, counts: tuple[int, ...], before: bool) -> Model:
    """
    Args:
        stem: of the file of weights.
        counts: of bottlenecks in the four stages.
        before: activations come before convolutions.
    """
    image = image_input(wanted, image_shape(wanted, 224))
    x = layers.Conv2D(64, 7, strides=2, name="conv1_conv")(_padded(image, 3, "conv1_pad"))
    x = x if before else _active(x, "conv1")
    x = layers.MaxPooling2D(3, strides=2, name="pool1_pool")(_padded(x, 1, "pool1_pad"))
    bottleneck = _bottleneck_v2 if before else _bottleneck
    for stage, count in enumerate(counts):
        # The first version halves the images where a stage begins, the second where it ends.
        halving = count - 1 if before else 0
        halved = stage < 3 if before else stage > 0
        for block in range(count):
            x = bottleneck(
                x, 64 * 2**stage, 2 if halved and block == halving else 1,
                f"conv{stage + 2}_block{block + 1}", widen=block == 0,
            )  # fmt: skip
    x = _active(x, "post") if before else x
    x = classifier(x, wanted) if wanted.include_top else pooled(x, wanted, named=True)
    return finished(image, x, wanted, partial(usual_file, stem, "resnet", wanted.include_top))


def _variant(depth: int, *counts: int, before: bool = False) -> Callable[..., Model]:
    version = "V2" if before else ""
    stem = f"resnet{depth}{version.lower()}"
    return application(
        f"ResNet{depth}{version}", stem, partial(_resnet, stem=stem, counts=counts, before=before),
        f"ResNet with {depth} layers of weights{', the second version' if before else ''}.",
    )  # fmt: skip


ResNet50 = _variant(50, 3, 4, 6, 3)
ResNet101 = _variant(101, 3, 4, 23, 3)
ResNet152 = _variant(152, 3, 8, 36, 3)
ResNet50V2 = _variant(50, 3, 4, 6, 3, before=True)
ResNet101V2 = _variant(101, 3, 4, 23, 3, before=True)
ResNet152V2 = _variant(152, 3, 8, 36, 3, before=True)
preprocess_input = preprocessing("caffe")

__all__ = ["ResNet50", "ResNet101", "ResNet152", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
