"""What an export to another format needs of a function: its graph, and names for its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core import nest
from treadle.core.shapes import symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.decorator import function as traced


def concrete_of(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ConcreteFunction:
    """The concrete function of a function or model.

    Args:
        args, kwargs: what ``get_concrete_function`` takes. A model of known inputs needs none.
    """
    if isinstance(function, ConcreteFunction):
        return function
    if not args and not kwargs and hasattr(function, "input"):  # a model
        args = (nest.map_structure(lambda x: TensorSpec(x.shape, x.dtype, x.name), function.input),)
    if not hasattr(function, "get_concrete_function"):
        function = traced(function)
    return function.get_concrete_function(*args, **kwargs)  # type: ignore[no-any-return]


def result_names(structure: Any, count: int) -> list[str]:
    """The keys of a dict that a function returns, else numbers."""
    if isinstance(structure, dict) and len(structure) == count:
        keys = nest.flatten({key: str(key) for key in structure})
        return [str(key) for key in keys]
    return [f"output_{k}" for k in range(count)]


def dim_names(graph: Graph) -> dict[str, str]:
    """Names of open dims: after the first argument that has them, and their axis."""
    found: dict[str, str] = {}
    for param in graph.arguments:
        for axis, dim in enumerate(param.spec.dims):
            found.setdefault(symbol_name(dim) or "", f"{param.name}_dim_{axis}")
    found.pop("", None)
    return found
