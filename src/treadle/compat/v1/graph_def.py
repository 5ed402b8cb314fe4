"""Graphs as data: `Graph.as_graph_def` and `import_graph_def`.

A graph is written as text (JSON): its operations with the names of their functions, which must be
in the table of `recorded` or public functions of treadle that graphs have; constants are kept as
their bytes. Reading runs no other code.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.recording import function_named, name_of_function
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.values import (
    ANY_RANKS,
    Body,
    IndexedSlices,
    Literal,
    Operation,
    Tensor,
    element,
)
from treadle.compat.v1.variables import Variable
from treadle.core.origin import at, user_origin

_HEAD = b"treadle graph 1\n"
_MOST = 1 << 31  # bytes of the text, and of one constant
# Modules whose public functions graphs may name.
_MODULES = frozenset(
    f"treadle{m}"
    for m in ("", ".math", ".nn", ".linalg", ".strings", ".image", ".random", ".signal", ".bitwise",
              ".debugging")
)  # fmt: skip


class NodeDef:
    """One operation of a `GraphDef`.

    Attributes:
        name, op, device: the operation's name, type and device.
        input: the names of its inputs and, behind ``^``, of what runs before.
        attr: what else is known of it.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    @property
    def name(self) -> str:
        return str(self._data["name"])

    @property
    def op(self) -> str:
        return str(self._data["op"])

    @property
    def device(self) -> str:
        return str(self._data.get("device", ""))

    @device.setter
    def device(self, device: str) -> None:
        self._data["device"] = device

    @property
    def input(self) -> list[str]:
        names = [n.removesuffix(":0") for n in self._data["inputs"]]
        return names + [f"^{n}" for n in self._data["control"]]

    @property
    def attr(self) -> dict[str, Any]:
        return {k: v for k, v in self._data.items() if k in ("dtype", "shape", "function")}

    def __repr__(self) -> str:
        return f"name: {self.name!r}\nop: {self.op!r}\n" + "".join(
            f"input: {name!r}\n" for name in self.input
        )


class GraphDef:
    """A graph as data.

    Attributes:
        node: its operations.
    """

    def __init__(self, nodes: Iterable[NodeDef] = ()) -> None:
        self.node: list[NodeDef] = list(nodes)

    def SerializeToString(self) -> bytes:
        """The graph as bytes."""
        text = json.dumps([n._data for n in self.node], separators=(",", ":"))
        return _HEAD + zlib.compress(text.encode(), 1)

    def ParseFromString(self, serialized: bytes) -> int:
        """Take the graph of some bytes.

        Raises:
            DataLossError: they are no graph, or of a newer version.
        """
        self.node = _parsed(bytes(serialized))
        return len(serialized)

    MergeFromString = ParseFromString

    @classmethod
    def FromString(cls, serialized: bytes) -> GraphDef:
        """The graph of some bytes."""
        found = cls()
        found.ParseFromString(serialized)
        return found

    def CopyFrom(self, other: GraphDef) -> None:
        """Take the operations of another graph."""
        self.node = list(other.node)

    def ByteSize(self) -> int:
        """How many bytes it has."""
        return len(self.SerializeToString())

    def __eq__(self, other: object) -> bool:
        mine = [n._data for n in self.node]
        return isinstance(other, GraphDef) and mine == [n._data for n in other.node]

    __hash__ = object.__hash__

    def __str__(self) -> str:
        inner = (repr(n).replace("\n", "\n  ").rstrip() for n in self.node)
        return "".join(f"node {{\n  {text}\n}}\n" for text in inner)


def _parsed(data: bytes) -> list[NodeDef]:
    def damaged(why: str) -> td.errors.DataLossError:
        return td.errors.DataLossError(None, None, f"this is no graph of treadle: {why}")

    if not data.startswith(b"treadle graph "):
        raise damaged("it does not begin as one (graphs of TensorFlow's are not read)")
    if not data.startswith(_HEAD):
        raise damaged("it was written by a newer version")
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(data[len(_HEAD) :], _MOST)
        if unpacking.unconsumed_tail:
            raise damaged("it is larger than 2 GiB")
        if not unpacking.eof:
            raise damaged("its end is missing")
        nodes = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise damaged(str(error)) from None
    names: set[str] = set()
    if not isinstance(nodes, list):
        raise damaged("it has no list of operations")
    for node in nodes:
        if not isinstance(node, dict) or not all(
            isinstance(node.get(k), kind)
            for k, kind in (("name", str), ("op", str), ("inputs", list), ("control", list))
        ):
            raise damaged("an operation is damaged")
        before = {n.rpartition(":")[0] for n in node["inputs"] if isinstance(n, str)}
        if len(before) > len(node["inputs"]) or not before | {*node["control"]} <= names:
            raise damaged(f"{node['name']!r} has inputs that do not stand before it")
        names.add(node["name"])
    return [NodeDef(n) for n in nodes]


