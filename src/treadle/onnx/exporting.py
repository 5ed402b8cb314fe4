"""Export of functions and models to ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.onnx.messages import model_of
from treadle.onnx.translation import translate
from treadle.tracing.exported import concrete_of, dim_names, result_names
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
    concrete = concrete_of(function, args, kwargs)
    graph = concrete.graph
    values = [*graph.arguments, *graph.results]
    if not graph.results or not all(isinstance(v.spec, TensorSpec) for v in values):
        raise InvalidArgumentError(
            None, None,
            f"{concrete.name}: models in ONNX take tensors and return at least one tensor"
            f"{at(user_origin())}",
        )  # fmt: skip
    block = translate(graph, result_names(concrete.structured_outputs, len(graph.results)))
    made = model_of(block, concrete.name, dim_names(graph))
    if path is not None:
        atomic.write(Path(os.fspath(path)), [made.SerializeToString()], "model")
    return made
