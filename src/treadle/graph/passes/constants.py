"""Constant folding: pure ops on constants are computed now, with the ops' NumPy implementations.

%2 = add(const 1, const 2)     ->  const 3
%3 = shape(%x: f32[2, 5])      ->  const [2, 5]

Loops and branches know the scalar constants among their operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.shapes import product
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter, attr_symbols, constant_of
from treadle.ops.control.control_flow import WHILE
from treadle.ops.conversion import CONST
from treadle.ops.dims import SHAPE
from treadle.ops.lowering import Compute
from treadle.ops.registry import computed

# No machine changes these: larger results cost more memory, and space on disk, than computing them
# costs time, and a broadcast of few numbers is cheaper in a kernel than as an array.
MOST_ELEMENTS = 1024
MOST_EXPANDED = 16


def fold_constants(graph: Graph) -> bool:
    """Replace computations on constants by their results, up to `MOST_ELEMENTS` elements."""
    return _Folder(graph).run()


class _Folder(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if "control_flow" in node.op.tags:
            self.tell(node)
        if node.op is CONST or node.regions or not node.is_pure or node.op.eager is None:
            return None
        if not node.outputs or not all(map(_is_small, node.outputs)):
            return None
        if node.op is SHAPE:
            return self.shape(node)
        arrays = [constant_of(v) for v in node.inputs]
        if any(a is None for a in arrays) or attr_symbols(node.attrs) or _expands(node):
            return None
        results = _compute(node, arrays)
        return None if results is None else [self.constant(r) for r in results]

    def tell(self, node: Node) -> None:
        """Put the values of constant operands into the body of a loop, or into branches."""
        carried = len(node.outputs) if node.op is WHILE else 0
        for region in node.regions[1:] if carried else node.regions:
            first = len(node.inputs) - len(region.params)
            pairs = zip(region.params, node.inputs[first:], strict=True)
            for param, value in list(pairs)[carried:]:
                array = constant_of(value)
                if array is not None and array.ndim == 0 and _is_used(region, param):
                    _replace(region, param, array, node)
                    self.changed = True

    def shape(self, node: Node) -> Replacement:
        dims = node.inputs[0].spec.dims
        if not all(isinstance(d, int) for d in dims):
            return None
        return [self.constant(np.array(dims, node.outputs[0].spec.dtype.np_dtype))]


def _is_used(region: Region, value: Value) -> bool:
    return value in region.results or any(value in n.inputs for n in region.nodes)


def _replace(region: Region, param: Value, array: Any, owner: Node) -> None:
    """Let a constant inside the region stand for a parameter."""
    node = Node(CONST, (), {"value": array}, [param.spec], (), owner.origin)
    node.region = region
    value = node.outputs[0]
    for user in region.nodes:
        user.inputs = [value if v is param else v for v in user.inputs]
    region.results = [value if v is param else v for v in region.results]
    region.nodes.insert(0, node)


def _is_small(value: Any) -> bool:
    size = product(value.spec.dims)
    return isinstance(value.spec, TensorSpec) and isinstance(size, int) and size <= MOST_ELEMENTS


def _expands(node: Node) -> bool:
    """Whether the node only repeats elements, many times."""
    lower = node.op.lower
    if not isinstance(lower, Compute) or lower.kind != "view":
        return False
    before = sum(_elements(v) for v in node.inputs)
    return sum(_elements(v) for v in node.outputs) > max(before, MOST_EXPANDED)


def _elements(value: Value) -> int:
    size = product(value.spec.dims)
    assert isinstance(size, int)
    return size


def _compute(node: Node, arrays: list[Any]) -> list[np.ndarray[Any, Any]] | None:
    """The outputs, or None where the op fails: it shall fail when the program runs."""
    try:
        with np.errstate(all="ignore"):
            result = computed(node.op, arrays, node.attrs)
    except Exception:
        return None
    outputs = result if isinstance(result, tuple) else (result,)
    arrays = [np.ascontiguousarray(r).reshape(np.shape(r)) for r in outputs]
    for array, value in zip(arrays, node.outputs, strict=True):
        if array.shape != value.spec.dims or array.dtype != value.spec.dtype.np_dtype:
            return None
    return arrays
