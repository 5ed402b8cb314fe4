"""Helpers of Keras programs."""

from __future__ import annotations

import random

import numpy as np

import treadle as td
from treadle.keras import naming
from treadle.keras.progress import (
    Progbar,
    disable_interactive_logging,
    enable_interactive_logging,
    is_interactive_logging_enabled,
)
from treadle.keras.random import seed_globally
from treadle.keras.serialization import (
    CustomObjectScope,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)
from treadle.keras.utils.arrays import (
    normalize,
    pack_x_y_sample_weight,
    pad_sequences,
    to_categorical,
    unpack_x_y_sample_weight,
)
from treadle.keras.utils.datasets import (
    PyDataset,
    Sequence,
    split_dataset,
    timeseries_dataset_from_array,
)
from treadle.names import missing_in


def set_random_seed(seed: int) -> None:
    """Seed Python's, NumPy's and treadle's random numbers."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (programs that use the global generator)
    td.random.set_seed(seed)
    seed_globally(seed)


def clear_session(free_memory: bool = True) -> None:
    """Start the numbering of layer names, and the seeds of `keras.random`, anew.

    Args:
        free_memory: accepted: memory is freed when it is no longer used.
    """
    naming.clear()
    seed_globally(None)


__all__ = [
    "CustomObjectScope", "Progbar", "PyDataset", "Sequence", "clear_session",
    "custom_object_scope", "deserialize_keras_object", "disable_interactive_logging",
    "enable_interactive_logging", "get_custom_objects", "get_registered_name",
    "get_registered_object", "is_interactive_logging_enabled", "normalize",
    "pack_x_y_sample_weight", "pad_sequences", "register_keras_serializable",
    "serialize_keras_object", "set_random_seed", "split_dataset", "timeseries_dataset_from_array",
    "to_categorical", "unpack_x_y_sample_weight",
]  # fmt: skip

__getattr__ = missing_in(__name__)
