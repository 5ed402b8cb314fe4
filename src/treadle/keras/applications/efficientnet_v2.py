"""``td.keras.applications.efficientnet_v2``: bottlenecks whose first stages have one
convolution instead of two (https://arxiv.org/abs/2104.00298)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    COMMON,
    File,
    Wanted,
    application,
    channel_axis,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
)
from treadle.keras.applications.efficientnet import (
    KERNEL,
    active,
    convolved,
    gated,
    residual,
    top,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.initializers import Constant
from treadle.keras.models import Model
from treadle.names import missing_in

# Of the stages: blocks, filters, how much wider they are inside, the stride of the first block, and
# whether they have one convolution instead of two, and no gates.
_STAGES = {
    "s": [
        (2, 24, 1, 1, True), (4, 48, 4, 2, True), (4, 64, 4, 2, True), (6, 128, 4, 2, False),
        (9, 160, 6, 1, False), (15, 256, 6, 2, False),
    ],
    "m": [
        (3, 24, 1, 1, True), (5, 48, 4, 2, True), (5, 80, 4, 2, True), (7, 160, 4, 2, False),
        (14, 176, 6, 1, False), (18, 304, 6, 2, False), (5, 512, 6, 1, False),
    ],
    "l": [
        (4, 32, 1, 1, True), (7, 64, 4, 2, True), (7, 96, 4, 2, True), (10, 192, 4, 2, False),
        (19, 224, 6, 1, False), (25, 384, 6, 2, False), (7, 640, 6, 1, False),
    ],
    "b": [
        (1, 16, 1, 1, True), (2, 32, 4, 2, True), (2, 48, 4, 2, True), (3, 96, 4, 2, False),
        (5, 112, 6, 1, False), (8, 192, 6, 2, False),
    ],
}  # fmt: skip
_STEMS = {"s": 24, "m": 24, "l": 32, "b": 32}
_MOMENTUM = {"momentum": 0.9}


def _rounded(filters: float) -> int:
    """The next multiple of 8."""
    return max(8, int(filters + 4) // 8 * 8)


def _block(
    x: Any, name: str, filters: int, wider: int, stride: int, fused: bool, drop: float
) -> Any:
    given, channels = x, int(x.shape[channel_axis(3)])
    if wider > 1:
        kernel, step = (3, stride) if fused else (1, 1)
        x = convolved(x, channels * wider, kernel, f"{name}expand_conv", strides=step)
        x = active(x, f"{name}expand_bn", f"{name}expand_activation", **_MOMENTUM)
    if not fused:
        x = layers.DepthwiseConv2D(
            3, strides=stride, padding="same", use_bias=False, depthwise_initializer=KERNEL,
            name=f"{name}dwconv2",
        )(x)  # fmt: skip
        x = active(x, f"{name}bn", f"{name}activation", **_MOMENTUM)
        x = gated(x, max(1, int(channels * 0.25)), name)
    alone = fused and wider == 1
    kernel, step = (3, stride) if alone else (1, 1)
    x = convolved(x, filters, kernel, f"{name}project_conv", strides=step)
    x = normalized(x, f"{name}project_bn", 3, **_MOMENTUM)
    if alone:
        x = layers.Activation("swish", name=f"{name}project_activation")(x)
    if stride == 1 and channels == filters:
        return residual(x, given, drop, name)
    return x


def _prepared(x: Any, kind: str, channels: int) -> Any:
    if kind.startswith("b") and channels == 3:
        return layers.Normalization(
            mean=[0.485, 0.456, 0.406], variance=[0.229**2, 0.224**2, 0.225**2],
            axis=channel_axis(3),
        )(layers.Rescaling(scale=1.0 / 255)(x))  # fmt: skip
    return layers.Rescaling(scale=1.0 / 128.0, offset=-1)(x)


def _efficientnet(
    wanted: Wanted, include_preprocessing: bool, kind: str, width: float, depth: float, size: int
) -> Model:
    """
    Args:
        width, depth: times the filters and blocks of the table.
        size: of its images.
    """
    shape = image_shape(wanted, size)
    image = x = image_input(wanted, shape)
    if include_preprocessing:
        x = _prepared(x, kind, shape[channel_axis(3) - 1])
    x = convolved(x, _rounded(_STEMS[kind[0]] * width), 3, "stem_conv", strides=2)
    x = active(x, "stem_bn", "stem_activation", **_MOMENTUM)
    stages = _STAGES[kind[0]]
    number, total = 0, sum(count for count, *_ in stages)
    for stage, (count, filters, wider, stride, fused) in enumerate(stages):
        for block in range(math.ceil(depth * count)):
            x = _block(
                x, f"block{stage + 1}{chr(block + 97)}_", _rounded(filters * width), wider,
                1 if block else stride, fused, 0.2 * number / total,
            )  # fmt: skip
            number += 1
    x = convolved(x, _rounded(1280 * width), 1, "top_conv")
    x = active(x, "top_bn", "top_activation", **_MOMENTUM)
    if wanted.include_top:
        x = top(x, wanted, 0.2, bias_initializer=Constant(0.0))
    else:
        x = pooled(x, wanted, named=True)

    def file() -> File:
        end = ".h5" if wanted.include_top else "_notop.h5"
        return File(f"{wanted.name}{end}", "efficientnet_v2")

    return finished(image, x, wanted, file)


def _variant(
    kind: str, size: int, width: float = 1.0, depth: float = 1.0
) -> Callable[..., Model]:
    return application(
        f"EfficientNetV2{kind}", f"efficientnetv2-{kind.lower()}",
        partial(_efficientnet, kind=kind.lower(), width=width, depth=depth, size=size),
        f"EfficientNetV2 {kind} for images of {size} x {size} in 0 ... 255.",
        {**COMMON, "include_preprocessing": True},
    )  # fmt: skip


EfficientNetV2B0 = _variant("B0", 224)
EfficientNetV2B1 = _variant("B1", 240, 1.0, 1.1)
EfficientNetV2B2 = _variant("B2", 260, 1.1, 1.2)
EfficientNetV2B3 = _variant("B3", 300, 1.2, 1.4)
EfficientNetV2S = _variant("S", 384)
EfficientNetV2M = _variant("M", 480)
EfficientNetV2L = _variant("L", 480)
preprocess_input = preprocessing(None)

__all__ = [
    "EfficientNetV2B0", "EfficientNetV2B1", "EfficientNetV2B2", "EfficientNetV2B3",
    "EfficientNetV2L", "EfficientNetV2M", "EfficientNetV2S", "decode_predictions",
    "preprocess_input",
]  # fmt: skip

__getattr__ = missing_in(__name__)
