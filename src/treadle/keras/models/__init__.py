"""Models, by Keras's names."""

import json
from collections.abc import Mapping
from typing import Any

from treadle.keras.models.cloning import clone_model
from treadle.keras.models.model import Model, Sequential
from treadle.keras.models.saving import from_config, load_model, save_model
from treadle.names import missing_in


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model that `Model.to_json` described, with new weights, compiled as it was.

    Raises:
        ValueError: it is no such text, or a class is not known.
    """
    return from_config(json.loads(json_string), custom_objects, compile=True)


__all__ = ["Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]

__getattr__ = missing_in(__name__)
