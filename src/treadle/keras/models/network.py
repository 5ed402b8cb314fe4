"""The calls of layers between the inputs and the outputs of a functional model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import serialization
from treadle.keras.layers.base import Layer
from treadle.keras.layers.functions import Operation
from treadle.keras.layers.inputs import InputLayer
from treadle.keras.layers.symbolic import KerasTensor, Node
from treadle.keras.masks import mask_of


class Network:
    """From KerasTensors to KerasTensors.

    Args:
        inputs, outputs: nested structures of KerasTensors.

    Raises:
        TypeError: something else is among them.
        ValueError: an output depends on an Input that is not among the inputs.
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.sources = _checked(inputs, "inputs")
        self.targets = _checked(outputs, "outputs")
        self.starts = {id(source): _start(source) for source in self.sources}
        self.nodes, first_seen = self._ordered()
        self.called = self._by_depth(first_seen)  # operators, too
        # The positions of layers among what is called, and the layers.
        self.places = [i for i, step in enumerate(self.called) if not isinstance(step, Operation)]
        self.layers = [self.called[place] for place in self.places]

    def made_by(self, tensor: KerasTensor) -> Node | None:
        """The call that gives a tensor in this network."""
        return self.starts.get(id(tensor), tensor.node)

    def _ordered(self) -> tuple[list[Node], list[Layer]]:
        """The calls, each after those that it needs, and the layers in the order they were met."""
        given = {id(source) for source in self.sources}
        nodes: dict[int, Node] = {}
        met: dict[int, Layer] = {}
        stack: list[tuple[KerasTensor, bool]] = [(t, False) for t in reversed(self.targets)]
        while stack:
            tensor, finished = stack.pop()
            node = tensor.node
            assert node is not None
            if id(node) in nodes:
                continue
            if finished:
                nodes[id(node)] = node
                continue
            if id(tensor) in given:
                met.setdefault(id(self.starts[id(tensor)].layer), self.starts[id(tensor)].layer)
                continue
            met.setdefault(id(node.layer), node.layer)
            if not node.sources:
                raise ValueError(
                    f"Model: an output depends on {tensor!r}, which is not among the inputs "
                    f"{[source.name for source in self.sources]}"
                )
            stack.append((tensor, True))
            stack.extend((source, False) for source in reversed(node.sources))
        for node in self.starts.values():
            met.setdefault(id(node.layer), node.layer)
        return list(nodes.values()), list(met.values())

    def _by_depth(self, first_seen: list[Layer]) -> list[Layer]:
        """The layers as Keras lists them: those farthest from the outputs first."""
        depth: dict[int, int] = {}
        of_layer = {id(layer): 0 for layer in first_seen}
        for node in reversed(self.nodes):
            own = max(depth.get(id(node), 0), of_layer[id(node.layer)])
            of_layer[id(node.layer)] = own
            for source in node.sources:
                before = self.made_by(source)
                if before is not None:
                    depth[id(before)] = max(depth.get(id(before), 0), own + 1)
                    if not before.sources:
                        at = id(before.layer)
                        of_layer[at] = max(of_layer.get(at, 0), own + 1)
        return sorted(first_seen, key=lambda layer: -of_layer[id(layer)])

    def run(self, inputs: Any) -> Any:
        """The outputs for tensors in the structure of the inputs, or in a dict by their names."""
        values: dict[int, Any] = {}
        for source, value in zip(self.sources, self._listed(inputs), strict=True):
            if value is None:
                _check_optional(source)
                values[id(source)] = None
                continue
            values[id(source)] = given = fitted(value, source)
            if source.sparse:
                given.set_shape(source.shape)
            if not source.shape[1:].is_compatible_with(given.shape[1:]):  # any number of examples
                raise ValueError(
                    f'Model: input "{source.name}" has shape {source.shape}, got a tensor of '
                    f"shape {value.shape}"
                )
        for node in self.nodes:
            node.run(values)
        results = td.nest.map_structure(lambda t: values[id(t)], self.outputs)
        alone = isinstance(results, list | tuple) and len(results) == 1
        return results[0] if alone else results

    def _listed(self, inputs: Any) -> list[Any]:
        self._warn_of_structure(inputs)
        if isinstance(inputs, Mapping) and _has_more(inputs, self.inputs):
            inputs = {key: inputs[key] for key in self.inputs}
        if isinstance(inputs, Mapping) and not isinstance(self.inputs, Mapping):
            _check_there([source.name for source in self.sources], inputs)
            return [inputs[source.name] for source in self.sources]
        if isinstance(inputs, Mapping) and isinstance(self.inputs, Mapping):
            _check_there(self.inputs, inputs)
        leaves: list[Any] = td.nest.flatten(inputs)
        if len(leaves) != len(self.sources):
            raise ValueError(
                f"Model: expected {len(self.sources)} inputs "
                f"({', '.join(s.name for s in self.sources)}), got {len(leaves)}"
            )
        return leaves


    def _warn_of_structure(self, inputs: Any) -> None:
        """Warn where the inputs have another structure, which their order makes up for; lists and
        tuples are one.

        Raises:
            ValueError: names in another order than the alphabet's say what inputs are.
        """
        named = isinstance(inputs, Mapping)
        described = isinstance(self.inputs, Mapping)
        if (named and not described) or _outline(inputs) == _outline(self.inputs):
            return
        alone = not named and not isinstance(inputs, list | tuple)
        if alone and len(self.sources) == 1 and not described:
            return
        expected = td.nest.map_structure(lambda source: source.name, self.inputs)
        found = td.nest.map_structure(
            lambda x: "None" if x is None else f"Tensor(shape={tuple(np.shape(x))})", inputs
        )
        message = (
            "The structure of `inputs` doesn't match the expected structure.\n"
            f"Expected: {expected}\nReceived: inputs={found}"
        )
        if described and not named and list(self.inputs) != sorted(self.inputs):
            raise ValueError(message)
        warnings.warn(message, stacklevel=6)


