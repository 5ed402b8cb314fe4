"""Prices of homes."""

from __future__ import annotations

from typing import Any

from treadle.keras.datasets.files import table

_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/california_housing.npz"


def load_data(
    version: str = "large", path: Any = "california_housing.npz", test_split: float = 0.2,
    seed: int = 113,
) -> Any:  # fmt: skip
    """20,640 places by 8 numbers, and the median price of homes there.

    Args:
        version: "large", or "small" for the first 600 of them.
        path: of the archive, or its name in ``~/.keras/datasets``.
        test_split: which part is for tests.
        seed: of the order.

    Returns:
        ``((x_train, y_train), (x_test, y_test))``.

    Raises:
        FileNotFoundError: the file is not there.
        ValueError: `test_split` is no part, or another `version`.
    """
    if version not in ("small", "large"):
        raise ValueError(
            "Argument `version` must be one of 'small', 'large'. "
            f"Received: version={version}"
        )
    return table(path, _ORIGIN, test_split, seed, 600 if version == "small" else None)
