"""Operations of a graph as its symbolic tensors show them: `Tensor.op`, `Tensor.consumers()`."""

from __future__ import annotations

from typing import Any

from treadle.graph.ir import Graph, Node, Value


class Operation:
    """What computes a tensor of a trace: an operation, or "Placeholder" for a parameter.

    Attributes:
        name: of its first output, without the number behind the colon.
        type: the name of the op.
        graph: where it is.
        inputs, outputs: symbolic tensors.
        control_inputs: nothing: program order says what runs first.
        device: nothing: where a graph runs is known when it has been traced.
    """

    def __init__(self, builder: Any, value: Value) -> None:
        node = value.node
        self._node, self._builder = node, builder
        self._key: Node | Value = value if node is None else node
        self.graph: Graph = builder.graph
        self.type = "Placeholder" if node is None else node.op.name
        self.name = (value if node is None else node.outputs[0]).name
        self.inputs: tuple[Any, ...] = ()
        outputs = [value]
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
        return f"<td.Operation {self.name!r} type={self.type}>"


def consumers(builder: Any, value: Value) -> list[Operation]:
    """The operations of the same region that take a value."""
    return [
        Operation(builder, node.outputs[0])
        for node in builder.region.nodes
        if value in node.inputs and node.outputs
    ]
