"""Programs are made for operands of one size where a trace cannot tell whether sizes differ.

The result of an elementwise operation or a product tells a size of its own where those of its
operands may differ (`core.shapes.stretched`). A program takes them to be equal, so that loops need
no comparisons, and compares them before:

%2: f32[s] = add(%0: f32[n], %1: f32[m])
  ->  %1: f32[n] = of_size(%1);  %2: f32[n] = add(%0, %1)

Where they differ the graph as it was runs in the interpreter, which broadcasts or raises. A size
that is read otherwise than as one of its elements keeps its symbol, which is told by a number that
is known after the comparison: else nothing would compare the sizes where only they are used.

What one mask selects of several arrays has one size: nothing is assumed.
"""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.shapes import Dim, symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import (
    Replacement,
    Rewriter,
    attr_symbols,
    mentioned_symbols,
    substitute_symbols,
)
from treadle.ops.broadcasting import OF_SIZE, ONE_SIZE
from treadle.ops.dims import DIM, OPEN_DIM, SHAPE
from treadle.ops.elementwise.comparison import OF_ONE_SHAPE
from treadle.ops.linalg.matrices import BYTE_MATMUL, MATMUL
from treadle.ops.lowering import Compaction, Rows
from treadle.ops.shaping.reshaping import RESHAPE


def assume_equal_sizes(graph: Graph) -> bool:
    """Rewrite a graph for operands of one size; whether there was anything to assume."""
    if not tells_sizes(graph):
        return False
    substitute_symbols(graph, _equal_counts(graph))
    return _Assuming(graph).run()


def tells_sizes(graph: Graph) -> bool:
    """Whether operands of a graph may have sizes that differ, for all that a trace knows."""
    return any(node.op in OF_ONE_SHAPE or _told(node) for node in graph.walk())


def drop_known_sizes(graph: Graph) -> bool:
    """Leave out the checks of operands whose sizes have become known to be equal."""
    return any(node.op is OF_SIZE for node in graph.walk()) and _Dropping(graph).run()


class _Dropping(Rewriter):
    def visit(self, node: Node) -> Replacement:
        known = node.op is OF_SIZE and node.inputs[0].spec is node.outputs[0].spec
        return node.inputs[:1] if known else None


class _Assuming(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._read = _read_symbols(graph)
        self._sizes: dict[str, Dim] = {}  # symbols that were told -> the sizes that stand for them

    def visit(self, node: Node) -> Replacement:
        op = OF_ONE_SHAPE.get(node.op, node.op)
        told = _told(node)
        if not told and op is node.op:
            return None
        for axis, name in told.items():
            if name not in self._sizes:
                self._sizes[name] = self._size(node, axis, name)
        sizes = {axis: self._sizes[name] for axis, name in told.items()}
        inputs = [self._of_sizes(node, v, sizes) for v in node.inputs]
        return [self.emit(op, inputs, node.attrs)]

    def _size(self, node: Node, axis: int, name: str) -> Dim:
        """The size that an axis of the operands is taken to have."""
        sizes = _sizes(node, axis)
        first = next((d for d in sizes if isinstance(d, int)), sizes[0])
        if len(sizes) == 1 or name not in self._read:
            return first
        attrs = {"pairs": tuple((first, d) for d in sizes if d != first), "of": node.op.name}
        number = self.emit(DIM, (), {"dim": first, "out_type": dtypes.int64})
        # A size that is found while the program runs: no bound of it is known.
        told = {"what": f"{node.op.name}: a size", "least": 0, "most": None}
        dim: Dim = self.emit(OPEN_DIM, [self.emit(ONE_SIZE, [number], attrs)], told).spec.dims[0]
        return dim

    def _of_sizes(self, node: Node, value: Value, sizes: dict[int, Dim]) -> Value:
        """An operand, checked to have the sizes."""
        dims = list(value.spec.dims)
        for axis, size in sizes.items():
            if axis <= len(dims) and dims[-axis] != 1:
                dims[-axis] = size
        if tuple(dims) == value.spec.dims:
            return value
        return self.emit(OF_SIZE, [value], {"shape": tuple(dims), "of": node.op.name})


def _told(node: Node) -> dict[int, str]:
    """The axes of the result, counted from the end (1: the last), whose sizes it tells."""
    if len(node.inputs) < 2 or len(node.outputs) != 1 or not node.outputs[0].spec.symbols():
        return {}
    specs = [v.spec for v in (*node.inputs, *node.outputs)]
    if not _broadcasts(node) or not all(type(s) is TensorSpec for s in specs):
        return {}
    known = mentioned_symbols(node)
    names = {n: symbol_name(d) for n, d in enumerate(reversed(specs[-1].dims), 1)}
    told = {axis: name for axis, name in names.items() if name and name not in known}
    return {axis: name for axis, name in told.items() if _sizes(node, axis)}


def _equal_counts(graph: Graph) -> dict[str, Dim]:
    """Symbols that count what the same mask selects, with the first of them."""
    first: dict[Value, Dim] = {}
    found: dict[str, Dim] = {}
    for node in graph.walk():
        if isinstance(node.op.lower, Compaction):
            mask, count = _elements(node.inputs[node.op.lower.mask]), node.outputs[0].spec.dims[0]
            name = symbol_name(count)
            if name is not None and first.setdefault(mask, count) != count:
                found[name] = first[mask]
    return found


def _elements(value: Value) -> Value:
    """The value that has the same elements, in another shape."""
    while value.node is not None and value.node.op is RESHAPE:
        value = value.node.inputs[0]
    return value


def _read_symbols(graph: Graph) -> frozenset[str]:
    """The symbols of sizes that attributes mention or that are read as numbers."""
    found: set[str] = set()
    for node in graph.walk():
        found |= mentioned_symbols(node) if node.op is SHAPE else attr_symbols(node.attrs)
    return frozenset(found)


def _sizes(node: Node, axis: int) -> list[Dim]:
    """The sizes, other than 1, of the operands along an axis."""
    dims = (v.spec.dims[-axis] for v in node.inputs if v.spec.rank >= axis)
    return list(dict.fromkeys(d for d in dims if d != 1))


def _broadcasts(node: Node) -> bool:
    """Whether the axes of the operands are those of the result, counted from the end."""
    op = node.op
    return op.is_elementwise or op in (MATMUL, BYTE_MATMUL) or isinstance(op.lower, Rows)
