"""Pictures of clothes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from treadle.keras.datasets.files import found

_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


def _array(path: Any, name: str) -> Any:
    """The array of a file whose header has the type of elements and the sizes."""
    place = name if path is None else Path(path) / name
    with gzip.open(found(place, _ORIGIN + name, folder="fashion-mnist")) as file:
        data = file.read()
    kind, rank = data[2:4] if len(data) >= 4 else (0, 0)
    begin = 4 + 4 * rank
    sizes = np.frombuffer(data[4 : begin if len(data) >= begin else 4], ">u4")
    if kind != 8 or len(data) != begin + np.prod(sizes, dtype=np.int64):
        raise ValueError(f"{name} is damaged: {len(data)} bytes for sizes {sizes.tolist()}")
    return np.frombuffer(data, np.uint8, offset=begin).reshape(sizes)


def load_data(path: Any = None) -> Any:
    """60,000 images [28, 28] of clothes for training and 10,000 for tests, with their labels.

    Args:
        path: the folder of the four files; ``~/.keras/datasets/fashion-mnist`` when omitted.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``, uint8 arrays.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: a file is damaged.
    """
    parts = [
        (_array(path, f"{of}-images-idx3-ubyte.gz"), _array(path, f"{of}-labels-idx1-ubyte.gz"))
        for of in ("train", "t10k")
    ]
    return parts[0], parts[1]
