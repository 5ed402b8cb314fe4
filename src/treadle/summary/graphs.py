"""Graphs of functions as TensorBoard draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.context import context
from treadle.core.dtypes import DType, as_dtype
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import ResourceSpec, Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.names import OperationNames
from treadle.ops.control.control_flow import WHILE
from treadle.ops.conversion import constant
from treadle.ops.strings.tensors import NUMBERS, packed
from treadle.ops.tensorflow_names import operation_type
from treadle.summary.messages import message_module
from treadle.summary.writers import is_recording, state

_MOST = 64  # elements of constants that are shown
_RESOURCE = 20  # the number of the dtype of variables


def graph(graph_data: Any) -> Tensor:
    """Write a graph, which TensorBoard draws on its page Graphs.

    Args:
        graph_data: the graph of a concrete function, ``f.get_concrete_function(...).graph``, or a
            message GraphDef.

    Returns:
        a scalar bool: whether it was written; False where there is no default writer.

    Raises:
        ValueError: it is called in a function, or `graph_data` is something else.
    """
    if context.recorder is not None:
        raise ValueError(f"graph() cannot be invoked inside a graph context.{at(user_origin())}")
    if state.writer is None or not is_recording():
        return constant(False)
    kind = message_module("compat.proto.graph_pb2").GraphDef
    if not isinstance(graph_data, Graph | kind):
        raise ValueError(
            "Argument 'graph_data' is not the graph of a concrete function or a GraphDef. Received "
            f"graph_data={graph_data} of type {type(graph_data).__name__}.{at(user_origin())}"
        )
    made = graph_def(graph_data) if isinstance(graph_data, Graph) else graph_data
    state.writer.file.add_graph(made)
    return constant(True)


def graph_def(graph: Graph) -> Any:
    """A graph as a message GraphDef.

    Operations have the names and types that TensorFlow gives them, and in their attributes the
    user's line. The regions of branches and loops are name scopes in the scope of their node:
    operations of a region read what is outside directly; what a loop carries is a node "Merge".
    """
    return _Writer(graph).made


def function_def(graph: Graph) -> Any:
    """A graph as a message FunctionDef: its signature has the arguments, then the captures, and the
    results as ``identity``, ``identity_1``. Its operations are those of `graph_def`."""
    writer = _Writer(graph)
    made = message_module("compat.proto.function_pb2").FunctionDef()
    made.signature.name = f"__inference_{graph.name}"
    made.node_def.extend(writer.made.node[len(graph.params) :])
    for param in graph.params:
        made.signature.input_arg.add(
            name=writer.place_of(param).partition(":")[0], type=_number(param.spec)
        )
    for number, result in enumerate(graph.results):
        name = f"identity_{number}" if number else "identity"
        made.signature.output_arg.add(name=name, type=_number(result.spec))
        made.ret[name] = writer.place_of(result)
    return made


def _number(spec: Spec) -> int:
    """TensorFlow's number of the dtype of an argument or result; variables are resources."""
    return NUMBERS[spec.dtype] if isinstance(spec, TensorSpec) else _RESOURCE


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.made = message_module("compat.proto.graph_pb2").GraphDef()
        self._names = graph.names or OperationNames()
        self._places: dict[Value, str] = {}  # where the message has a value: ``name:output``
        self._device = graph.device.name
        for param in graph.params:
            of_variable = isinstance(param.spec, ResourceSpec)
            kind = "VarHandleOp" if of_variable else "Placeholder"
            name = self._names.of(graph, param)
            self._add(name, kind, [], [param])
        self._region(graph, "")

    def place_of(self, value: Value) -> str:
        """Where the message has a value."""
        return self._places[value]

    def _region(self, region: Region, scope: str) -> None:
        for node in region.nodes:
            name = scope + self._names.of(region, node)
            inputs = [self._places[v] for v in node.inputs]
            for inner, label in zip(node.regions, node.op.regions, strict=False):
                self._enter(node, inner, name)
                self._region(inner, f"{name}/{label}/")
                inputs += [self._places[v] for v in inner.results]
            self._add(name, operation_type(node.op.name), inputs, node.outputs, node)

    def _enter(self, node: Node, inner: Region, name: str) -> None:
        """Say what the parameters of a region are."""
        carried = len(node.outputs) if node.op is WHILE else 0
        pairs = zip(inner.params, node.region_inputs, strict=True)
        for number, (param, given) in enumerate(pairs):
            if number >= carried:
                self._places[param] = self._places[given]
            elif inner is node.regions[0]:
                self._add(f"{name}/Merge_{number}", "Merge", [self._places[given]], [param])
            else:
                self._places[param] = self._places[node.regions[0].params[number]]

    def _add(
        self, name: str, kind: str, inputs: Sequence[str], outputs: Sequence[Value],
        node: Node | None = None,
    ) -> None:  # fmt: skip
        entry = self.made.node.add(name=name, op=kind, device=self._device)
        entry.input.extend(dict.fromkeys(inputs))
        for number, value in enumerate(outputs):
            self._places[value] = f"{name}:{number}" if number else name
        shapes = entry.attr["_output_shapes"].list.shape
        for value in outputs:
            self._write_shape(shapes.add(), value.spec)
        if outputs and isinstance(outputs[0].spec, TensorSpec):
            entry.attr["dtype" if not inputs else "T"].type = NUMBERS[outputs[0].spec.dtype]
        if node is not None:
            for key, value in node.attrs.items():
                self._write_attr(entry.attr[key], value)
            if node.origin is not None:
                entry.attr["line"].s = str(node.origin).encode()

    def _write_shape(self, message: Any, spec: Spec) -> None:
        if not isinstance(spec, TensorSpec) or not spec.has_rank:
            message.unknown_rank = True
            return
        for dim in spec.dims:
            message.dim.add(size=dim if isinstance(dim, int) else -1)

    def _write_attr(self, message: Any, value: Any) -> None:
        """An attribute of an operation, as text where messages know no such thing."""
        array = value if isinstance(value, np.ndarray | np.generic) else None
        if isinstance(value, bool):
            message.b = value
        elif isinstance(value, int) and abs(value) < 1 << 63:
            message.i = value
        elif isinstance(value, float):
            message.f = value
        elif isinstance(value, DType) and value in NUMBERS:
            message.type = NUMBERS[value]
        elif isinstance(value, TensorShape):
            message.s = str(value).encode()
        elif array is not None and array.size <= _MOST and array.dtype.kind != "U":
            message.tensor.MergeFromString(packed(np.asarray(array), as_dtype(array.dtype)))
        elif isinstance(value, bytes):
            message.s = value
        elif array is not None:
            message.s = f"{array.dtype}{list(array.shape)}".encode()
        elif isinstance(value, Mapping) or not _is_ints(value):
            message.s = str(value).encode()
        else:
            message.list.i.extend(value)


def _is_ints(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(type(v) is int for v in value)
