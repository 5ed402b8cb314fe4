"""Helpers of Keras programs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

import treadle as td
from treadle.keras import lambdas, naming
from treadle.keras.learning_phase import set_learning_phase
from treadle.keras.progress import (
    Progbar,
    disable_interactive_logging,
    enable_interactive_logging,
    is_interactive_logging_enabled,
)
from treadle.keras.promotion import standardize_dtype
from treadle.keras.random import forget_global, seeded_with_python
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
from treadle.keras.utils.configs import Config
from treadle.keras.utils.datasets import (
    PyDataset,
    Sequence,
    split_dataset,
    timeseries_dataset_from_array,
)
from treadle.keras.utils.downloads import get_file
from treadle.keras.utils.folders import (
    audio_dataset_from_directory,
    image_dataset_from_directory,
    text_dataset_from_directory,
)
from treadle.keras.utils.images import array_to_img, img_to_array, load_img, save_img
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.keras.layers.preprocessing.feature_space import FeatureSpace as FeatureSpace
    from treadle.keras.layers.symbolic import get_source_inputs as get_source_inputs
    from treadle.keras.layers.symbolic import is_keras_tensor as is_keras_tensor
    from treadle.keras.models.plotting import model_to_dot as model_to_dot
    from treadle.keras.models.plotting import plot_model as plot_model
    from treadle.keras.utils import bounding_boxes as bounding_boxes
    from treadle.keras.utils import legacy as legacy


def set_random_seed(seed: int) -> None:
    """Seed Python's, NumPy's and treadle's random numbers."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (programs that use the global generator)
    td.random.set_seed(seed)
    seeded_with_python()


def clear_session(free_memory: bool = True) -> None:
    """Start the numbering of layer names, the seeds of `keras.random` and the learning phase anew;
    code of files is not run any more, if `keras.config.enable_unsafe_deserialization` allowed it.

    Args:
        free_memory: accepted: memory is freed when it is no longer used.
    """
    naming.clear()
    forget_global()
    set_learning_phase(None)
    lambdas.always_run(False)


__all__ = [
    "Config", "CustomObjectScope", "FeatureSpace", "Progbar", "PyDataset", "Sequence",
    "array_to_img", "audio_dataset_from_directory", "bounding_boxes",
    "clear_session", "custom_object_scope", "deserialize_keras_object",
    "disable_interactive_logging", "enable_interactive_logging", "get_custom_objects", "get_file",
    "get_registered_name", "get_registered_object", "get_source_inputs",
    "image_dataset_from_directory", "img_to_array", "is_interactive_logging_enabled",
    "is_keras_tensor", "legacy", "load_img", "model_to_dot", "normalize", "pack_x_y_sample_weight",
    "pad_sequences", "plot_model", "register_keras_serializable", "save_img",
    "serialize_keras_object", "set_random_seed", "split_dataset", "standardize_dtype",
    "text_dataset_from_directory", "timeseries_dataset_from_array", "to_categorical",
    "unpack_x_y_sample_weight",
]  # fmt: skip

__getattr__ = provided(
    __name__,
    {
        "treadle.keras.layers.preprocessing.feature_space": "FeatureSpace",
        "treadle.keras.layers.symbolic": "get_source_inputs is_keras_tensor",
        "treadle.keras.models.plotting": "model_to_dot plot_model",
        "treadle.keras.utils": "bounding_boxes legacy",
    },
)
