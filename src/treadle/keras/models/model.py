"""Model: a layer of layers that can be trained with compile, fit, evaluate and predict."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.models.summary import print_summary
from treadle.keras.models.training import Trainer


class Model(Trainer, Layer):
    """Base of models. Subclasses assign layers to attributes and define `call`.

    Functional models (``Model(inputs, outputs)``) are not supported: use Sequential, or subclass.
    """

    _ignored_attributes: ClassVar[frozenset[str]] = Layer._ignored_attributes | {
        "_compiled", "_functions", "_batch_shape",
    }  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or "inputs" in kwargs or "outputs" in kwargs:
            raise TypeError(
                f"{type(self).__name__}: functional models, Model(inputs, outputs), are not "
                "supported; use keras.Sequential([...]) or subclass keras.Model and define call()"
            )
        super().__init__(**kwargs)
        self._compiled: Any = None
        self._functions: dict[str, Any] = {}

    @property
    def layers(self) -> list[Layer]:
        """The layers directly below the model."""
        return [m for m in self._own()[1] if isinstance(m, Layer)]

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """The layer of that name or position.

        Raises:
            ValueError: there is none.
        """
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f'Model "{self.name}" has {len(layers)} layers, no index {index}')
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f'Model "{self.name}" has no layer {name!r}: {[x.name for x in layers]}')

    def build(self, input_shape: Any) -> None:
        """Make the weights now, by tracing `call` for inputs of this shape (batch first)."""
        if not self.built:
            self.built = True
            spec = td.TensorSpec(input_shape, self.dtype)
            trace = td.function(autograph=False)(lambda x: self(x))
            trace.get_concrete_function(spec)

    def _build(self, inputs: Any) -> None:
        if type(self).build is Model.build:
            self.built = True  # the layers make their weights when they are called
        else:
            super()._build(inputs)

    def summary(self, line_length: int | None = None, print_fn: Any = None) -> None:
        """Print the layers, their output shapes and numbers of weights."""
        print_summary(self, line_length, print_fn)


class Sequential(Model):
    """Layers called one after the other.

    Args:
        layers: the layers; a leading `keras.Input`, or `input_shape` in the first layer, lets the
            weights be made at once instead of on the first call.
        name: the model's name.
    """

    def __init__(self, layers: Any = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self._layers: list[Layer] = []
        self._batch_shape: tuple[int | None, ...] | None = None
        for layer in layers or ():
            self._append(layer)
        self._build_if_possible()

    def add(self, layer: Layer) -> None:
        """Append a layer."""
        self._append(layer)
        self._build_if_possible()

    def pop(self) -> Layer:
        """Remove the last layer and return it."""
        if not self._layers:
            raise ValueError(f'Model "{self.name}" has no layers')
        return self._layers.pop()

    def _append(self, layer: Any) -> None:
        if not isinstance(layer, Layer):
            raise TypeError(
                f'Model "{self.name}": a Sequential holds layers, got {layer!r}; wrap a function '
                "in a Layer or pass an instance instead of a class"
            )
        if any(layer is other for other in self._layers):
            raise ValueError(f'Model "{self.name}" already has layer "{layer.name}"')
        if layer._example_shape is not None and self._batch_shape is None and not self._layers:
            size = getattr(layer, "batch_shape", (None,))[0]
            self._batch_shape = (size, *layer._example_shape)
        if type(layer).__name__ != "InputLayer":
            self._layers.append(layer)

    @property
    def layers(self) -> list[Layer]:
        return list(self._layers)

    def _build_if_possible(self) -> None:
        if self._batch_shape is not None and self._layers:
            self.build(self._batch_shape)

    def build(self, input_shape: Any = None) -> None:
        """Make the weights of all layers for inputs of this shape (batch first)."""
        if input_shape is None:
            return
        shape = tuple(input_shape)
        for layer in self._layers:
            if not layer.built and layer.input_spec is not None:
                fault = layer.input_spec.fault(td.TensorShape(shape))
                if fault:
                    raise ValueError(
                        f'Input 0 of layer "{layer.name}" ({type(layer).__name__}) is '
                        f"incompatible with the layer: {fault}. Full shape received: {shape}"
                    )
            if _knows_its_shapes(layer):
                if not layer.built:
                    layer.build(shape)
                    layer.built = True
                shape = tuple(layer.compute_output_shape(shape))
            else:
                shape = _traced_shape(layer, shape)
            layer._output_shape = shape
        self.built = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = tuple(input_shape)
        for layer in self._layers:
            shape = tuple(layer.compute_output_shape(shape))
        return shape

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        outputs = inputs
        for layer in self._layers:
            outputs = layer(outputs, training=training)
        return outputs

    def get_config(self) -> dict[str, Any]:
        layers = [{"class_name": type(x).__name__, "config": x.get_config()} for x in self._layers]
        return {"name": self.name, "layers": layers, "input_shape": self._batch_shape}


def _traced_shape(layer: Layer, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The shape of a layer's output, from tracing its `call`, which makes its weights."""
    trace = td.function(lambda x: layer(x))
    output = trace.get_concrete_function(td.TensorSpec(shape, layer.dtype)).structured_outputs
    return tuple(output.shape)


def _knows_its_shapes(layer: Layer) -> bool:
    """Whether `compute_output_shape` speaks for the layer: not where a user's layer inherits it."""
    if isinstance(layer, Sequential):
        return all(_knows_its_shapes(x) for x in layer.layers)
    kind = type(layer)
    own = kind.__module__.startswith("treadle.")
    return own or kind.compute_output_shape is not Layer.compute_output_shape
