"""Small pictures of 100 kinds of things."""

from __future__ import annotations

from typing import Any

from treadle.keras.datasets.cifar import batches, images


def load_data(label_mode: str = "fine", path: Any = None) -> Any:
    """50,000 images [32, 32, 3] for training and 10,000 for tests, with their labels.

    Args:
        label_mode: "fine" for 100 labels, "coarse" for 20.
        path: of the archive ``cifar-100-python.tar.gz`` or of the folder in it; places in
            ``~/.keras/datasets`` when omitted.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``, uint8 arrays; the labels are columns.

    Raises:
        FileNotFoundError: neither is there.
        ValueError: another `label_mode`.
    """
    if label_mode not in ("fine", "coarse"):
        raise ValueError(
            f'`label_mode` must be one of `"fine"`, `"coarse"`. Received: label_mode={label_mode}.'
        )
    train, test = batches(path, "cifar-100-python.tar.gz", "cifar-100-python", ["train", "test"])
    key = f"{label_mode}_labels"
    return images([train], key), images([test], key)
