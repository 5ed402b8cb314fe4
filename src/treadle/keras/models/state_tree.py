"""The values of a model's variables, in dicts by the parts of their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.keras.variables import path_of

if TYPE_CHECKING:
    from treadle.keras.models.model import Model

_FORMATS = ("numpy_array", "backend_tensor")


def _kinds(model: Model) -> dict[str, list[td.Variable]]:
    optimizer = model.optimizer
    return {
        "trainable_variables": model.trainable_variables,
        "non_trainable_variables": model.non_trainable_variables,
        "optimizer_variables": [] if optimizer is None else list(optimizer.variables),
        "metrics_variables": model.metrics_variables,
    }


def values_of(model: Model, value_format: str) -> dict[str, Any]:
    """What `Model.get_state_tree` gives."""
    if value_format not in _FORMATS:
        raise ValueError(
            "Invalid `value_format` argument. Expected one of {'numpy_array', 'backend_tensor'}. "
            f"Received: value_format={value_format}"
        )
    return {name: _tree(variables, value_format) for name, variables in _kinds(model).items()}


def _tree(variables: list[td.Variable], value_format: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    seen = set()
    for variable in variables:
        path = path_of(variable)
        if path in seen:
            raise ValueError(
                f"The following variable path is found twice in the model: '{path}'. "
                "`get_state_tree()` can only be called when all variable paths are unique. Make "
                "sure to give unique names to your layers (and other objects)."
            )
        seen.add(path)
        *parts, last = path.split("/")
        inner = found
        for part in parts:
            inner = inner.setdefault(part, {})
        as_array = value_format == "numpy_array"
        inner[last] = variable.numpy() if as_array else variable.read_value()
    return found


def assign_tree(model: Model, tree: Mapping[str, Any]) -> None:
    """What `Model.set_state_tree` does."""
    kinds = _kinds(model)
    for name in tree:
        if name not in kinds:
            raise ValueError(f"Unknown variable name: {name}")
    for name, inner in tree.items():
        values = dict(_flat(inner, ""))
        for variable in kinds[name]:
            if path_of(variable) in values:
                variable.assign(values[path_of(variable)])


def _flat(tree: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}/")
        else:
            yield f"{before}{name}", value
