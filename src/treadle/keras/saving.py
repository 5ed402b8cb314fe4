"""``td.keras.saving``: models and objects as files and as plain data."""

from typing import Any

from treadle.keras.models.file_editor import KerasFileEditor
from treadle.keras.models.saving import load_model, save_model
from treadle.keras.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)
from treadle.names import missing_in

CustomObjectScope = custom_object_scope


def save_weights(
    model: Any, filepath: Any, overwrite: bool = True, max_shard_size: float | None = None,
    **kwargs: Any,
) -> None:  # fmt: skip
    """``model.save_weights``."""
    model.save_weights(filepath, overwrite, max_shard_size, **kwargs)


def load_weights(model: Any, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
    """``model.load_weights``."""
    model.load_weights(filepath, skip_mismatch=skip_mismatch, **kwargs)


__all__ = [
    "CustomObjectScope",
    "KerasFileEditor",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "load_model",
    "load_weights",
    "register_keras_serializable",
    "save_model",
    "save_weights",
    "serialize_keras_object",
]

__getattr__ = missing_in(__name__)
