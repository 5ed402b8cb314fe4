"""Small pictures of 10 kinds of things."""

from __future__ import annotations

from typing import Any

from treadle.keras.datasets.cifar import batches, images


def load_data(path: Any = None) -> Any:
    """50,000 images [32, 32, 3] for training and 10,000 for tests, with their labels.

    Args:
        path: of the archive ``cifar-10-python.tar.gz`` or of the folder in it; places in
            ``~/.keras/datasets`` when omitted.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``, uint8 arrays; the labels are columns.

    Raises:
        FileNotFoundError: neither is there.
    """
    files = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]
    *train, test = batches(path, "cifar-10-python.tar.gz", "cifar-10-batches-py", files)
    return images(train, "labels"), images([test], "labels")
