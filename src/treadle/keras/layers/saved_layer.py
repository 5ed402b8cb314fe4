"""``keras.layers.TFSMLayer``: a function of a saved model as a layer."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import treadle as td
from treadle.keras import variables
from treadle.keras.layers.base import Layer


class TFSMLayer(Layer):
    """A layer that computes a function of a saved model, which can be trained further.

    Args:
        filepath: the folder of the saved model.
        call_endpoint: the function's name, or that of a signature: ``"serve"`` is that of
            `Model.export`, ``"serving_default"`` that of others.
        call_training_endpoint: the same for calls that train; when omitted, they call the same.

    Raises:
        ValueError: the saved model has no such function.
        OSError, DataLossError: there is none, or it is damaged.
    """

    has_shape_rule: ClassVar[bool] = False
    _TF_MODULE_IGNORED_PROPERTIES = Layer._TF_MODULE_IGNORED_PROPERTIES | {
        "_reloaded", "call_endpoint_fn", "call_training_endpoint_fn",
    }  # fmt: skip

    def __init__(
        self, filepath: Any, call_endpoint: str = "serve",
        call_training_endpoint: str | None = None, trainable: bool = True,
        name: str | None = None, dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        self.filepath = os.fspath(filepath)
        self.call_endpoint, self.call_training_endpoint = call_endpoint, call_training_endpoint
        self._reloaded = td.saved_model.load(filepath)
        self.call_endpoint_fn = self._endpoint(call_endpoint)
        training = call_training_endpoint or call_endpoint
        self.call_training_endpoint_fn = self._endpoint(training)
        functions = (self.call_endpoint_fn, self.call_training_endpoint_fn)
        used = {id(v): v for function in functions for v in function.variables}
        for variable in used.values():
            name = variables.path_of(variable).rpartition("/")[2]
            self._added_weights.append(variables.with_path(variable, f"{self.name}/{name}"))
        self.built = True

    def _endpoint(self, name: str) -> Any:
        found = getattr(self._reloaded, name, None) or self._reloaded.signatures.get(name)
        if found is None:
            raise ValueError(
                f"The endpoint '{name}' is neither an attribute of the reloaded SavedModel, nor an "
                "entry in the `signatures` field of the reloaded SavedModel. Select another "
                "endpoint via the `call_endpoint` argument. Available endpoints for this "
                f"SavedModel: {list(self._reloaded.signatures)}"
            )
        return found

    def call(self, inputs: Any, training: Any = False, **kwargs: Any) -> Any:
        """What the function gives."""
        endpoint = self.call_training_endpoint_fn if training else self.call_endpoint_fn
        return endpoint(inputs, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The layer's arguments: it is made again where the saved model is."""
        own = {"name": self.name, "trainable": self.trainable, "dtype": self._own_policy.name}
        return own | {
            "filepath": self.filepath, "call_endpoint": self.call_endpoint,
            "call_training_endpoint": self.call_training_endpoint,
        }  # fmt: skip
