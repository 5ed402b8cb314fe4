"""What Keras 2's layers and models, and TensorFlow's modules, have that Keras 3's and treadle's do
not, where libraries ask for it."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras.layers import Layer
from treadle.keras.models import Model


def _track_trackable(self: td.Module, trackable: Any, name: str, overwrite: bool = False) -> Any:
    """Keep an object for checkpoints, as the attribute of that name, and give it back."""
    if overwrite or getattr(self, name, None) is None:
        setattr(self, name, trackable)
    return trackable


def _add_update(self: Layer, updates: Any) -> None:
    """Call the functions among some updates, unless the layer is not trained. Others are made
    already: assignments happen where they stand in `call`."""
    for update in td.nest.flatten(updates):
        if callable(update) and self.trainable:
            update()


def _losses(self: Layer) -> list[td.Tensor]:
    """What `add_loss` was given during the last call, by this layer itself."""
    return self._call_losses


def _is_graph_network(self: Model) -> bool:
    """Whether the order of the layers is known: the model was made of inputs and outputs, or is a
    `Sequential` that knows its input."""
    return self._network is not None


def _set_save_spec(
    self: Model, inputs: Any, args_specs: Any = None, kwargs_specs: Any = None
) -> None:
    """Say what a saved model takes. Here the first call says it."""


def accept_names_of_keras_2() -> None:
    """Give layers and models these names."""
    names: dict[type, dict[str, Any]] = {
        td.Module: {"_track_trackable": _track_trackable},
        Layer: {"_losses": property(_losses), "add_update": _add_update},
        Model: {
            "_is_graph_network": property(_is_graph_network),
            "_set_save_spec": _set_save_spec,
        },
    }
    for owner, own in names.items():
        for name, value in own.items():
            setattr(owner, name, value)
