"""Loop-invariant code motion: values that are the same in all iterations are computed before it.

    while(%i, %w, %x) ... body { %1 = matmul(%x, %w); ... }   ->   %1 = matmul(%x, %w)
                                                                   while(%i, %1) ...

Only nodes that cannot fail move, as the loop may run zero times. Constants, views and reads of
variables move only along with a node that needs them: inside a kernel they cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec, is_static
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.passes.forwarding import writes
from treadle.graph.rewrite import (
    Replacement,
    Rewriter,
    attr_symbols,
    constant_of,
    pass_in,
    replace_reads,
)
from treadle.ops.control.control_flow import WHILE
from treadle.ops.conversion import CONST
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.lowering import Compute, Library, Rows
from treadle.ops.properties import Refusal
from treadle.ops.shaping.permuting import TRANSPOSE
from treadle.ops.shaping.reshaping import RESHAPE
from treadle.ops.state import READ


def hoist_invariants(graph: Graph) -> bool:
    """Move invariant computations out of ``while`` nodes, inner loops first."""
    return _Hoister(graph).run()


class _Hoister(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op is WHILE:
            for region in node.regions:
                self.hoist(node, region)
        return None

    def hoist(self, loop: Node, region: Region) -> None:
        invariant = _invariant_nodes(loop, region)
        moved = [n for n in invariant if not _is_free(n)]
        if not moved:
            return
        outer = self.copy_out(loop, region, _with_dependencies(moved, invariant))
        inside = set(moved)
        uses = [n.inputs for n in region.nodes if n not in inside] + [region.results]
        used = {v for values in uses for v in values}
        replaced: dict[Value, Value] = {}
        for value in (v for n in moved for v in n.outputs if v in used):
            replaced[value] = pass_in(loop, region, outer[value])
        region.nodes = [n for n in region.nodes if n not in inside]
        replace_reads(region, replaced)

    def copy_out(self, loop: Node, region: Region, nodes: Sequence[Node]) -> dict[Value, Value]:
        """Compute the nodes' outputs before the loop; inner value -> outer value."""
        outer = dict(zip(region.params, loop.inputs, strict=True))
        for node in nodes:
            specs = [v.spec for v in node.outputs]
            inputs = [outer[v] for v in node.inputs]
            copy = Node(node.op, inputs, node.attrs, specs, (), node.origin)
            self.place(copy)
            outer.update(zip(node.outputs, copy.outputs, strict=True))
        return outer


def _invariant_nodes(loop: Node, region: Region) -> list[Node]:
    """The nodes that depend on nothing that changes between iterations, and cannot fail, or would
    in any case: the test is computed once at least."""
    carried = len(loop.regions[1].results)
    fixed = set(region.params[carried:])
    symbols = {s for v in loop.inputs for s in v.spec.symbols()}
    callback = loop.runs_user_code
    anyway = region is loop.regions[0] and all(n.is_pure for n in region.nodes)
    found = []
    for node in region.nodes:
        if not all(v in fixed for v in node.inputs) or not _knows(node, symbols):
            continue
        if node.op is READ:
            handle = loop.inputs[node.inputs[0].index]
            invariant = not callback and not writes(loop, handle)
        else:
            invariant = node.op is CONST or (node.is_pure and cannot_fail(node, anyway))
        if invariant:
            found.append(node)
            fixed.update(node.outputs)
    return found


def _knows(node: Node, symbols: set[str]) -> bool:
    """Whether all dims that the node mentions are known outside the loop."""
    mentioned = attr_symbols(node.attrs).union(*(v.spec.symbols() for v in node.outputs))
    return mentioned <= symbols


def _is_free(node: Node) -> bool:
    """Constants, reads and views: not worth a loop operand of their own."""
    lower = node.op.lower
    return (
        node.op is CONST or node.op is READ or (isinstance(lower, Compute) and lower.kind == "view")
    )


def _with_dependencies(moved: Sequence[Node], invariant: Sequence[Node]) -> list[Node]:
    """`moved` and the invariant nodes they need, in program order."""
    needed = set(moved)
    for node in reversed(invariant):
        if node in needed:
            needed.update(v.node for v in node.inputs if v.node is not None)
    return [n for n in invariant if n in needed]


def cannot_fail(node: Node, divides: bool = False) -> bool:
    """Whether running the node without need is safe: no bounds, no divisors, no open shapes.

    divides: its divisions are done in any case.
    """
    lower = node.op.lower
    if node.regions or not isinstance(lower, Compute | Library | Rows):
        return False
    if isinstance(lower, Rows) and lower.fails:
        return False
    refuses = node.op.refuses
    positions = refuses is not None and refuses.is_of_axes
    divisor = refuses in (Refusal.DIVISOR, Refusal.EXPONENT)
    if isinstance(lower, Compute) and (lower.kind == "gather" or positions):
        return False
    integer = not node.outputs[0].spec.dtype.is_floating
    if divisor and integer and not (divides or _divides_by_constant(node)):
        return False
    specs = [v.spec for v in (*node.inputs, *node.outputs)]
    return all(isinstance(s, TensorSpec) for s in specs) and (
        all(map(is_static, specs)) or _open_shapes_agree(node)
    )


def _divides_by_constant(node: Node) -> bool:
    divisor = constant_of(node.inputs[1])
    return node.op.refuses is not Refusal.EXPONENT and divisor is not None and bool(divisor.all())


def _open_shapes_agree(node: Node) -> bool:
    """Whether symbolic dims are equal by name wherever the op needs them to be equal."""
    out = node.outputs[0].spec
    if node.op is MATMUL:
        a, b = (v.spec.dims for v in node.inputs)
        inner_a = a[-2] if node.attrs["transpose_a"] else a[-1]
        inner_b = b[-1] if node.attrs["transpose_b"] else b[-2]
        return inner_a == inner_b and len(a) == len(b) == 2
    if node.op is RESHAPE:
        return product(node.inputs[0].spec.dims) == product(out.dims)
    if node.op.is_elementwise:
        return all(_fits(v.spec.dims, out.dims) for v in node.inputs)
    return node.op is TRANSPOSE or "reduces" in node.op.tags


def _fits(dims: tuple[Dim, ...], out: tuple[Dim, ...]) -> bool:
    tail = out[len(out) - len(dims) :]
    return all(d in (1, o) for d, o in zip(dims, tail, strict=True))
