"""Export of functions and models to ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treadle.core import nest
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.shapes import symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph
from treadle.onnx.messages import model_of
from treadle.onnx.translation import translate
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.decorator import function as traced
from treadle.train import atomic


def export(function: Callable[..., Any], path: Any = None, /, *args: Any, **kwargs: Any) -> Any:
    """Write a function or model as ONNX, for onnxruntime and others that run it.

    Operations are written with version 20 of ONNX's operators. Branches and loops are If and Loop,
    a `TensorArray` is a sequence. Tensors and variables that the function uses are constants with
    the values that they have now. Sizes that a signature leaves open are named after the argument.
    Assertions are left out.

    Args:
        function: a Python function, one decorated with `td.function`, a concrete function, or a
            model. It is traced, but not run.
        path: the file to write; None: no file is written.
        args, kwargs: what ``function.get_concrete_function`` takes: tensors or `TensorSpec`s, and
            Python values. May be omitted for concrete functions, functions with an
            `input_signature` and models of known inputs.

    Returns:
        The model as a ``ModelProto`` of the package onnx. Its inputs have the names of the
        function's arguments; its outputs are the keys of a dict that the function returns, else
        "output_0", "output_1" and so on.

    Raises:
        ImportError: the package onnx is not installed.
        UnimplementedError: an operation has no counterpart in ONNX; the text names it and its line.
        InvalidArgumentError: the function takes or returns variables or lists, or returns nothing.
    """
    concrete = _concrete(function, args, kwargs)
    graph = concrete.graph
    values = [*graph.arguments, *graph.results]
    if not graph.results or not all(isinstance(v.spec, TensorSpec) for v in values):
        raise InvalidArgumentError(
            None, None,
            f"{concrete.name}: models in ONNX take tensors and return at least one tensor"
            f"{at(user_origin())}",
        )  # fmt: skip
    block = translate(graph, _result_names(concrete.structured_outputs, len(graph.results)))
    made = model_of(block, concrete.name, _dim_names(graph))
    if path is not None:
        atomic.write(Path(os.fspath(path)), [made.SerializeToString()], "model")
    return made


def _concrete(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ConcreteFunction:
    if isinstance(function, ConcreteFunction):
        return function
    if not args and not kwargs and hasattr(function, "input"):  # a model
        args = (nest.map_structure(lambda x: TensorSpec(x.shape, x.dtype, x.name), function.input),)
    if not hasattr(function, "get_concrete_function"):
        function = traced(function)
    return function.get_concrete_function(*args, **kwargs)  # type: ignore[no-any-return]


def _result_names(structure: Any, count: int) -> Sequence[str]:
    """The keys of a dict that a function returns, else numbers."""
    if isinstance(structure, dict) and len(structure) == count:
        keys = nest.flatten({key: str(key) for key in structure})
        return [str(key) for key in keys]
    return [f"output_{k}" for k in range(count)]


def _dim_names(graph: Graph) -> dict[str, str]:
    """Names of open dims: after the first argument that has them, and their axis."""
    found: dict[str, str] = {}
    for param in graph.arguments:
        for axis, dim in enumerate(param.spec.dims):
            found.setdefault(symbol_name(dim) or "", f"{param.name}_dim_{axis}")
    found.pop("", None)
    return found