def _check_there(names: Iterable[str], inputs: Mapping[str, Any]) -> None:
    missing = [name for name in names if name not in inputs]
    if missing:
        raise ValueError(f"Model: no input named {missing} among {sorted(inputs)}")


def _has_more(inputs: Mapping[str, Any], described: Any) -> bool:
    """Whether a dict of inputs has those of a model, and others."""
    return isinstance(described, Mapping) and set(inputs) > set(described)


def _outline(structure: Any) -> Any:
    """A structure without its leaves, lists as tuples."""
    if isinstance(structure, Mapping):
        return {key: _outline(structure[key]) for key in sorted(structure)}
    if isinstance(structure, list | tuple):
        return tuple(map(_outline, structure))
    return None


def _check_optional(source: KerasTensor) -> None:
    """Refuse None instead of an Input that is not optional."""
    layer = None if source.node is None else source.node.layer
    if isinstance(layer, InputLayer) and not layer.optional:
        raise ValueError(
            f"The input '{source.name}' is not optional, but None was passed. Please provide a "
            "valid tensor, or make it with keras.Input(..., optional=True)."
        )


def _start(source: KerasTensor) -> Node:
    """The Input where a network begins: one of its own in place of a result of a layer, which is
    not part of the network then."""
    assert source.node is not None
    if not source.node.sources:
        return source.node
    made = InputLayer(
        batch_shape=tuple(source.shape), dtype=source.dtype, sparse=source.sparse,
        ragged=source.ragged,
    )  # fmt: skip
    return made._call_nodes[0]


def _checked(structure: Any, what: str) -> list[KerasTensor]:
    leaves: list[Any] = td.nest.flatten(structure)
    for leaf in leaves:
        if what == "inputs" and isinstance(leaf, KerasTensor) and leaf.node is None:
            InputLayer(input_tensor=leaf)  # a program made it without keras.Input
        if not isinstance(leaf, KerasTensor) or leaf.node is None:
            raise TypeError(
                f"Model: {what} must be what keras.Input(...) and calls of layers on it give, "
                f"got {leaf!r}"
            )
    if not leaves:
        raise ValueError(f"Model: {what} is empty")
    return leaves


def fitted(value: Any, source: KerasTensor) -> Any:
    """The value in the dtype of its Input, with a last axis of 1 added or taken away; dense where
    that is."""
    if value.dtype != source.dtype:
        value = td.cast(value, source.dtype)
    if source.sparse or source.ragged:
        return value
    if not isinstance(value, td.Tensor):
        value = td.sparse.to_dense(value) if hasattr(value, "dense_shape") else value.to_tensor()
    rank, wanted = len(value.shape), len(source.shape)
    if rank == wanted + 1 and value.shape[-1] == 1:
        value = td.squeeze(value, axis=-1)
    elif rank == wanted - 1 and source.shape[-1] == 1:
        value = td.expand_dims(value, -1)
    return value


def _tensor(value: Any) -> Any:
    """A value as a tensor; sparse and ragged ones as they are."""
    return value if td.is_tensor(value) else td.convert_to_tensor(value)


class Function(Operation):
    """From KerasTensors to KerasTensors: the steps between them, called on tensors.

    Args:
        inputs, outputs: nested structures of KerasTensors.
        name: of the function.

    Raises:
        TypeError: something else is among them.
        ValueError: an output depends on an Input that is not among the inputs.
    """

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None) -> None:
        super().__init__(name)
        self._layer_network = Network(inputs, outputs)
        self.inputs, self.outputs = self._layer_network.sources, self._layer_network.targets
        made = {id(node.layer) for node in self._layer_network.nodes}
        self.operations = [
            layer for layer in self._layer_network.called
            if id(layer) in made or isinstance(layer, InputLayer)
        ]  # fmt: skip

    def call(self, inputs: Any) -> Any:
        return self._layer_network.run(td.nest.map_structure(_tensor, inputs))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the results for these shapes of the inputs."""
        shapes = td.nest.flatten(input_shape) if isinstance(input_shape, dict) else (
            list(input_shape) if input_shape and isinstance(input_shape[0], tuple | list)
            else [input_shape]
        )  # fmt: skip
        given = [KerasTensor(shape, source.dtype)
                 for shape, source in zip(shapes, self.inputs, strict=True)]  # fmt: skip
        found = self(td.nest.pack_sequence_as(self._layer_network.inputs, given))
        return td.nest.map_structure(lambda x: tuple(x.shape), found)


@serialization.register_keras_serializable("treadle", "Mask")
class _Mask(Operation):
    """The mask of a value, for programs that read it. It is known when the model runs, so files
    name this class, which Keras does not know."""

    def call(self, x: Any) -> Any:
        return mask_of(x)


def _mask(tensor: KerasTensor) -> KerasTensor | None:
    """What programs of Keras read as `_keras_mask`: the mask that the value will have, or None."""
    if tensor.mask is None:
        return None
    spec = KerasTensor(tensor.mask.shape, tensor.mask.dtype)
    made: KerasTensor = Node(_Mask(), (tensor,), {}, spec).outputs
    return made


KerasTensor._keras_mask = property(_mask)  # type: ignore[attr-defined]
