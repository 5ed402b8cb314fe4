"""Ops that select elements by masks: counted, their sizes read by the host, then written."""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.records import record
from treadle.core.shapes import product, symbol_name
from treadle.graph.ir import Node
from treadle.graph.rewrite import mentioned_symbols
from treadle.ops.lowering import Compaction
from treadle.runtime.fusion.fuse import Fusion, Unit
from treadle.runtime.roles import Role
from treadle.runtime.schedule import compaction
from treadle.runtime.schedule.emission import Emission
from treadle.runtime.schedule.steps import Measure, Operand

# Roles of units that a device computes without the host.
_COMPUTING = (Role.ALIAS, Role.ARRAY, Role.COMPACTION, Role.CONSTANT, Role.LIBRARY, Role.SCALAR)


@record(eq=False)
class Selection:
    """The elements that a mask selects, once they are counted.

    counts: of each part of the mask; `ends`: their running sums; `total`: their sum, a number.
    """

    node: Node
    lower: Compaction
    mask: Operand
    spans: list[compaction.Span]
    counts: Operand
    ends: Operand
    total: Operand


class Selections:
    """The masks of a region whose sizes the host has not read yet."""

    def __init__(self, steps: Emission, fusion: Fusion) -> None:
        self.steps, self.program, self.order = steps, steps.program, steps.order
        self.fusion = fusion
        self.waiting: list[Selection] = []

    def count(self, unit: Unit) -> None:
        """An op that selects elements by a mask: the counts of the mask's parts tell the size of
        the result and where each part writes. A device counts other masks, too, before the host
        reads all sizes at once."""
        node = unit.nodes[0]
        lower = node.op.lower
        assert isinstance(lower, Compaction)
        self.steps.guard(node)
        mask = self.program.operand(node.inputs[lower.mask])
        elements = product(mask.value.spec.dims)
        spans = compaction.spans_of(elements)
        parts = sum(span.count for span in spans)
        counts, ends = (self.program.array([parts], dtypes.int64) for _ in range(2))
        total = self.steps.computed(self.program.unnamed([], dtypes.int64))
        for span in spans:
            self.steps.compute(compaction.counting(elements, span, parts), node, [mask, counts])
        self.steps.compute(compaction.totalling(parts), node, [counts, total])
        self.steps.compute(compaction.adding(parts), node, [counts, ends])
        self.waiting.append(Selection(node, lower, mask, spans, counts, ends, total))
        if self.program.facts.unified:
            self.read_counts()

    def is_independent(self, unit: Unit) -> bool:
        """Whether a unit can be done before the host reads how many elements masks select: it needs
        no such number, cannot end the program, and overwrites no array."""
        noted = unit.nodes[0] in self.program.residence.noted
        if unit.role not in _COMPUTING and not noted:
            return False
        order, nodes = self.order, self.fusion.computed(unit)
        values = [v for n in unit.nodes for v in n.outputs]
        cells = order.in_place, order.taken, order.assigned
        if any(v in memory for v in values for memory in cells):
            return False
        selected = [s.node.outputs[0] for s in self.waiting]
        symbols = set().union(*(v.spec.symbols() for v in selected)) - self.program.known
        mentioned = set().union(*map(mentioned_symbols, nodes), *(v.spec.symbols() for v in values))
        return mentioned.isdisjoint(symbols) and set(self.fusion.loads[unit]).isdisjoint(selected)

    def read_counts(self) -> None:
        """Read how many elements masks select, and write these."""
        selections, self.waiting = self.waiting, []
        for found in selections:
            name = symbol_name(found.node.outputs[0].spec.dims[0])
            assert name is not None
            self.steps.discover(found.node)
            self.steps.emit(Measure(name, self.steps.on_host(found.total.value)))
        for found in selections:
            self._write_selected(found)

    def _write_selected(self, found: Selection) -> None:
        node, mask, lower = found.node, found.mask, found.lower
        out = node.outputs[0]
        elements, parts = product(mask.value.spec.dims), sum(span.count for span in found.spans)
        made, count = self.steps.computed(out), out.spec.dims[0]
        positions = lower.rows is None
        flat = positions and out.spec.rank == 2 and out.spec.dims[1] != 1
        target = self.program.array([count], dtypes.int64) if flat else made
        rows = [] if lower.rows is None else [self.program.operand(node.inputs[lower.rows])]
        row = 1 if positions else product(out.spec.dims[1:])
        for span in found.spans:
            kernel = compaction.writing(
                elements, span, parts, out.spec.dtype, row, count, positions
            )
            operands = [mask, found.counts, found.ends, *rows, target]
            self.steps.compute(kernel, node, operands)
        if flat:
            kernel = compaction.dividing(mask.value.spec.dims, count)
            self.steps.compute(kernel, node, [target, made])
