"""Calls of treadle's functions as data (JSON), where an operation is no operation of TensorFlow's.

Functions go by the names in the table of `recorded`, or are public functions of treadle that graphs
have; constants are kept as their bytes. Reading runs no other code.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import inspect
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1.graph import Graph
from treadle.compat.v1.recording import function_named, name_of_function
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.sparse import SparseTensor
from treadle.compat.v1.tensor_array import TensorArray
from treadle.compat.v1.values import (
    ANY_RANKS,
    Body,
    Composite,
    IndexedSlices,
    Literal,
    Operation,
    Tensor,
    element,
)
from treadle.compat.v1.variables import Variable
from treadle.core.origin import at, user_origin

# No graph that somebody sent calls their functions, also where the program has used them itself.
_OF_FILES = ("treadle.io.gfile", "treadle.compat.v1.gfile")
# Modules whose public functions graphs may name.
_MODULES = frozenset(
    f"treadle{m}"
    for m in ("", ".math", ".nn", ".linalg", ".strings", ".image", ".random", ".signal", ".bitwise",
              ".debugging", ".sparse", ".sets")
)  # fmt: skip


def call_data(op: Operation) -> dict[str, Any]:
    """An operation as data; `recorded_again` adds it to a graph."""
    data: dict[str, Any] = {
        "name": op.name, "op": op.type, "device": op.device,
        "inputs": [t.name for t in op.inputs], "control": [c.name for c in op.control_inputs],
    }  # fmt: skip
    for key in ("writes", "assigns"):
        if key in op.attributes:
            tensors = op.attributes[key]
            data[key] = [t.name for t in (tensors if isinstance(tensors, tuple) else (tensors,))]
    try:
        name = name_of_function(op.function)
        if name is None:
            raise _NotData(f"{op.function!r} has no name")
        data |= {"function": name, "args": _encoded(op.args), "kwargs": _encoded(op.kwargs)}
    except _NotData as problem:
        data["missing"] = str(problem)
        data["outputs"] = [
            [t.dtype.name, None if t.shape.rank is None else plain(t.shape)] for t in op.outputs
        ]
    return data


# What objects of several tensors are called.
_KINDS: dict[type, str] = {IndexedSlices: "slices", SparseTensor: "sparse"}


class _NotData(Exception):
    """Something is not written, such as a function of the user."""


def _encoded(value: Any) -> Any:
    tensor = element(value)
    if tensor is not None:
        return {"tensor": tensor.name} if type(value) is Tensor or isinstance(
            value, Variable
        ) else {
            "array": tensor.name}  # fmt: skip
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, td.DType):
        return {"dtype": value.name}
    if isinstance(value, td.TensorShape):
        return {"shape": plain(value)}
    if isinstance(value, np.ndarray | np.generic):
        return {"value": _array_data(np.asarray(value))}
    if isinstance(value, td.Tensor) and not td.inside_function():
        return {"value": _array_data(np.asarray(value.numpy()))}
    if isinstance(value, Literal):
        return {"literal": _encoded(value.value)}
    if isinstance(value, slice):
        return {"slice": [_encoded(v) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": 1}
    if isinstance(value, Composite):
        return {_KINDS[type(value)]: [_encoded(v) for v in value.parts_of(value)]}
    if isinstance(value, list):
        return {"list": [_encoded(v) for v in value]}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(v) for v in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_encoded(k), _encoded(v)] for k, v in value.items()]}
    if isinstance(value, Body):
        return {"body": _body(value)}
    raise _NotData(f"a {type(value).__name__} cannot be written")


def _array_data(array: Any) -> dict[str, Any]:
    if array.dtype.hasobject:
        flat = [base64.b64encode(bytes(x)).decode() for x in array.ravel()]
        return {"dtype": "string", "shape": list(array.shape), "data": flat}
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def _body(body: Body) -> dict[str, Any]:
    if body.region is None:
        raise _NotData("a branch was never called")
    count: dict[Any, str] = {}
    for index, param in enumerate(body.params):
        tensor = element(param)
        if tensor is not None:
            if type(param) is not Tensor:
                raise _NotData("an array of tensors is carried by a loop")
            count[tensor] = f"param{index}"
    nodes = [call_data(op) for op in body.region.operations]
    if any("missing" in n for n in nodes):
        raise _NotData(next(n["missing"] for n in nodes if "missing" in n))
    text = json.dumps([nodes, _encoded(body.result)])
    owners = {t.name: new for t, new in count.items()}
    found = _renamed(json.loads(text), owners)
    return {"nodes": found[0], "result": found[1], "params": len(body.params)}


def _renamed(data: Any, names: Mapping[str, str]) -> Any:
    """Encoded data with other names for the parameters of a body."""
    if isinstance(data, dict):
        return {
            k: names.get(v, v) if k == "tensor" else _renamed(v, names) for k, v in data.items()
        }
    if isinstance(data, list):
        return [names.get(v, v) if isinstance(v, str) else _renamed(v, names) for v in data]
    return data



# -- reading -------------------------------------------------------------------------------------


def recorded_again(
    graph: Graph, data: Mapping[str, Any], found: Mapping[str, Any],
    operations: Mapping[str, Operation],
) -> Operation:  # fmt: skip
    """Add an operation that was written as data.

    Args:
        found: the tensors of the graph by the names that they were written with.
        operations: the operations, in the same way.

    Raises:
        ValueError: it calls a function that graphs do not have, or uses a tensor that is not there.
    """
    label = data["name"]
    if "function" not in data:
        return _without_function(graph, data, found, operations)
    function = _function(data["function"], label)
    args, kwargs = (_decoded(data[k], graph, found) for k in ("args", "kwargs"))
    control = [operations[c] for c in data["control"]]
    with graph.control_dependencies(control), graph.device(data.get("device") or None):
        result = graph.record(function, tuple(args), kwargs, label, data["op"])
    op = operation_of(result, graph)
    if "writes" in data:
        op.attributes["writes"] = tuple(found[n] for n in data["writes"])
    if "assigns" in data:
        op.attributes["assigns"] = found[data["assigns"][0]]
    return op


def _without_function(
    graph: Graph, data: Mapping[str, Any], found: Mapping[str, Any],
    operations: Mapping[str, Operation]
) -> Operation:
    """An operation whose function was not written, such as one of the user: runs that need it raise
    UnimplementedError."""
    label, why = data["name"], data.get("missing")

    def refuse() -> None:
        raise td.errors.UnimplementedError(
            None, op, f"operation {label!r} was written without its function: {why}"
        )

    op = Operation(graph, graph.unique_name(label), data["op"], refuse)
    op.inputs = [found[n] for n in data["inputs"]]
    for index, (dtype, shape) in enumerate(data.get("outputs", ())):
        kind = td.as_dtype(dtype)
        readings = (
            graph.unranked(op, kind) if shape is None
            else {ANY_RANKS: graph.parameter(kind, shape)}
        )  # fmt: skip
        op.outputs.append(Tensor(op, index, readings))
    with graph.control_dependencies([operations[c] for c in data["control"]]):
        graph._add(op)
    return op


def operation_of(result: Any, graph: Graph) -> Operation:
    """The operation that a call gave."""
    if isinstance(result, Operation):
        return result
    leaves = [t for t in map(element, td.nest.flatten(result)) if t is not None]
    return leaves[0].op if leaves else graph.get_operations()[-1]


def _function(name: str, label: str) -> Callable[..., Any]:
    """The function of a name that graphs may have."""
    with contextlib.suppress(KeyError):
        known = function_named(name)
        if known.__module__ not in _OF_FILES:
            return known
    module, _, public = name.rpartition(".")
    if module in _MODULES and public.isidentifier() and public[:1] != "_":
        found = getattr(importlib.import_module(module), public, None)
        if inspect.isfunction(found):
            return found
    raise ValueError(
        f"operation {label!r} calls {name!r}, which graphs do not have{at(user_origin())}"
    )


def _decoded(data: Any, graph: Graph, found: Mapping[str, Any]) -> Any:
    if not isinstance(data, dict):
        return data
    ((kind, value),) = data.items()

    def inner(part: Any) -> Any:
        return _decoded(part, graph, found)

    match kind:
        case "tensor":
            if value not in found:
                raise ValueError(f"tensor {value!r} is not in the graph")
            return found[value]
        case "array":
            if value not in found:
                raise ValueError(f"tensor {value!r} is not in the graph")
            array = found[value]
            if type(array) is not Tensor:
                return array
            if not isinstance(array._any(), td.TensorArray):
                raise ValueError(f"{value!r}: loops that carry arrays of tensors are not written")
            return TensorArray(array)
        case "float":
            return float(value)
        case "bytes":
            return base64.b64decode(value)
        case "complex":
            return complex(*value)
        case "dtype":
            return td.as_dtype(value)
        case "shape":
            return td.TensorShape(value)
        case "value":
            return _array_of(value)
        case "literal":
            return Literal(inner(value))
        case "slice":
            return slice(*map(inner, value))
        case "ellipsis":
            return Ellipsis
        case "slices":
            return IndexedSlices(*map(inner, value))
        case "sparse":
            return SparseTensor.standing_for([inner(v) for v in value])
        case "list":
            return [inner(v) for v in value]
        case "tuple":
            return tuple(inner(v) for v in value)
        case "dict":
            return {inner(k): inner(v) for k, v in value}
        case "body":
            return _body_of(value, graph, found)
    raise ValueError(f"an argument of the kind {kind!r} is not known")


def _array_of(data: Mapping[str, Any]) -> Any:
    shape = [int(d) for d in data["shape"]]
    if data["dtype"] == "string":
        flat = np.empty(len(data["data"]), object)
        flat[:] = [base64.b64decode(x) for x in data["data"]]
        return flat.reshape(shape)
    dtype = td.as_dtype(data["dtype"]).np_dtype
    return np.frombuffer(base64.b64decode(data["data"]), dtype).reshape(shape)


def _body_of(data: Mapping[str, Any], graph: Graph, found: Mapping[str, Any]) -> Body:
    """A branch or body whose operations are written down when it is called, as a user's are."""

    def call(*params: Any) -> Any:
        names: dict[str, Any] = {**found}
        names.update((f"param{i}", p) for i, p in enumerate(params))
        operations: dict[str, Operation] = {}
        for node in data["nodes"]:
            op = recorded_again(graph, node, names, operations)
            operations[node["name"]] = op
            names.update((f"{node['name']}:{i}", t) for i, t in enumerate(op.outputs))
        return _decoded(data["result"], graph, names)

    return Body(graph, call)
