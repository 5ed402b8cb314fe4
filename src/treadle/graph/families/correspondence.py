"""A concrete graph beside a pattern: which value and dim stands for which."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core.origin import at
from treadle.core.shapes import Dim, substitute, symbol_name
from treadle.core.spec import Spec, TensorSpec, is_static
from treadle.core.tensor import Tensor
from treadle.graph.families.attributes import same_array, same_attr
from treadle.graph.families.constants import DimConstant
from treadle.graph.families.identities import Dims, is_meaningless
from treadle.graph.ir import Node, Region, Value
from treadle.graph.replay import substitute_dims
from treadle.ops.conversion import CONST
from treadle.ops.state import Variable

MOST_CAPTURED = 1024  # elements of two captured tensors that are compared


class Correspondence:
    """The values and dims of one graph that stand for the values and symbols of a pattern.

    Attributes:
        values: pattern value -> (the graph's value, dims): the elements of that value in the same
            order, under these dims. They are its own unless nodes that change nothing are left
            out in the graph.
        dims: pattern symbol -> dim of the graph.
    """

    def __init__(self, inserted: Mapping[Node, DimConstant | None]) -> None:
        self.values: dict[Value, tuple[Value, Dims]] = {}
        self.dims: dict[str, Dim] = {}
        self._inserted = inserted  # see `Pattern`
        self._agreed: dict[Spec, Dims] = {}
        self._failed: Node | None = None

    def bind(self, value: Value, found: Value) -> bool:
        """Let `value` be `found` if the types agree; symbols seen first are learned."""
        same = value.spec is found.spec and is_static(value.spec)
        if not same and not self._agree(value.spec, found.spec):
            return False
        self.values[value] = (found, found.spec.dims)
        return True

    def _agree(self, pattern: Spec, given: Spec) -> bool:
        dims = self._agreed.get(pattern)
        if dims is None:
            if len(pattern.dims) != len(given.dims):
                return False
            for dim, size in zip(pattern.dims, given.dims, strict=True):
                name = symbol_name(dim)
                if name is not None:
                    self.dims.setdefault(name, size)
            dims = self._agreed[pattern] = tuple(substitute(d, self.dims) for d in pattern.dims)
        return dims == given.dims and pattern.dtype is given.dtype and type(pattern) is type(given)

    def same_node(self, pattern: Node, node: Node) -> bool:
        """Whether the graph's node is the pattern's; its outputs and regions are bound then."""
        if pattern.op is not node.op or not self.same_inputs(pattern.inputs, node.inputs):
            return False
        if not self._same_attrs(pattern, node) or len(pattern.regions) != len(node.regions):
            return False
        if pattern.regions and not all(map(self.same_region, pattern.regions, node.regions)):
            return False
        return self.bind_all(pattern.outputs, node.outputs)

    def same_inputs(self, pattern: Sequence[Value], given: Sequence[Value]) -> bool:
        """Whether the graph's values are those that the pattern's stand for."""
        if len(pattern) != len(given):
            return False
        for mine, theirs in zip(pattern, given, strict=True):
            value, dims = self.values[mine]
            if value is not theirs or dims != theirs.spec.dims:
                return False
        return True

    def bind_all(self, pattern: Sequence[Value], given: Sequence[Value]) -> bool:
        return len(pattern) == len(given) and all(map(self.bind, pattern, given))

    def _same_attrs(self, pattern: Node, node: Node) -> bool:
        given = node.attrs
        return len(pattern.attrs) == len(given) and all(
            name in given
            and (same_attr(value, given[name], self.dims) or is_meaningless(node, name))
            for name, value in pattern.attrs.items()
        )

    def same_region(self, pattern: Region, region: Region) -> bool:
        """Whether the graph's region is the pattern's, nodes that change nothing aside."""
        if not self.bind_all(pattern.params, region.params):
            return False
        nodes = live_nodes(region)
        position = 0
        for mine in pattern.nodes:
            if mine in self._inserted and self._inserted[mine] is None:
                continue  # a step towards a constant
            if position < len(nodes) and self._same(mine, nodes[position]):
                position += 1
            elif not self.leave_out(mine):
                self._failed = self._failed or mine
                return False
        return position == len(nodes) and self.same_inputs(pattern.results, region.results)

    def _same(self, pattern: Node, node: Node) -> bool:
        constant = self._inserted.get(pattern)
        if constant is None:
            return self.same_node(pattern, node)
        array = constant.evaluate(self.dims) if node.op is CONST else None
        same = array is not None and same_array(array, node.attrs["value"])
        return same and self.bind(pattern.outputs[-1], node.outputs[0])

    def difference(self) -> str:
        """Where the graph differs from the pattern, after `same_region` said so."""
        if self._failed is None:
            return "it has other parameters or results"
        return f"it differs at {self._failed.op.name}{at(self._failed.origin)}"

    def leave_out(self, node: Node) -> bool:
        """Let a node of the pattern be nothing in the graph, if it changes nothing there."""
        rule = node.op.same_elements
        if rule is None:
            return False
        value, dims = self.values[node.inputs[0]]
        attrs = {name: substitute_dims(attr, self.dims) for name, attr in node.attrs.items()}
        result = rule(dims, attrs)
        output = node.outputs[0].spec
        if result is None or output.dtype is not value.spec.dtype:
            return False
        if tuple(substitute(d, self.dims) for d in output.dims) != result:
            return False
        self.values[node.outputs[0]] = (value, result)
        return True


def live_nodes(region: Region) -> list[Node]:
    """The nodes with effects or used results, in order. A node that binds a symbol is used."""
    used: set[Value] = set(region.results)
    kept: list[Node] = []
    for node in reversed(region.nodes):
        if node.has_effect or any(v in used or not is_static(v.spec) for v in node.outputs):
            kept.append(node)
            used.update(node.inputs)
    return kept[::-1]


def same_capture(a: Any, b: Any) -> bool:
    """Whether captured things are one variable, or tensors of the same few elements."""
    if a is b:
        return True
    if isinstance(a, Variable) or isinstance(b, Variable) or a.is_symbolic or b.is_symbolic:
        return False
    small = isinstance(a, Tensor) and isinstance(a.spec, TensorSpec) and a.spec is b.spec
    return small and math.prod(a.dims) <= MOST_CAPTURED and same_array(a._numpy(), b._numpy())
