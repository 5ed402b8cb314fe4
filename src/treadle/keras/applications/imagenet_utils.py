"""``td.keras.applications.imagenet_utils``: images as the models were trained on, and the names of
the classes of ImageNet."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from treadle.keras import ops
from treadle.keras.config import floatx, image_data_format
from treadle.keras.datasets.files import found
from treadle.names import missing_in

_CLASSES = "https://storage.googleapis.com/download.tensorflow.org/data/imagenet_class_index.json"
# Of red, green and blue over the images of ImageNet, in parts of 1.
_MEANS, _DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Of blue, green and red, in 0 ... 255.
_MEANS_OF_CAFFE = (103.939, 116.779, 123.68)


def preprocess_input(x: Any, data_format: str | None = None, mode: str = "caffe") -> Any:
    """Images as models were trained on: changed in place where they are an array of floats.

    Args:
        x: pixels in 0 ... 255 of one image or a batch: an array, a tensor or a step of a model.
        data_format: where the channels are; as configured when None.
        mode: ``"caffe"`` has blue, green, red, each less its mean; ``"tf"`` has -1 ... 1;
            ``"torch"`` has 0 ... 1 less the means and over the standard deviations.

    Raises:
        ValueError: there is no such mode or format.
    """
    if mode not in ("caffe", "tf", "torch"):
        raise ValueError(
            f"Expected mode to be one of `caffe`, `tf` or `torch`. Received: mode={mode}"
        )
    data_format = data_format or image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(
            "Expected data_format to be one of `channels_first` or `channels_last`. Received: "
            f"data_format={data_format}"
        )
    axis = -3 if data_format == "channels_first" else -1
    prepare = _of_array if isinstance(x, np.ndarray) else _of_tensor
    return prepare(x, mode, axis)


def _of_array(x: Any, mode: str, axis: int) -> Any:
    if not np.issubdtype(x.dtype, np.floating):
        x = x.astype(floatx())
    if mode == "tf":
        x /= 127.5
        x -= 1.0
        return x
    if mode == "caffe":
        x = np.flip(x, axis)
    else:
        x /= 255.0
    channels = np.moveaxis(x, axis, -1)
    channels -= np.asarray(_MEANS_OF_CAFFE if mode == "caffe" else _MEANS, x.dtype)
    if mode == "torch":
        channels /= np.asarray(_DEVIATIONS, x.dtype)
    return x


def _of_tensor(x: Any, mode: str, axis: int) -> Any:
    if mode == "tf":
        return x / 127.5 - 1.0
    at = axis % len(x.shape)
    along = [1] * len(x.shape)
    along[at] = 3

    def constants(values: tuple[float, ...]) -> Any:
        return ops.convert_to_tensor(np.reshape(values, along), dtype=x.dtype)

    if mode == "caffe":
        before = (slice(None),) * at
        x = ops.stack([x[(*before, channel)] for channel in (2, 1, 0)], axis=at)
        return x + constants(tuple(-mean for mean in _MEANS_OF_CAFFE))
    x = x / 255.0 + constants(tuple(-mean for mean in _MEANS))
    return x / constants(_DEVIATIONS)


def decode_predictions(preds: Any, top: int = 5) -> list[list[tuple[str, str, Any]]]:
    """The likeliest classes of ImageNet.

    Args:
        preds: probabilities [images, 1000].
        top: how many classes for each image.

    Returns:
        For each image ``(id, name, probability)``, the likeliest first.

    Raises:
        ValueError: it has another shape.
        FileNotFoundError: the file with the names is not there.
    """
    if len(preds.shape) != 2 or preds.shape[1] != 1000:
        raise ValueError(
            "`decode_predictions` expects a batch of predictions (i.e. a 2D array of shape "
            f"(samples, 1000)). Received array with shape: {tuple(preds.shape)}"
        )
    names = _class_names(str(found("imagenet_class_index.json", _CLASSES, cache="models")))
    results = []
    for row in np.asarray(preds):
        likeliest = np.argsort(row)[::-1][:top]
        results.append([(*names[int(number)], row[number]) for number in likeliest])
    return results


@cache
def _class_names(path: str) -> list[tuple[str, str]]:
    with open(path) as file:
        names = json.load(file)
    return [(names[str(number)][0], names[str(number)][1]) for number in range(len(names))]


def preprocessing(mode: str | None) -> Callable[..., Any]:
    """The ``preprocess_input`` of a model.

    Args:
        mode: how it was trained; None where the model has what prepares images in it.
    """

    def prepared(x: Any, data_format: str | None = None) -> Any:
        return x if mode is None else preprocess_input(x, data_format, mode)

    prepared.__name__ = prepared.__qualname__ = "preprocess_input"
    prepared.__doc__ = (
        "The images as they are: the model prepares them."
        if mode is None
        else f'`imagenet_utils.preprocess_input` with ``mode="{mode}"``.'
    )
    return prepared


__all__ = ["decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
