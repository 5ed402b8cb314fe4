"""Prices of homes."""

from __future__ import annotations

from typing import Any

from treadle.keras.datasets.files import table

_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/boston_housing.npz"


def load_data(path: Any = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Any:
    """506 places by 13 numbers, and the median price of homes there.

    Args:
        path: of the archive, or its name in ``~/.keras/datasets``.
        test_split: which part is for tests.
        seed: of the order.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``.

    Raises:
        FileNotFoundError: the file is not there.
        ValueError: `test_split` is no part.
    """
    return table(path, _ORIGIN, test_split, seed)
