"""clone_model: a model of equal layers, or of others in their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras import lambdas, serialization
from treadle.keras.layers.base import Layer
from treadle.keras.layers.functions import Operation
from treadle.keras.layers.inputs import Input, InputLayer
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.models.model import Model, Sequential


def clone_model(
    model: Any, input_tensors: Any = None, clone_function: Callable[[Layer], Layer] | None = None,
    call_function: Callable[..., Any] | None = None, recursive: bool = False,
) -> Any:  # fmt: skip
    """A model of equal layers with new weights.

    Args:
        input_tensors: what the new model begins with, instead of inputs like those of the model.
        clone_function: gives the layer that stands for one of the model's; an equal one when
            omitted.
        call_function: ``call_function(layer, *args, **kwargs)`` calls the new layers of a
            functional model.
        recursive: whether the layers of models in the model are cloned one by one, too.

    Raises:
        ValueError: a Sequential and a `call_function`, or such functions for a model of a class of
            its own.
    """
    with lambdas.copying():
        return _cloned(model, input_tensors, clone_function, call_function, recursive)


def _cloned(
    model: Any, input_tensors: Any, clone_function: Any, call_function: Any, recursive: bool
) -> Any:
    """`clone_model`."""
    plain = input_tensors is None and clone_function is None and call_function is None
    if plain and not recursive:
        # The classes of its layers need not be registered: they are here.
        known = {type(layer).__name__: type(layer) for layer in model.layers}
        with serialization.custom_object_scope(known):
            return _compiled_as(model, type(model).from_config(model.get_config()))
    clones = _Clones(clone_function, call_function, recursive)
    if isinstance(model, Sequential):
        if call_function is not None:
            raise ValueError(
                "clone_model: `call_function` is not supported with Sequential models, whose "
                "layers are not called when they are made: use it with functional models"
            )
        return _compiled_as(model, clones.sequential(model, input_tensors))
    if getattr(model, "_layer_network", None) is None:
        raise ValueError(
            "clone_model: arguments besides the model are only supported for Sequential and "
            f"functional models, got {type(model).__name__}"
        )
    return _compiled_as(model, clones.functional(model, input_tensors))


def _compiled_as(model: Any, made: Any) -> Any:
    """The new model, compiled as the other one is."""
    if model.compiled:
        made.compile_from_config(model.get_compile_config())
    return made


class _Clones:
    """The layers made so far, each once."""

    def __init__(self, clone: Any, call: Any, recursive: bool) -> None:
        self._clone, self._call, self._recursive = clone, call, recursive
        self._made: dict[int, Layer] = {}

    def of(self, layer: Layer) -> Layer:
        """The layer that stands for another one."""
        if isinstance(layer, Operation):  # it has no weights
            return layer
        found = self._made.get(id(layer))
        if found is None:
            found = self._made[id(layer)] = self._new(layer)
        return found

    def _new(self, layer: Layer) -> Layer:
        if self._recursive and isinstance(layer, Model):
            made: Layer = clone_model(layer, None, self._clone, self._call, True)
            return made
        if self._clone is not None:
            return self._clone(layer)  # type: ignore[no-any-return]
        return type(layer).from_config(layer.get_config())

    def sequential(self, model: Sequential, given: Any) -> Sequential:
        """A Sequential of the clones."""
        listed = td.nest.flatten(given) if given is not None else []
        if len(listed) > 1:
            raise ValueError(
                f"clone_model: a Sequential has one input, got {len(listed)} input_tensors"
            )
        start = model._first_input
        if start is None and model._layer_network is not None:
            start = model._layer_network.sources[0]
        first = listed or ([] if start is None else [_input_like(start)])
        return Sequential([*first, *(self.of(layer) for layer in model.layers)], name=model.name)

    def functional(self, model: Any, given: Any) -> Any:
        """A functional model of the clones, called as the layers were."""
        network = model._layer_network
        inputs = given
        if given is None:
            inputs = td.nest.map_structure(_input_like, network.inputs)
        leaves = td.nest.flatten(inputs)
        named = isinstance(inputs, dict), isinstance(network.inputs, dict)
        if named[0] != named[1] and len(leaves) > 1:
            raise ValueError(
                "`input_tensors` must have the same structure as model.input\nReceived: "
                f"{inputs}\nExpected: {network.inputs}"
            )
        if len(leaves) != len(network.sources):
            raise ValueError(
                f"clone_model: the model has {len(network.sources)} inputs, got {len(leaves)} "
                "input_tensors"
            )
        values = {id(s): leaf for s, leaf in zip(network.sources, leaves, strict=True)}
        for node in network.nodes:
            if isinstance(node.layer, InputLayer):
                continue
            own = [values[id(x)] if isinstance(x, KerasTensor) else x for x in node.leaves]
            args, kwargs = td.nest.pack_sequence_as(node.structure, own)
            layer = self.of(node.layer)
            found = layer(*args, **kwargs) if self._call is None else self._call(
                layer, *args, **kwargs
            )
            results = zip(node.results, td.nest.flatten(found), strict=True)
            values.update((id(k), v) for k, v in results)
        outputs = td.nest.map_structure(lambda t: values[id(t)], network.outputs)
        return type(model)(inputs, outputs, name=model.name)


def _input_like(source: KerasTensor) -> Any:
    return Input(batch_shape=tuple(source.shape), dtype=source.dtype, name=source.name)
