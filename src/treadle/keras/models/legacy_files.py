"""Models and weights in HDF5 files as Keras 2 had them, which Keras 3 reads and writes too.

The attributes of such a file are texts: the config of the model and how it was compiled. Its layers
are listed, each with the names of its arrays; layers without weights are in the list, too.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import treadle as td
from treadle.keras import losses
from treadle.keras.layers.base import Layer
from treadle.keras.models import weight_files
from treadle.keras.ops.operations import KINDS
from treadle.keras.serialization import (
    deserialize_keras_object,
    get_registered_object,
    serialize_keras_object,
)
from treadle.keras.variables import path_of

if TYPE_CHECKING:
    from treadle.keras.models.model import Model

_CONFIG, _TRAINING, _WEIGHTS = "model_config", "training_config", "model_weights"
_OPTIMIZER, _TOP = "optimizer_weights", "top_level_model_weights"
_MOST_LISTED = 64512  # bytes of names in one attribute, of Keras


def is_legacy(file: Any) -> bool:
    """Whether an open HDF5 file is one of these, and not one of Keras 3's own."""
    return "layer_names" in file.attrs or "layer_names0" in file.attrs or _WEIGHTS in file


# -- configs ---------------------------------------------------------------------------------------


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a layer as these files have it: without modules, which Keras 3 added. Calls of
    functions keep theirs, and layers that are called as one: that alone tells `keras.ops.add` from
    the layer Add."""
    if str(config.get("module")).startswith(("keras.src.ops", "keras.src.activations")):
        return dict(config)
    found = {
        "class_name": config.get("registered_name") or config["class_name"],
        "config": _with_layers(config["config"], _plain),
    }
    kept = ("name", "inbound_nodes", *(("module",) if found["class_name"] in KINDS else ()))
    return found | {key: config[key] for key in kept if key in config}


def _complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a layer of such a file as Keras 3 has it."""
    found = dict(config)
    inner = found["config"] = dict(_with_layers(config["config"], _complete))
    shape, axis = inner.pop("batch_input_shape", None), inner.get("axis")
    if shape is not None and found["class_name"] == "InputLayer":
        inner["batch_shape"] = shape
    elif shape is not None:
        inner["input_shape"] = shape[1:]
    if isinstance(axis, list) and len(axis) == 1:
        inner["axis"] = axis[0]
    if "inbound_nodes" in found:
        found["inbound_nodes"] = [_call(node) for node in found["inbound_nodes"]]
    if "module" not in found and found["class_name"] in KINDS and "trainable" not in inner:
        found["module"] = "keras.src.ops"  # a layer's config says whether it is trained
    return found


def _with_layers(config: Any, change: Any) -> Any:
    if not isinstance(config, Mapping) or not isinstance(config.get("layers"), list | tuple):
        return config  # a layer of a program may have a number that it calls so
    return {**config, "layers": [change(layer) for layer in config["layers"]]}


def _call(node: Any) -> Any:
    """A call of a layer: Keras 2 listed the tensors it was given, the arguments with the first."""
    if not isinstance(node, list):
        return node
    tensors = [
        {"class_name": "__keras_tensor__", "config": {"keras_history": given[:3]}}
        for given in node
    ]
    kwargs = node[0][3] if node and len(node[0]) > 3 else {}
    return {"args": [tensors[0] if len(tensors) == 1 else tensors], "kwargs": kwargs}


def _named(value: Any, of_text: Callable[[str], str] = str) -> Any:
    """What `compile` was given as these files have it: functions by their names, texts as `of_text`
    gives them."""
    if isinstance(value, list):
        return [_named(v, of_text) for v in value]
    if isinstance(value, str):
        return of_text(value)
    if not isinstance(value, dict):
        return value
    if "class_name" not in value:
        return {key: _named(v, of_text) for key, v in value.items()}
    name = value.get("registered_name") or value["class_name"]
    if value["class_name"] == "function":
        return value["registered_name"] or value["config"]
    return {"class_name": name, "config": value["config"]}


def _full_name(loss: str) -> str:
    """The name of a loss function: Keras 3 does not find "mse" when it reads such a file."""
    return getattr(losses.get(loss), "__name__", loss)


