"""What `Model.quantize` does: the tables of a model's layers are kept in fewer bits."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from treadle.keras import quantizers
from treadle.keras.layers.base import Layer
from treadle.keras.layers.quantized import Quantizable

if TYPE_CHECKING:
    from treadle.keras.models.model import Model


def quantize(model: Model, mode: str | None, config: Any, filters: Any) -> None:
    """Quantize the layers that are wanted; those without such a form stay as they are."""
    config = quantizers.resolved(mode, config)
    if filters is not None and not isinstance(filters, str | list | tuple | Callable):
        raise ValueError(
            "The `filters` argument must be a regex string, a list of regex strings, or a "
            f"callable. Received: {type(filters)}"
        )
    wanted = [layer for layer in _inside(model) if _is_wanted(layer, filters)]
    for layer in wanted:
        try:
            layer.quantize(config=config)
        except NotImplementedError as error:
            warnings.warn(str(error), stacklevel=4)


def _inside(layer: Layer) -> Iterator[Quantizable]:
    """The layers with tables in a layer, each once."""
    found: dict[int, Quantizable] = {}

    def walk(one: Any) -> None:
        for inner in one._holdings.layers:
            if isinstance(inner, Quantizable):
                found.setdefault(id(inner), inner)
            else:
                walk(inner)

    walk(layer)
    return iter(found.values())


def _is_wanted(layer: Layer, filters: Any) -> bool:
    if filters is None:
        return True
    if callable(filters):
        return bool(filters(layer))
    patterns = [filters] if isinstance(filters, str) else filters
    return any(re.search(pattern, layer.name) for pattern in patterns)
