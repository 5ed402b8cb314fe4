"""Layers around a layer: TimeDistributed and Bidirectional."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.base import Layer


class TimeDistributed(Layer):
    """A layer applied to each step of (batch, time, ...)."""

    has_shape_rule: ClassVar[bool] = False

    def __init__(self, layer: Layer, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = layer

    def call(self, inputs: Any, training: Any = None) -> td.Tensor:
        rest = [td.shape(inputs)[i] if d is None else d for i, d in enumerate(inputs.shape)]
        steps = td.reshape(inputs, [-1, *rest[2:]])
        outputs = self.layer(steps, training=training)
        after = [td.shape(outputs)[i] if d is None else d for i, d in enumerate(outputs.shape)]
        return td.reshape(outputs, [*rest[:2], *after[1:]])


class Bidirectional(Layer):
    """A recurrent layer and its mirror image, which starts at the last step.

    Args:
        layer: an RNN of this package, from whose settings the other is made.
        merge_mode: "concat", "sum", "mul", "ave", or None for both results.
        backward_layer: the layer to use for the other direction.
    """

    has_shape_rule: ClassVar[bool] = False

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(f"Bidirectional: unknown merge_mode {merge_mode!r}")
        if layer._example_shape is not None:
            kwargs.setdefault("input_shape", layer._example_shape)
        super().__init__(**kwargs)
        if backward_layer is None:
            config = layer.get_config()
            config |= {"go_backwards": not layer.go_backwards, "name": f"backward_{layer.name}"}
            backward_layer = type(layer).from_config(config)
        self.forward_layer, self.backward_layer = layer, backward_layer
        self.merge_mode = merge_mode
        self.return_sequences, self.return_state = layer.return_sequences, layer.return_state

    def call(self, sequences: Any, initial_state: Any = None, training: Any = None) -> Any:
        states: tuple[Any, Any] = (None, None)
        if initial_state is not None:
            half = len(initial_state) // 2
            states = (initial_state[:half], initial_state[half:])
        forward = self.forward_layer(sequences, initial_state=states[0], training=training)
        backward = self.backward_layer(sequences, initial_state=states[1], training=training)
        after: list[Any] = []
        if self.return_state:
            forward, *first = forward
            backward, *second = backward
            after = [*first, *second]
        if self.return_sequences:
            backward = td.reverse(backward, [1])
        merged = self._merged(forward, backward)
        if not after:
            return merged
        return (*(merged if self.merge_mode is None else (merged,)), *after)

    def _merged(self, forward: td.Tensor, backward: td.Tensor) -> Any:
        if self.merge_mode == "concat":
            return td.concat([forward, backward], -1)
        if self.merge_mode == "mul":
            return forward * backward
        if self.merge_mode is None:
            return forward, backward
        total = forward + backward
        return total / 2 if self.merge_mode == "ave" else total
