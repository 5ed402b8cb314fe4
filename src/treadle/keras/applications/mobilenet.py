"""``td.keras.applications.mobilenet``: convolutions of channels by themselves, then of positions by
themselves (https://arxiv.org/abs/1704.04861)."""

from __future__ import annotations

import warnings
from typing import Any

from treadle.keras import layers
from treadle.keras.applications.assembly import (
    File,
    Wanted,
    application,
    extents,
    finished,
    image_input,
    image_shape,
    normalized,
    pooled,
)
from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.models import Model
from treadle.names import missing_in

# Of the blocks: filters, and the stride of the first convolution.
_BLOCKS = [
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2),
    (1024, 1),
]  # fmt: skip
# How files of weights name the parts of filters.
_PARTS = {1.0: "1_0", 0.75: "7_5", 0.5: "5_0", 0.25: "2_5"}


def trained_size(sizes: tuple[int, ...], shape: Any) -> int:
    """The size of the images that weights were trained on, for a shape of images."""
    rows, columns = extents(shape) if shape is not None and len(shape) >= 3 else (None, None)
    return int(rows) if rows == columns and rows in sizes else 224


def warn_of_size(sizes: tuple[int, ...], shape: Any) -> None:
    """Say that the weights are those for other images."""
    rows, columns = extents(shape)
    if rows != columns or rows not in sizes:
        warnings.warn(
            f"`input_shape` is undefined or non-square, or `rows` is not in {list(sizes)}. "
            "Weights for input shape (224, 224) will be loaded as the default.", stacklevel=4,
        )  # fmt: skip


def _active(x: Any, name: str) -> Any:
    return layers.ReLU(6.0, name=f"{name}_relu")(normalized(x, f"{name}_bn"))


def _block(x: Any, number: int, filters: int, stride: int, multiplier: int) -> Any:
    if stride > 1:
        x = layers.ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{number}")(x)
    x = layers.DepthwiseConv2D(
        3, padding="same" if stride == 1 else "valid", depth_multiplier=multiplier,
        strides=stride, use_bias=False, name=f"conv_dw_{number}",
    )(x)  # fmt: skip
    x = _active(x, f"conv_dw_{number}")
    name = f"conv_pw_{number}"
    x = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=name)(x)
    return _active(x, name)


_SIZES = (128, 160, 192, 224)


def _mobilenet(wanted: Wanted, alpha: float, depth_multiplier: int, dropout: float) -> Model:
    shape = image_shape(wanted, trained_size(_SIZES, wanted.input_shape))
    if wanted.trained:
        if depth_multiplier != 1 or alpha not in _PARTS:
            raise ValueError(
                "If imagenet weights are being loaded, depth multiplier must be 1 and alpha one of "
                f"{sorted(_PARTS)}. Received depth_multiplier={depth_multiplier}, alpha={alpha}"
            )
        warn_of_size(_SIZES, shape)
    image = image_input(wanted, shape)
    x = layers.Conv2D(
        int(32 * alpha), 3, padding="same", use_bias=False, strides=2, name="conv1"
    )(image)  # fmt: skip
    x = _active(x, "conv1")
    for number, (filters, stride) in enumerate(_BLOCKS, 1):
        x = _block(x, number, int(filters * alpha), stride, depth_multiplier)
    x = _top(x, wanted, dropout) if wanted.include_top else pooled(x, wanted)
    rows = trained_size(_SIZES, shape) if wanted.trained else extents(shape)[0]
    wanted = wanted._replace(name=wanted.name or f"mobilenet_{alpha:0.2f}_{rows}")

    def file() -> File:
        end = "" if wanted.include_top else "_no_top"
        return File(f"mobilenet_{_PARTS[alpha]}_{rows}_tf{end}.h5", "mobilenet")

    return finished(image, x, wanted, file)


def _top(x: Any, wanted: Wanted, dropout: float) -> Any:
    x = layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = layers.Dropout(dropout, name="dropout")(x)
    x = layers.Conv2D(wanted.classes, 1, padding="same", name="conv_preds")(x)
    x = layers.Reshape((wanted.classes,), name="reshape_2")(x)
    return layers.Activation(wanted.classifier_activation, name="predictions")(x)


MobileNet = application(
    "MobileNet", None, _mobilenet,
    "MobileNet; ``alpha`` is the part of the filters, ``depth_multiplier`` the results for a "
    "channel.",
    {
        "input_shape": None, "alpha": 1.0, "depth_multiplier": 1, "dropout": 1e-3,
        "include_top": True, "weights": "imagenet", "input_tensor": None, "pooling": None,
        "classes": 1000, "classifier_activation": "softmax",
    },
)  # fmt: skip
preprocess_input = preprocessing("tf")

__all__ = ["MobileNet", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
