"""The least or greatest of several integers takes the previous iteration's number last.

    %1 = minimum(%c, %a)            %1 = minimum(%a, %b)
    %2 = minimum(%1, %b)     ->     %2 = minimum(%1, %c)      %c: made by the previous iteration
    return %2                       return %2

A loop whose iterations wait for one another is as fast as the chain of operations from one to the
next. All that does not belong to this chain can be done before. Integers only: the order of
floating minima tells which zero and which NaN comes out.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Region, Value, uses
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.graph.trip_count import step_of
from treadle.ops.control.control_flow import WHILE
from treadle.ops.elementwise.arithmetic import MAXIMUM, MINIMUM
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.registry import Op
from treadle.runtime.schedule.facts import Facts

_CHOOSE = (MINIMUM, MAXIMUM, WHERE)


class _Extremum(NamedTuple):
    """The lesser or the greater of two integers, and how often its node reads each of them."""

    op: Op
    operands: tuple[Value, Value]
    reads: int


def order_operands(graph: Graph, facts: Facts) -> bool:
    """Give minima and maxima of three and more integers their latest operands last."""
    if not any(node.op is WHILE for node in graph.walk()):
        return False
    return _Orderer(graph).run()


class _Orderer(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._bodies = {n.regions[1]: n for n in graph.walk() if n.op is WHILE}
        self._ordered: dict[Node, tuple[Op, list[Value]]] = {}
        self._renamed: dict[Value, Value] = {}

    def enter(self, region: Region) -> None:
        loop = self._bodies.get(region)
        if loop is None or sum(n.op in _CHOOSE for n in region.nodes) < 2:
            return
        reads = uses(region)
        found = {n: e for n in region.nodes if (e := _extremum(n, reads)) is not None}
        inner = {
            operand.node
            for e in found.values()
            for operand in e.operands
            if _belongs(operand, e, found, reads)
        }
        late = _late_values(loop)
        for node, extremum in found.items():
            if node in inner:
                continue
            operands = _operands(extremum, found, reads)
            ordered = sorted(operands, key=late.__contains__)
            if len(operands) > 2 and ordered != operands:
                self._ordered[node] = extremum.op, ordered

    def visit(self, node: Node) -> Replacement:
        if node not in self._ordered:
            return None
        op, operands = self._ordered[node]
        first, *others = (self._renamed.get(v, v) for v in operands)
        for other in others:
            first = self.emit(op, [first, other], {})
        self._renamed[node.outputs[0]] = first
        return [first]


def _extremum(node: Node, reads: dict[Value, int]) -> _Extremum | None:
    """A node as minimum or maximum of two integers: as an op, or as ``a if a < b else b``
    whose comparison nobody else asks."""
    spec = node.outputs[0].spec if len(node.outputs) == 1 else None
    if type(spec) is not TensorSpec or spec.dims or not spec.dtype.is_integer:
        return None
    if node.op in (MINIMUM, MAXIMUM):
        a, b = node.inputs
        return _Extremum(node.op, (a, b), 1)
    test = node.inputs[0].node if node.op is WHERE else None
    relation = None if test is None else test.op.relation
    if test is None or relation is None or not relation.is_order or reads[test.outputs[0]] > 1:
        return None
    a, b = node.inputs[1:]
    if test.inputs == [a, b]:
        return _Extremum(MINIMUM if relation.is_less else MAXIMUM, (a, b), 2)
    if test.inputs == [b, a]:
        return _Extremum(MAXIMUM if relation.is_less else MINIMUM, (a, b), 2)
    return None


def _belongs(
    value: Value, reader: _Extremum, found: dict[Node, _Extremum], reads: dict[Value, int]
) -> bool:
    """Whether a value is an extremum of the reader's kind that nobody else reads."""
    made = None if value.node is None else found.get(value.node)
    return made is not None and made.op is reader.op and reads[value] == reader.reads


def _operands(
    extremum: _Extremum, found: dict[Node, _Extremum], reads: dict[Value, int]
) -> list[Value]:
    """All that an extremum is taken of, in the order of the program."""
    operands, waiting = [], [*reversed(extremum.operands)]
    readers = dict.fromkeys(extremum.operands, extremum)
    while waiting:
        value = waiting.pop()
        if not _belongs(value, readers[value], found, reads):
            operands.append(value)
            continue
        assert value.node is not None
        made = found[value.node]
        waiting += reversed(made.operands)
        readers |= dict.fromkeys(made.operands, made)
    return operands


def _late_values(loop: Node) -> set[Value]:
    """Values of a loop's body that wait for numbers which every iteration makes of its own ones."""
    body = loop.regions[1]
    tracked = {
        param: 1 << number
        for number, param in enumerate(body.params[: len(body.results)])
        if type(param.spec) is TensorSpec and not param.spec.dims
        if body.results[number] is not param and step_of(loop, number) is None
    }
    needs: dict[Value, int] = dict(tracked)
    for node in body.nodes:
        needed = 0
        for value in node.inputs:
            needed |= needs.get(value, 0)
        if needed:
            needs |= dict.fromkeys(node.outputs, needed)
    made_of = {bit: needs.get(body.results[p.index], 0) for p, bit in tracked.items()}
    changed = True
    while changed:  # a value is also made of the operands of its operands
        changed = False
        for bit, mask in made_of.items():
            wider = mask
            for other, theirs in made_of.items():
                if mask & other:
                    wider |= theirs
            changed |= wider != mask
            made_of[bit] = wider
    recurrent = sum(bit for bit, mask in made_of.items() if mask & bit)
    return {value for value, mask in needs.items() if mask & recurrent}
