"""``td.keras.applications.inception_resnet_v2``: branches of convolutions whose result is added
(https://arxiv.org/abs/1602.07261)."""

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

# A convolution: filters, its kernel, and whether it takes every other position.
_Step = tuple[Any, ...]


class CustomScaleLayer(layers.Layer):
    """The first input and a part of the second.

    Args:
        scale: the part.
    """

    _saved_as = ("keras.src.applications.inception_resnet_v2", "CustomScaleLayer")

    def __init__(self, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs: Any) -> Any:
        return inputs[0] + inputs[1] * self.scale


def _convolved(
    x: Any, filters: int, kernel: Any, halving: bool = False, padding: str = "same",
    name: str | None = None,
) -> Any:  # fmt: skip
    """A convolution, normalized and rectified."""
    stride, padding = (2, "valid") if halving else (1, padding)
    x = layers.Conv2D(
        filters, kernel, strides=stride, padding=padding, use_bias=False, name=name
    )(x)  # fmt: skip
    x = normalized(x, name and f"{name}_bn", 3, scale=False)
    return layers.Activation("relu", name=name and f"{name}_ac")(x)


def _branch(x: Any, steps: list[_Step]) -> Any:
    for step in steps:
        x = _convolved(x, *step)
    return x


def _joined(branches: list[Any], name: str) -> Any:
    return layers.Concatenate(axis=channel_axis(3), name=name)(branches)


# What is added in the three kinds of blocks.
_BRANCHES: dict[str, list[list[_Step]]] = {
    "block35": [[(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)]],
    "block17": [[(192, 1)], [(128, 1), (160, (1, 7)), (192, (7, 1))]],
    "block8": [[(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))]],
}


def _residual(x: Any, kind: str, number: int, scale: float, rectified: bool = True) -> Any:
    name = f"{kind}_{number}"
    mixed = _joined([_branch(x, steps) for steps in _BRANCHES[kind]], f"{name}_mixed")
    filters = int(x.shape[channel_axis(3)])
    added = layers.Conv2D(filters, 1, padding="same", name=f"{name}_conv")(mixed)
    x = CustomScaleLayer(scale)([x, added])
    return layers.Activation("relu", name=f"{name}_ac")(x) if rectified else x


def _stem(x: Any) -> Any:
    x = _convolved(x, 32, 3, halving=True)
    x = _convolved(x, 32, 3, padding="valid")
    x = layers.MaxPooling2D(3, strides=2)(_convolved(x, 64, 3))
    x = _convolved(x, 80, 1, padding="valid")
    x = _convolved(x, 192, 3, padding="valid")
    x = layers.MaxPooling2D(3, strides=2)(x)
    steps: list[list[_Step]] = [[(96, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]]
    branches = [_branch(x, branch) for branch in steps]
    mean = layers.AveragePooling2D(3, strides=1, padding="same")(x)
    return _joined([*branches, _convolved(mean, 64, 1)], "mixed_5b")


def _reduced(x: Any, steps: list[list[_Step]], name: str) -> Any:
    """Branches that take every other position, and the largest of every other 3 x 3."""
    branches = [_branch(x, branch) for branch in steps]
    return _joined([*branches, layers.MaxPooling2D(3, strides=2)(x)], name)


def _inception_resnet(wanted: Wanted) -> Model:
    image = image_input(wanted, image_shape(wanted, 299, smallest=75))
    x = _stem(image)
    for number in range(1, 11):
        x = _residual(x, "block35", number, 0.17)
    x = _reduced(x, [[(384, 3, True)], [(256, 1), (256, 3), (384, 3, True)]], "mixed_6a")
    for number in range(1, 21):
        x = _residual(x, "block17", number, 0.1)
    x = _reduced(x, [
        [(256, 1), (384, 3, True)], [(256, 1), (288, 3, True)],
        [(256, 1), (288, 3), (320, 3, True)],
    ], "mixed_7a")  # fmt: skip
    for number in range(1, 10):
        x = _residual(x, "block8", number, 0.2)
    x = _residual(x, "block8", 10, 1.0, rectified=False)
    x = _convolved(x, 1536, 1, name="conv_7b")
    x = classifier(x, wanted) if wanted.include_top else pooled(x, wanted)
    stem = "inception_resnet_v2"
    return finished(image, x, wanted, partial(usual_file, stem, stem, wanted.include_top))


InceptionResNetV2 = application(
    "InceptionResNetV2", "inception_resnet_v2", _inception_resnet,
    "The second version of Inception with shortcuts.",
)  # fmt: skip
preprocess_input = preprocessing("tf")

__all__ = ["InceptionResNetV2", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
