"""Helpers of Keras programs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import naming
from treadle.names import missing_in


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Class numbers as one-hot float32 rows."""
    classes = np.asarray(x, dtype=np.int64)
    if classes.ndim > 1 and classes.shape[-1] == 1:
        classes = classes[..., 0]
    count = int(classes.max()) + 1 if num_classes is None else num_classes
    return np.eye(count, dtype=np.float32)[classes]


def set_random_seed(seed: int) -> None:
    """Seed Python's, NumPy's and treadle's random numbers."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (programs that use the global generator)
    td.random.set_seed(seed)


def clear_session() -> None:
    """Start the numbering of layer names anew."""
    naming.clear()


__getattr__ = missing_in(__name__)
