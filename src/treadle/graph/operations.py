"""Operations of a graph as users see them: `Tensor.op`, `Tensor.consumers()`, and by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from treadle.core.tensor import SymbolicTensor
from treadle.graph.ir import Graph, Node, Value
from treadle.ops.tensorflow_names import operation_type

_RESULT = re.compile(r"Identity(?:_(\d+))?:0")


class Operation:
    """What computes a tensor of a trace: an operation, or "Placeholder" for a parameter.

    Attributes:
        name: of its outputs, without the number behind the colon.
        type: TensorFlow's, as ``MatMul``.
        graph: where it is.
        inputs, outputs: symbolic tensors.
        control_inputs: nothing: program order says what runs first.
        device: nothing: where a graph runs is known when it has been traced.
    """

    def __init__(self, builder: Any, key: Value | Node) -> None:
        node = key if isinstance(key, Node) else key.node
        self._node, self._builder = node, builder
        self._key: Node | Value = key if node is None else node
        self.graph: Graph = builder.graph
        self.type = "Placeholder" if node is None else operation_type(node.op.name)
        self.name: str = builder.name_of(self._key)
        self.inputs: tuple[Any, ...] = ()
        outputs = [key] if isinstance(key, Value) else []
        if node is not None:
            self.inputs = tuple(builder.tensor_of(v) for v in node.inputs)
            outputs = node.outputs
        self.outputs = [builder.tensor_of(v) for v in outputs]
        self.control_inputs: list[Any] = []
        self.device = ""

    def values(self) -> tuple[Any, ...]:
        """The outputs."""
        return tuple(self.outputs)

    def get_attr(self, name: str) -> Any:
        """An attribute; ValueError where there is none of that name."""
        attrs = {} if self._node is None else self._node.attrs
        if name not in attrs:
            raise ValueError(f"{self.type} has no attribute {name!r}; it has {sorted(attrs)}")
        return attrs[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self._key is other._key

    def __hash__(self) -> int:
        return id(self._key)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


class Elements:
    """The operations and tensors of a graph, and how they are found by their names."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._graph: Graph = builder.graph

    def operations(self) -> list[Operation]:
        keys: list[Value | Node] = [*self._graph.params, *self._graph.nodes]
        return [Operation(self._builder, key) for key in keys]

    def tensors(self, values: Iterable[Value]) -> list[Any]:
        """The symbolic tensors that stand for values."""
        return [self._builder.tensor_of(value) for value in values]

    def operation(self, name: Any) -> Operation:
        if not isinstance(name, str):
            kind = type(name).__name__
            raise TypeError(f"Operation names are strings (or similar), not {kind}.")
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        found = self._by_name().get(name)
        if found is None:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return found

    def tensor(self, name: Any) -> Any:
        form = 'Tensor names must be of the form "<op_name>:<output_index>".'
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        known, (op, _, index) = self._by_name(), name.partition(":")
        if ":" not in name and name in known:
            raise ValueError(f"The name {name!r} refers to an Operation, not a Tensor. {form}")
        if not index.isdigit():
            raise ValueError(f"The name {name!r} is not a valid Tensor name. {form}")
        text = f"The name {name!r} refers to a Tensor which does not exist. The operation, {op!r},"
        if op not in known and (result := self._result(name)) is not None:
            return result
        if op not in known:
            raise KeyError(f"{text} does not exist in the graph.")
        outputs = known[op].outputs
        if int(index) >= len(outputs):
            raise KeyError(f"{text} exists but only has {len(outputs)} outputs.")
        return outputs[int(index)]

    def element(self, obj: Any, allow_tensor: bool, allow_operation: bool) -> Any:
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        if isinstance(obj, str):
            if allow_tensor and (":" in obj or not allow_operation):
                return self.tensor(obj)
            return self.operation(obj)
        allowed = (SymbolicTensor,) * allow_tensor + (Operation,) * allow_operation
        if not isinstance(obj, allowed):
            wanted = " or ".join(("Tensor",) * allow_tensor + ("Operation",) * allow_operation)
            raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")
        if obj.graph is not self._graph:
            raise ValueError(f"{obj!r} is not an element of this graph.")
        return obj

    def _result(self, name: str) -> Any:
        """A result by the name that TensorFlow gives it, ``Identity:0``, ``Identity_1:0``; None for
        another name."""
        number = _RESULT.fullmatch(name)
        place = int(number[1] or 0) if number else len(self._graph.results)
        if place >= len(self._graph.results):
            return None
        return self._builder.tensor_of(self._graph.results[place])

    def _by_name(self) -> dict[str, Operation]:
        return {operation.name: operation for operation in self.operations()}


def consumers(builder: Any, value: Value) -> list[Operation]:
    """The operations of the same region that take a value."""
    return [
        Operation(builder, node)
        for node in builder.region.nodes
        if value in node.inputs
    ]
