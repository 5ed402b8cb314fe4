"""Conditionals that only choose between cheap numbers compute both and choose.

%1 = cond(%p, %x) then(%a) { %0 = add(%a, %a); return %0 } else(%a) { return %a }
    ->   %0 = add(%x, %x)
         %1 = where(%p, %0, %x)

A branch that a processor guesses wrong costs as much as about twenty operations, and a branch in a
loop keeps its iterations apart. Nothing is computed that could be refused, as a division by zero.

A conditional that may end the loop around it (``break``, ``return``) stays, and so does one that
asks whether the loop has ended. It goes the same way in every iteration but the last, and as a
branch it leaves the loop there: operations on the way out cost the iterations nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core.shapes import Dim
from treadle.core.spec import Spec, TensorSpec
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.graph.trip_count import ending_flags
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Apply, Axis, Const, Expr, Index, const
from treadle.ops.control.control_flow import COND, WHILE
from treadle.ops.elementwise.logic import LOGICAL_NOT
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.lowering import Access, Compute, Structure

# Of both branches together. No machine changes it: so many instructions take less time than a
# branch that is guessed wrong, ten to twenty cycles on all processors that guess.
MOST_NODES = 8


def choose_numbers(graph: Graph) -> bool:
    """Replace ``cond`` nodes of cheap scalars by selections."""
    return _Chooser(graph).run()


class _Chooser(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._leaving: set[Value] = set()  # flags that end a loop, as conditionals give them
        for node in graph.walk():
            if node.op is WHILE:
                for number in ending_flags(node):
                    self._leave(node.regions[1].results[number])

    def _leave(self, flag: Value) -> None:
        """Remember the conditionals that give a flag."""
        node = flag.node
        if node is None or node.op is not COND or flag in self._leaving:
            return
        self._leaving.add(flag)
        for region in node.regions:
            result = region.results[flag.index]
            inner = result.producer is region
            self._leave(node.inputs[1 + result.index] if inner else result)

    def _may_leave(self, node: Node) -> bool:
        """Whether a conditional may end a loop, or asks whether the loop has ended."""
        asked = node.inputs[0]
        while asked.node is not None and asked.node.op is LOGICAL_NOT:
            asked = asked.node.inputs[0]
        return asked in self._leaving or any(v in self._leaving for v in node.outputs)

    def visit(self, node: Node) -> Replacement:
        if node.op is not COND or not node.outputs or self._may_leave(node):
            return None
        nodes = [n for region in node.regions for n in region.nodes]
        if len(nodes) > MOST_NODES or not all(_is_number(v.spec) for v in node.outputs):
            return None
        if not all(map(_is_cheap, nodes)):
            return None
        sides = [self.inline(region, node.inputs[1:]) for region in node.regions]
        chosen = [
            a if a is b else self.emit(WHERE, [node.inputs[0], a, b], {})
            for a, b in zip(*sides, strict=True)
        ]
        self.erase()
        return chosen


def _is_number(spec: Spec) -> bool:
    return type(spec) is TensorSpec and not spec.dims and not spec.dtype.is_complex


def _is_cheap(node: Node) -> bool:
    """Whether a node is a scalar operation of a few instructions that cannot be refused."""
    values = [*node.inputs, *node.outputs]
    if not node.is_pure or node.regions or not all(_is_number(v.spec) for v in values):
        return False
    if node.op.lower is Structure.CONSTANT:
        return True
    return takes_few_instructions(node)


def takes_few_instructions(node: Node) -> bool:
    """Whether a node is an elementwise operation, of a few instructions for each element."""
    lower = node.op.lower
    if not isinstance(lower, Compute) or lower.kind != "elementwise":
        return False
    return _is_cheap_expression(lower.rule(_Scalars(node), ()))


class _Scalars:
    """A node as a lowering rule sees it, with constants in place of its inputs. Its operands are
    scalars, or arrays that are taken for scalars."""

    def __init__(self, node: Node) -> None:
        self.specs: Sequence[Spec] = [TensorSpec((), v.spec.dtype) for v in node.inputs]
        self.out: Spec = TensorSpec((), node.outputs[0].spec.dtype)
        self.which = 0
        self.attrs: Mapping[str, Any] = node.attrs
        self.inputs: Sequence[Access] = [_read(v) for v in node.inputs]

    def axis(self, extent: Dim) -> Axis:
        raise AssertionError("an elementwise op has no axes of its own")


def _read(value: Value) -> Access:
    spec = value.spec
    assert isinstance(spec, TensorSpec)

    def access(index: Sequence[Index], valid: Expr | None = None, fill: Any = 0) -> Expr:
        return const(1, spec.dtype)

    return access


def _is_cheap_expression(expr: Expr) -> bool:
    if isinstance(expr, Apply):  # divisions are costly
        costly = FUNCTIONS[expr.fn].costly
        return not costly and all(map(_is_cheap_expression, expr.args))
    return isinstance(expr, Const)
