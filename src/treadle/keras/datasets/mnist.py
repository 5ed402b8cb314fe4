"""Handwritten digits."""

from __future__ import annotations

from typing import Any

from treadle.keras.datasets.files import arrays, found

_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"


def load_data(path: Any = "mnist.npz") -> Any:
    """60,000 images [28, 28] of digits for training and 10,000 for tests, with their labels.

    Args:
        path: of the archive, or its name in ``~/.keras/datasets``.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``, uint8 arrays.

    Raises:
        FileNotFoundError: the file is not there.
    """
    data = arrays(found(path, _ORIGIN))
    return (data["x_train"], data["y_train"]), (data["x_test"], data["y_test"])
