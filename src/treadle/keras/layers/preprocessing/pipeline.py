"""Layers that are called one after the other, as one layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from treadle.keras import serialization
from treadle.keras.layers.base import Layer


class Pipeline(Layer):
    """Layers that prepare data, called one after the other.

    Args:
        layers: the layers.
    """

    has_shape_rule: ClassVar[bool] = False
    _passes_masks = True

    def __init__(self, layers: Sequence[Any], name: str | None = None) -> None:
        super().__init__(name=name)
        self.layers = list(layers)
        self._build_at_init()

    def call(self, inputs: Any, training: Any = True, mask: Any = None) -> Any:
        given = {"training": training, "mask": mask}
        for layer in self.layers:
            own = isinstance(layer, Layer)
            known = {k: v for k, v in given.items() if own and v is not None}
            taken = {k: v for k, v in known.items() if layer._call_takes(k)}
            inputs = layer(inputs, **taken)
        return inputs

    def get_config(self) -> dict[str, Any]:
        layers = [serialization.serialize_keras_object(layer) for layer in self.layers]
        return {"name": self.name, "layers": layers}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Pipeline:
        """A layer from what `get_config` gave.

        Raises:
            ValueError: the config has no list of layers.
        """
        if not isinstance(config.get("layers"), list | tuple):
            raise ValueError(
                "Pipeline: a config has a list `layers`. Received: layers="
                f"{config.get('layers')!r}"
            )
        made = super().from_config(config, custom_objects)
        assert isinstance(made, cls)
        return made