# -- writing -------------------------------------------------------------------------------------


def as_graph_def(graph: Graph) -> GraphDef:
    """The operations of a graph as data."""
    return GraphDef(NodeDef(_node(op)) for op in graph.get_operations() if op.region is graph._root)


def _node(op: Operation) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": op.name, "op": op.type, "device": op.device,
        "inputs": [t.name for t in op.inputs], "control": [c.name for c in op.control_inputs],
    }  # fmt: skip
    for key in ("writes", "assigns"):
        if key in op.attributes:
            tensors = op.attributes[key]
            data[key] = [t.name for t in (tensors if isinstance(tensors, tuple) else (tensors,))]
    if op.function is None:
        tensor = op.outputs[0]
        shape = tensor.shape
        data |= {"dtype": tensor.dtype.name, "shape": None if shape.rank is None else plain(shape)}
        if isinstance(op.owner, Variable):
            data["trainable"] = op.owner.trainable
        return data
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
    if isinstance(value, td.Tensor) and td.executing_eagerly():
        return {"value": _array_data(np.asarray(value.numpy()))}
    if isinstance(value, Literal):
        return {"literal": _encoded(value.value)}
    if isinstance(value, slice):
        return {"slice": [_encoded(v) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": 1}
    if isinstance(value, IndexedSlices):
        return {"slices": [_encoded(v) for v in (value.values, value.indices, value.dense_shape)]}
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
    nodes = [_node(op) for op in body.region.operations]
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


def import_graph_def(
    graph_def: Any, input_map: Any = None, return_elements: Any = None, name: str | None = None,
    op_dict: Any = None, producer_op_list: Any = None,
) -> Any:  # fmt: skip
    """Add the operations of a `GraphDef` to the default graph.

    Args:
        input_map: tensors of the default graph by the names of those of `graph_def` that they stand
            for.
        return_elements: names of operations and tensors to give back.
        name: in front of all names; "import" where omitted, nothing where it is empty.

    Raises:
        TypeError: it is no GraphDef.
        ValueError: an operation calls a function that graphs do not have, or a name in `input_map`
            or `return_elements` is not there.
    """
    if not isinstance(graph_def, GraphDef):
        raise TypeError(f"graph_def must be a GraphDef, not a {type(graph_def).__name__}")
    graph, prefix = get_default_graph(), "import" if name is None else name
    given = {
        (k.name if isinstance(k, Tensor) else k if ":" in k else f"{k}:0"): element(v)
        for k, v in (input_map or {}).items()
    }
    found: dict[str, Any] = dict(given)
    operations: dict[str, Operation] = {}
    unused = set(given)
    scope = graph._scope
    with graph.name_scope(prefix) if prefix else graph.control_dependencies([]):
        for node in graph_def.node:
            unused -= set(node._data["inputs"])
            op = _imported(graph, node._data, found, operations)
            operations[node.name] = op
            for index, tensor in enumerate(op.outputs):
                found.setdefault(f"{node.name}:{index}", tensor)
    graph._scope = scope
    if unused - {f"{n}:{i}" for n, op in operations.items() for i in range(len(op.outputs))}:
        raise ValueError(
            "Attempted to map inputs that were not found in graph_def: "
            f"[{', '.join(sorted(unused))}]{at(user_origin())}"
        )
    if return_elements is None:
        return None
    return [_returned(n, found, operations) for n in return_elements]


def _returned(name: str, found: Mapping[str, Any], operations: Mapping[str, Operation]) -> Any:
    place = found if ":" in name else operations
    if name not in place:
        raise ValueError(f"Requested return_element {name!r} not found in graph_def.")
    return place[name]


def _imported(
    graph: Graph, data: dict[str, Any], found: Mapping[str, Any],
    operations: Mapping[str, Operation]
) -> Operation:
    label = data["name"]
    if "dtype" in data:
        return _imported_source(graph, data)
    if "function" not in data:
        return _without_function(graph, data, found, operations)
    function = _function(data["function"], label)
    args, kwargs = (_decoded(data[k], graph, found) for k in ("args", "kwargs"))
    control = [operations[c] for c in data["control"]]
    with graph.control_dependencies(control), graph.device(data.get("device") or None):
        result = graph.record(function, tuple(args), kwargs, label, data["op"])
    op = _operation_of(result, graph)
    if "writes" in data:
        op.attributes["writes"] = tuple(found[n] for n in data["writes"])
    if "assigns" in data:
        op.attributes["assigns"] = found[data["assigns"][0]]
    return op


def _without_function(
    graph: Graph, data: dict[str, Any], found: Mapping[str, Any],
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


def _operation_of(result: Any, graph: Graph) -> Operation:
    """The operation that a call gave."""
    if isinstance(result, Operation):
        return result
    leaves = [t for t in map(element, td.nest.flatten(result)) if t is not None]
    return leaves[0].op if leaves else graph.get_operations()[-1]


def _imported_source(graph: Graph, data: dict[str, Any]) -> Operation:
    dtype, shape = td.as_dtype(data["dtype"]), data["shape"]
    if data["op"] == "VariableV2":
        return Variable.imported(graph, data["name"], dtype, shape, bool(data.get("trainable"))).op
    if shape is not None:
        readings = {ANY_RANKS: graph.parameter(dtype, shape)}
        return graph.source(data["op"], data["name"], readings).op
    tensor = graph.source(data["op"], data["name"], {})
    tensor.readings = graph.unranked(tensor.op, dtype)
    return tensor.op


def _function(name: str, label: str) -> Callable[..., Any]:
    """The function of a name that graphs may have."""
    try:
        return function_named(name)
    except KeyError:
        pass
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
            op = _imported(graph, node, names, operations)
            operations[node["name"]] = op
            names.update((f"{node['name']}:{i}", t) for i, t in enumerate(op.outputs))
        return _decoded(data["result"], graph, names)

    return Body(graph, call)


# -- graph_util ----------------------------------------------------------------------------------


def extract_sub_graph(graph_def: GraphDef, dest_nodes: Sequence[str]) -> GraphDef:
    """The operations that some need.

    Raises:
        TypeError: `dest_nodes` is a string. AssertionError: one is not there.
    """
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    nodes = {n.name: n for n in graph_def.node}
    for name in dest_nodes:
        assert name in nodes, f"{name} is not in graph"
    wanted, waiting = set(), list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name in wanted:
            continue
        wanted.add(name)
        data = nodes[name]._data
        waiting += [n.rpartition(":")[0] for n in data["inputs"]] + data["control"]
    return GraphDef(n for n in graph_def.node if n.name in wanted)


def convert_variables_to_constants(
    sess: Any, input_graph_def: GraphDef, output_node_names: Sequence[str],
    variable_names_whitelist: Any = None, variable_names_blacklist: Any = None,
) -> GraphDef:  # fmt: skip
    """The operations that some need, with the values of variables in a session as constants."""
    graph_def = extract_sub_graph(input_graph_def, output_node_names)
    chosen = [
        n for n in graph_def.node
        if n.op == "VariableV2"
        and (variable_names_whitelist is None or n.name in variable_names_whitelist)
        and n.name not in (variable_names_blacklist or ())
    ]  # fmt: skip
    values = sess.run({n.name: f"{n.name}:0" for n in chosen})
    nodes = []
    for node in graph_def.node:
        if node.name in values:
            data = {k: node._data[k] for k in ("name", "device", "inputs", "control")}
            value = {"value": _array_data(np.asarray(values[node.name]))}
            data |= {"op": "Const", "function": "treadle.constant", "args": {"tuple": [value]},
                     "kwargs": {"dict": []}}  # fmt: skip
            node = NodeDef(data)
        nodes.append(node)
    return GraphDef(nodes)


def remove_training_nodes(input_graph: GraphDef, protected_nodes: Any = None) -> GraphDef:
    """The graph: passes leave out what does nothing."""
    return input_graph


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether an operation runs on the host."""
    return bool(pin_variables_on_cpu and node.op == "VariableV2")


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> Any:
    """The static shape of a tensor by its name."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape


Graph.written = as_graph_def
