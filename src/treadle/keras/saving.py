"""``td.keras.saving``: models and objects as files and as plain data."""

from treadle.keras.models.saving import load_model, save_model
from treadle.keras.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    register_keras_serializable,
    serialize_keras_object,
)
from treadle.names import missing_in

CustomObjectScope = custom_object_scope

__all__ = [
    "CustomObjectScope",
    "custom_object_scope",
    "deserialize_keras_object",
    "load_model",
    "register_keras_serializable",
    "save_model",
    "serialize_keras_object",
]

__getattr__ = missing_in(__name__)