def _training_config(model: Model) -> dict[str, Any]:
    given = model.get_compile_config() or {}
    optimizer = given.pop("optimizer")
    found = {key: _named(v) for key, v in given.items()}
    return found | {
        "loss": _named(given["loss"], _full_name), "optimizer_config": _named(optimizer)
    }  # fmt: skip


# -- weights ---------------------------------------------------------------------------------------


def _paths(layer: Layer, path: str) -> Iterator[tuple[int, str]]:
    """The ids of the variables in a layer with their paths: names of layers, then that of the
    variable."""
    inside = layer._holdings
    for variable in inside.variables:
        yield id(variable), f"{path}/{variable.name.removesuffix(':0').rpartition('/')[2]}"
    for inner in inside.layers:
        yield from _paths(inner, f"{path}/{inner.name}")


def _write_list(group: Any, name: str, texts: Sequence[str]) -> None:
    """An attribute that is a list of texts, in several parts where it would be too long."""
    longest = max((len(text.encode()) for text in texts), default=1)
    most = max(_MOST_LISTED // longest, 1)
    if len(texts) <= most:
        group.attrs[name] = [text.encode() for text in texts]
        return
    for number, start in enumerate(range(0, len(texts), most)):
        part = [text.encode() for text in texts[start : start + most]]
        group.attrs[f"{name}{number}"] = np.array(part)


def _read_list(group: Any, name: str) -> list[str]:
    names, number = [name], 0
    if name not in group.attrs:
        names = []
        while f"{name}{number}" in group.attrs:
            names.append(f"{name}{number}")
            number += 1
    return [_text(text) for part in names for text in group.attrs[part]]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _write_arrays(group: Any, paths: Sequence[str], variables: Sequence[td.Variable]) -> None:
    used: dict[str, int] = {}
    names = []
    for path in paths:
        number = used[path] = used.get(path, -1) + 1
        names.append(f"{path}_{number}" if number else path)
    _write_list(group, "weight_names", names)
    for name, variable in zip(names, variables, strict=True):
        weight_files.put(group, name, np.asarray(variable.numpy()))


def _arrays(group: Any) -> dict[str, Any]:
    """The arrays of a group by their places, as `weight_files.difference` takes them."""
    listed = _read_list(group, "weight_names")
    return {str(number): group[name] for number, name in enumerate(listed)}


def _ordered(layer: Layer) -> list[td.Variable]:
    return layer.trainable_weights + layer.non_trainable_weights


def _own_weights(model: Model) -> list[td.Variable]:
    """The variables that a model holds beside those of its layers."""
    own = model._holdings.variables
    return [v for v in own if v.trainable] + [v for v in own if not v.trainable]


def write_weights(model: Model, group: Any, own_names: bool = False) -> None:
    """Write the weights of the layers into an open group of an HDF5 file.

    Args:
        own_names: whether arrays are called as the variables, which Keras 2 names with their
            scopes; else by the layers and variables that they are in.
    """
    layers = model.layers
    _write_list(group, "layer_names", [layer.name for layer in layers])
    group.attrs["backend"], group.attrs["keras_version"] = "tensorflow", td.keras.__version__
    for layer in layers:
        paths, variables = dict(_paths(layer, layer.name)), _ordered(layer)
        inner = group.create_group(layer.name)
        names = [v.name if own_names else paths[id(v)] for v in variables]
        _write_arrays(inner, names, variables)
    own = _own_weights(model)
    names = [v.name.removesuffix(":0") for v in own]
    _write_arrays(group.create_group(_TOP), names, own)


def read_weights(
    model: Model, file: Any, name: str, skip_mismatch: bool = False, by_name: bool = False
) -> None:
    """Assign the weights of a model: the layers with weights in their order, or by their names.

    Raises:
        ValueError: the layers with weights are others than the model's.
    """
    file = file.get(_WEIGHTS, file)
    groups = [(layer, _arrays(file[layer])) for layer in _read_list(file, "layer_names")]
    if by_name:
        known = {layer.name: layer for layer in model.layers}
        pairs = [(known[label], group) for label, group in groups if label in known]
    else:
        groups = [(label, group) for label, group in groups if group]
        layers = [layer for layer in model.layers if layer.weights]
        if len(groups) != len(layers):
            raise ValueError(
                f"{name}: the file has {len(groups)} layers with weights, model {model.name!r} has "
                f"{len(layers)}"
            )
        pairs = [(layer, group) for layer, (_, group) in zip(layers, groups, strict=True)]
    listed = [(f"layer {layer.name!r}", _ordered(layer), group) for layer, group in pairs]
    if _TOP in file:
        listed.append((f"model {model.name!r}", _own_weights(model), _arrays(file[_TOP])))
    assigned: list[tuple[td.Variable, Any]] = []
    for where, variables, group in listed:
        fault = weight_files.difference(variables, group)
        if fault is None:
            assigned += [(v, group[str(number)]) for number, v in enumerate(variables)]
        elif skip_mismatch:
            warnings.warn(f"{name}: {where} is left as it is: {fault}", stacklevel=4)
        else:
            raise ValueError(f"{name}: {where}: {fault}")
    weight_files.assign([(v, weight_files.array_of(given)) for v, given in assigned])


# -- models ----------------------------------------------------------------------------------------


def write(model: Model, file: Any, include_optimizer: bool = True) -> None:
    """Write a model into an open HDF5 file.

    Args:
        include_optimizer: whether to write how it was compiled, and what its optimizer keeps.
    """
    file.attrs["keras_version"], file.attrs["backend"] = td.keras.__version__, "tensorflow"
    file.attrs[_CONFIG] = _kept(_plain(serialize_keras_object(model)))
    compiled = include_optimizer and model.compiled
    if compiled:
        file.attrs[_TRAINING] = _kept(_training_config(model))
    write_weights(model, file.create_group(_WEIGHTS))
    if compiled:
        optimizer = model.optimizer
        kept = optimizer._in_file(model.trainable_variables)
        paths = [path_of(v) for v in kept]
        _write_arrays(file.create_group(_OPTIMIZER), paths, kept)


def _kept(config: Any) -> Any:
    """A config as a string of its length, which is where the file has checksums."""
    return np.bytes_(json.dumps(config).encode())


def model_config(file: Any, name: str) -> dict[str, Any]:
    """The config of the model in an open file, as Keras 3 has it.

    Raises:
        ValueError: the file has weights only.
    """
    text = file.attrs.get(_CONFIG)
    if text is None:
        raise ValueError(
            f"No model config found in the file at {name}: it has weights, which "
            "model.load_weights reads"
        )
    return _complete(json.loads(_text(text)))


def compile_as_stored(model: Model, file: Any, name: str) -> None:
    """Compile a model as an open file says, and give its optimizer what it kept."""
    text = file.attrs.get(_TRAINING)
    if text is None:
        warnings.warn(
            f"{name}: no training configuration found in the file, so the model is not compiled",
            stacklevel=4,
        )
        return
    config = json.loads(_text(text))
    taken = {key: config.get(key) for key in ("loss", "metrics", "weighted_metrics")}
    model.compile(
        optimizer=deserialize_keras_object(config["optimizer_config"]),
        loss_weights=config.get("loss_weights"), **_functions(taken),
    )  # fmt: skip
    if _OPTIMIZER not in file:
        return
    arrays = _arrays(file[_OPTIMIZER])
    kept = model.optimizer._in_file(model.trainable_variables)[: len(arrays)]  # slots come late
    fault = weight_files.difference(kept, arrays)
    if fault is not None:
        warnings.warn(
            f"{name}: the optimizer {model.optimizer.name!r} starts anew: {fault}", stacklevel=4
        )
        return
    given = [weight_files.array_of(arrays[str(number)]) for number in range(len(kept))]
    weight_files.assign(list(zip(kept, given, strict=True)))


def _functions(value: Any) -> Any:
    """What `_named` described; the names of the program's functions as those functions."""
    if isinstance(value, list):
        return [_functions(v) for v in value]
    if isinstance(value, dict) and "class_name" not in value:
        return {key: _functions(v) for key, v in value.items()}
    if isinstance(value, dict):
        return deserialize_keras_object(value)
    found = get_registered_object(value) if value else None
    return value if found is None else found
