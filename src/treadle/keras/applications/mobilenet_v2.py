"""``td.keras.applications.mobilenet_v2``: bottlenecks that are wide inside
(https://arxiv.org/abs/1801.04381)."""

from __future__ import annotations

from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    File,
    Wanted,
    application,
    channel_axis,
    classifier,
    correct_pad,
    extents,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.applications.mobilenet import trained_size, warn_of_size
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.models import Model
from treadle.names import missing_in

# Of the stages: filters, blocks, and the stride of the first block.
_STAGES = [(16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)]
_SIZES = (96, 128, 160, 192, 224)
_ALPHAS = (0.35, 0.5, 0.75, 1.0, 1.3, 1.4)
_SETTINGS: dict[str, Any] = {"epsilon": 1e-3, "momentum": 0.999}


def divisible(value: float, divisor: int = 8) -> int:
    """The multiple of the divisor that is near, and not less than nine tenths."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def _block(x: Any, number: int, filters: int, stride: int) -> Any:
    given, channels = x, int(x.shape[channel_axis()])
    name = f"block_{number}_" if number else "expanded_conv_"
    if number:
        x = layers.Conv2D(
            6 * channels, 1, padding="same", use_bias=False, name=f"{name}expand"
        )(x)  # fmt: skip
        x = normalized(x, f"{name}expand_BN", **_SETTINGS)
        x = layers.ReLU(6.0, name=f"{name}expand_relu")(x)
    if stride == 2:
        x = layers.ZeroPadding2D(correct_pad(x, 3), name=f"{name}pad")(x)
    x = layers.DepthwiseConv2D(
        3, strides=stride, use_bias=False, padding="same" if stride == 1 else "valid",
        name=f"{name}depthwise",
    )(x)  # fmt: skip
    x = normalized(x, f"{name}depthwise_BN", **_SETTINGS)
    x = layers.ReLU(6.0, name=f"{name}depthwise_relu")(x)
    x = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=f"{name}project")(x)
    x = normalized(x, f"{name}project_BN", **_SETTINGS)
    if channels == filters and stride == 1:
        return layers.Add(name=f"{name}add")([given, x])
    return x


def _checked_shape(wanted: Wanted) -> tuple[Any, ...]:
    given = wanted.input_shape
    if isinstance(wanted.input_tensor, KerasTensor):
        shape = wanted.input_tensor.shape.as_list()
        if given is not None and tuple(extents(shape)) != tuple(extents(given)):
            raise ValueError(
                f"`input_shape` and the shape of `input_tensor` differ: {given} and {shape}"
            )
        given = shape if given is None else given
    return image_shape(wanted, trained_size(_SIZES, given))


def _mobilenet(wanted: Wanted, alpha: float) -> Model:
    shape = _checked_shape(wanted)
    if wanted.trained:
        if alpha not in _ALPHAS:
            raise ValueError(
                f"If imagenet weights are being loaded, alpha must be one of {list(_ALPHAS)}; "
                f"Received `alpha={alpha}`"
            )
        warn_of_size(_SIZES, shape)
    image = image_input(wanted, shape)
    x = layers.Conv2D(
        divisible(32 * alpha), 3, strides=2, padding="same", use_bias=False, name="Conv1"
    )(image)  # fmt: skip
    x = layers.ReLU(6.0, name="Conv1_relu")(normalized(x, "bn_Conv1", **_SETTINGS))
    number = 0
    for filters, count, stride in _STAGES:
        for block in range(count):
            width = divisible(int(filters * alpha))
            x = _block(x, number, width, 1 if block else stride)
            number += 1
    last = divisible(1280 * alpha) if alpha > 1.0 else 1280
    x = layers.Conv2D(last, 1, use_bias=False, name="Conv_1")(x)
    x = layers.ReLU(6.0, name="out_relu")(normalized(x, "Conv_1_bn", **_SETTINGS))
    x = classifier(x, wanted, None) if wanted.include_top else pooled(x, wanted)
    rows = trained_size(_SIZES, shape) if wanted.trained else extents(shape)[0]
    wanted = wanted._replace(name=wanted.name or f"mobilenetv2_{alpha:0.2f}_{rows}")

    def file() -> File:
        stem = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels"
        end = "" if wanted.include_top else "_no_top"
        return File(f"{stem}_{float(alpha)}_{rows}{end}.h5", "mobilenet_v2")

    return finished(image, x, wanted, file)


MobileNetV2 = application(
    "MobileNetV2", None, _mobilenet,
    "The second version of MobileNet; ``alpha`` is the part of the filters.",
    {
        "input_shape": None, "alpha": 1.0, "include_top": True, "weights": "imagenet",
        "input_tensor": None, "pooling": None, "classes": 1000,
        "classifier_activation": "softmax",
    },
)  # fmt: skip
preprocess_input = preprocessing("tf")

__all__ = ["MobileNetV2", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
