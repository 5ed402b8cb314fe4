"""Functional models as plain data and back, as Keras 3 describes them.

Each layer says by its ``inbound_nodes`` what it was called on. A result of a layer is named by the
layer, the number of the call and its place among the results: its ``keras_history``.
"""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.layers.inputs import InputLayer
from treadle.keras.layers.symbolic import KerasTensor, Node
from treadle.keras.models.network import Network
from treadle.keras.ops.operations import FunctionOperation, restored
from treadle.keras.serialization import (
    deserialize_keras_object,
    serialize_keras_object,
    without_shapes,
)

_TENSOR = "__keras_tensor__"


def describe(network: Network) -> dict[str, Any]:
    """The layers of a network, their calls, and its inputs and outputs."""
    nodes: dict[int, list[Node]] = {id(layer): [] for layer in network.called}
    for node in [*network.starts.values(), *network.nodes]:
        if node not in nodes[id(node.layer)]:
            nodes[id(node.layer)].append(node)

    def history(tensor: KerasTensor) -> list[Any]:
        start = network.starts.get(id(tensor))
        if start is not None:
            return [start.layer.name, nodes[id(start.layer)].index(start), 0]
        node = tensor.node
        assert node is not None
        return [
            node.layer.name, nodes[id(node.layer)].index(node),
            next(i for i, result in enumerate(node.results) if result is tensor),
        ]  # fmt: skip

    def plain(value: Any) -> Any:
        if isinstance(value, KerasTensor):
            config = {
                "shape": value.shape.as_list(), "dtype": value.dtype.name,
                "keras_history": history(value),
            }  # fmt: skip
            return {"class_name": _TENSOR, "config": config}
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        if isinstance(value, dict):
            return {key: plain(v) for key, v in value.items()}
        return serialize_keras_object(value)

    described = []
    for layer in network.called:
        calls = [
            {"args": plain(node.structure[0]), "kwargs": plain(node.structure[1])}
            for node in nodes[id(layer)]
            if node.sources
        ]
        described.append(_described(layer) | {"name": layer.name, "inbound_nodes": calls})
    return {
        "layers": described,
        "input_layers": _mapped(network.inputs, history),
        "output_layers": _mapped(network.outputs, history),
    }


def _described(layer: Layer) -> dict[str, Any]:
    found: dict[str, Any] = serialize_keras_object(layer)
    if isinstance(layer, FunctionOperation):
        found["registered_name"] = found["class_name"]
    return found


def _mapped(structure: Any, function: Any) -> Any:
    """A structure of KerasTensors with each replaced; of a list of one, Keras keeps that one."""
    if isinstance(structure, KerasTensor):
        return function(structure)
    if isinstance(structure, dict):
        return {key: _mapped(value, function) for key, value in structure.items()}
    return [_mapped(value, function) for value in structure]


def restore(config: dict[str, Any]) -> tuple[Any, Any]:
    """The inputs and outputs that `describe` described.

    Raises:
        ValueError: a layer is called on what is not there.
    """
    layers: dict[str, Any] = {}
    waiting: list[tuple[str, int, dict[str, Any]]] = []
    made: dict[tuple[str, int, int], KerasTensor] = {}
    for entry in config["layers"]:
        name = entry.get("name") or entry["config"]["name"]
        layer = layers[name] = _layer(entry)
        if isinstance(layer, InputLayer):
            made[name, 0, 0] = layer.output
        waiting += [(name, n, call) for n, call in enumerate(entry["inbound_nodes"])]

    def found(value: Any) -> Any:
        if isinstance(value, dict) and value.get("class_name") == _TENSOR:
            name, node, place = value["config"]["keras_history"]
            return made[name, node, place]
        if isinstance(value, list):
            return [found(v) for v in value]
        if isinstance(value, dict) and "class_name" not in value:
            return {key: found(v) for key, v in value.items()}
        return deserialize_keras_object(value)

    while waiting:
        left = []
        for name, number, call in waiting:
            late = number and (name, number - 1, 0) not in made
            try:
                args, kwargs = found(call["args"]), found(call["kwargs"])
            except KeyError:
                late = True
            if late:
                left.append((name, number, call))
                continue
            if layers[name]._trains_by_default:
                kwargs.pop("training", None)  # Keras writes the default down
            kwargs = {k: v for k, v in kwargs.items() if k not in _PASSED or _says(v)}
            is_step = isinstance(layers[name], FunctionOperation)
            if is_step and args[1:] and isinstance(args[1], list):
                args[1] = tuple(args[1])  # an index
            outputs = td.nest.flatten(layers[name](*args, **kwargs))
            made |= {(name, number, place): tensor for place, tensor in enumerate(outputs)}
        if len(left) == len(waiting):
            raise ValueError(
                f"The config of the model is not whole: {left[0][0]!r} is called on what no layer "
                "gives"
            )
        waiting = left
    return _tensors(config["input_layers"], made), _tensors(config["output_layers"], made)


def _says(value: Any) -> bool:
    """Whether an argument is more than a default."""
    return isinstance(value, KerasTensor) or bool(value)


# Arguments of calls that models pass on by themselves.
_PASSED = ("training", "mask", "initial_state")


def _layer(entry: dict[str, Any]) -> Any:
    if str(entry.get("module", "")).startswith(("keras.src.ops", "keras.src.activations")):
        return restored(entry["class_name"], deserialize_keras_object(entry["config"]))
    # The weights are made when the layer is called.
    return deserialize_keras_object(without_shapes(entry))


def _tensors(listed: Any, made: dict[tuple[str, int, int], KerasTensor]) -> Any:
    if isinstance(listed, dict):
        return {key: _tensors(value, made) for key, value in listed.items()}
    if len(listed) == 3 and isinstance(listed[0], str) and isinstance(listed[1], int):
        return made[listed[0], listed[1], listed[2]]
    return [_tensors(value, made) for value in listed]
