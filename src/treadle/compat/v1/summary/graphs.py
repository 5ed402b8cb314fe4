"""Graphs of calls as messages GraphDef, which TensorBoard draws."""

from __future__ import annotations

from typing import Any

from treadle.compat.v1.graph import Graph
from treadle.compat.v1.values import Tensor
from treadle.ops.strings.tensors import NUMBERS
from treadle.summary.messages import message_module


def graph_message(graph: Graph) -> Any:
    """A graph as a message GraphDef: names, types, devices, inputs, dtypes and shapes."""
    made = message_module("compat.proto.graph_pb2").GraphDef()
    for op in graph.get_operations():
        node = made.node.add(name=op.name, op=op.type, device=op.device)
        node.input.extend(dict.fromkeys(map(_input, filter(_has_name, op.inputs))))
        node.input.extend(f"^{before.name}" for before in op.control_inputs if before.name)
        shapes = node.attr["_output_shapes"].list.shape
        for tensor in op.outputs:
            _write_shape(shapes.add(), tensor)
        if op.outputs and op.outputs[0].dtype in NUMBERS:
            kind = node.attr["T" if op.inputs else "dtype"]
            kind.type = NUMBERS[op.outputs[0].dtype]
        if op.origin is not None:
            node.attr["line"].s = str(op.origin).encode()
    return made


def _has_name(tensor: Tensor) -> bool:
    return bool(tensor.op.name)  # the arguments of branches and bodies have none


def _input(tensor: Tensor) -> str:
    return tensor.name.removesuffix(":0")


def _write_shape(message: Any, tensor: Tensor) -> None:
    if tensor.shape.rank is None:
        message.unknown_rank = True
        return
    for dim in tensor.shape.as_list():
        message.dim.add(size=-1 if dim is None else dim)
