"""``td.keras.applications.inception_v3``: branches of convolutions side by side
(https://arxiv.org/abs/1512.00567)."""

from __future__ import annotations

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
from treadle.keras.models import Model
from treadle.names import missing_in

# A convolution: filters, rows and columns of the kernel, and whether it takes every other position.
_Step = tuple[Any, ...]


def _convolved(x: Any, filters: int, rows: int, columns: int, stride: int = 1,
               padding: str = "same") -> Any:  # fmt: skip
    """A convolution, normalized and rectified."""
    kernel = (rows, columns)
    x = layers.Conv2D(filters, kernel, strides=stride, padding=padding, use_bias=False)(x)
    return layers.Activation("relu")(normalized(x, None, 3, scale=False))


def _branch(x: Any, steps: list[_Step]) -> Any:
    for filters, size, *halving in steps:
        rows, columns = (size, size) if isinstance(size, int) else size
        x = _convolved(x, filters, rows, columns, *((2, "valid") if halving else ()))
    return x


def _joined(branches: list[Any], name: str | None) -> Any:
    return layers.concatenate(branches, axis=channel_axis(3), name=name)


def _mean(x: Any, filters: int) -> Any:
    x = layers.AveragePooling2D(3, strides=1, padding="same")(x)
    return _convolved(x, filters, 1, 1)


def _stem(x: Any) -> Any:
    x = _convolved(x, 32, 3, 3, 2, "valid")
    x = _convolved(x, 32, 3, 3, 1, "valid")
    x = layers.MaxPooling2D(3, strides=2)(_convolved(x, 64, 3, 3))
    x = _convolved(x, 80, 1, 1, 1, "valid")
    x = _convolved(x, 192, 3, 3, 1, "valid")
    return layers.MaxPooling2D(3, strides=2)(x)


def _module(x: Any, name: str, branches: list[list[_Step]], mean: int = 0) -> Any:
    """Branches and a pool side by side.

    Args:
        mean: the filters after a mean of 3 x 3; 0 for the largest of every other 3 x 3.
    """
    parts = [_branch(x, steps) for steps in branches]
    parts.append(_mean(x, mean) if mean else layers.MaxPooling2D(3, strides=2)(x))
    return _joined(parts, name)


def _fan(x: Any, steps: list[_Step], name: str | None) -> Any:
    """A branch that ends in a flat and in a tall kernel."""
    x = _branch(x, steps)
    return _joined([_branch(x, [(384, (1, 3))]), _branch(x, [(384, (3, 1))])], name)


_HALVING_3X3: list[_Step] = [(64, 1), (96, 3), (96, 3, True)]


def _small(mean: int) -> tuple[list[list[_Step]], int]:
    return [[(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]], mean


def _long(n: int) -> tuple[list[list[_Step]], int]:
    flat, tall = (1, 7), (7, 1)
    return [
        [(192, 1)],
        [(n, 1), (n, flat), (192, tall)],
        [(n, 1), (n, tall), (n, flat), (n, tall), (192, flat)],
    ], 192


_MODULES: list[tuple[list[list[_Step]], int]] = [
    _small(32), _small(64), _small(64),
    ([[(384, 3, True)], _HALVING_3X3], 0),
    _long(128), _long(160), _long(160), _long(192),
    ([[(192, 1), (320, 3, True)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, True)]], 0),
]  # fmt: skip


def _inception(wanted: Wanted) -> Model:
    image = image_input(wanted, image_shape(wanted, 299, smallest=75))
    x = _stem(image)
    for number, (branches, mean) in enumerate(_MODULES):
        x = _module(x, f"mixed{number}", branches, mean)
    for number in (0, 1):
        parts = [
            _branch(x, [(320, 1)]),
            _fan(x, [(384, 1)], f"mixed9_{number}"),
            _fan(x, [(448, 1), (384, 3)], None),
            _mean(x, 192),
        ]
        x = _joined(parts, f"mixed{9 + number}")
    x = classifier(x, wanted) if wanted.include_top else pooled(x, wanted)
    file = partial(usual_file, "inception_v3", "inception_v3", wanted.include_top)
    return finished(image, x, wanted, file)


InceptionV3 = application(
    "InceptionV3", "inception_v3", _inception, "The third version of Inception."
)
preprocess_input = preprocessing("tf")

__all__ = ["InceptionV3", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
