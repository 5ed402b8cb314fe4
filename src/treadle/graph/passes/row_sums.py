"""Totals that a loop adds up, kept apart by rows until it ends.

    while: s += reduce_sum(%x)   ->   while: %r += reduce_sum(%x, axis=1)
                                      s += reduce_sum(%r)

A total needs all rows of an array in every iteration; without it, iterations often leave the rows
apart, and threads need not wait for each other (`runtime/cpu/rows.py`). The order of addition
changes, so sums may round differently; rolled loops, which have the bits of their iterations one
after the other, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from treadle.core.spec import is_static
from treadle.graph.ir import Graph, Node, Value, uses
from treadle.graph.rewrite import Replacement, Rewriter, add_carried
from treadle.ops.control.control_flow import WHILE
from treadle.ops.elementwise.arithmetic import ADD
from treadle.ops.reductions.reduction import REDUCE_SUM
from treadle.ops.shaping.creation import FILL


def keep_rows_apart(graph: Graph) -> bool:
    """Split sums of totals in ``while`` nodes."""
    return _Splitter(graph).run()


class _Splitter(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op is not WHILE or node.attrs.get("rolled"):
            return None
        sums = [i for i in range(len(node.outputs)) if not node.outputs[i].spec.rank]
        reads = [uses(r) for r in node.regions] if sums else []
        terms = [(i, added_up(node, i, *reads)) for i in sums]
        found = [(i, term) for i, term in terms if term is not None and _is_total(term)]
        if not found:
            return None
        carried = [self.carry(node, total) for _, total in found]
        self.place(node)
        self.erase()  # it has just been put in its place
        results: list[Value] = list(node.outputs)
        for (number, _), rows in zip(found, carried, strict=True):
            total = self.emit(REDUCE_SUM, [node.outputs[rows]], {"axis": (0,), "keepdims": False})
            results[number] = self.emit(ADD, [node.inputs[number], total], {})
            body = node.regions[1]
            body.results[number] = body.params[number]
        return results

    def carry(self, loop: Node, total: Node) -> int:
        """Carry the sums of rows instead; the number of the output."""
        body, (x,) = loop.regions[1], total.inputs
        zero = self.constant(np.zeros((), x.spec.dtype.np_dtype))
        start = self.emit(FILL, [zero], {"shape": x.spec.dims[:1]})
        before = add_carried(loop, start)
        rows = x
        if x.spec.rank > 1:
            attrs = {"axis": tuple(range(1, x.spec.rank)), "keepdims": False}
            rows = body.append(
                Node(REDUCE_SUM, [x], attrs, [start.spec], (), total.origin)
            ).outputs[0]
        added = body.append(Node(ADD, [before, rows], {}, [start.spec], (), total.origin))
        body.results.append(added.outputs[0])
        return len(loop.outputs) - 1


def added_up(
    loop: Node, number: int, asked: Mapping[Value, int], read: Mapping[Value, int]
) -> Node | None:
    """The node of the body whose floating result loop variable `number` adds up, where nothing
    else reads this result or the variable.

    Args:
        asked, read: how often values are read in the condition and in the body.
    """
    condition, body = loop.regions
    param, result = body.params[number], body.results[number]
    add = result.node
    if add is None or add.op is not ADD or asked.get(condition.params[number]):
        return None
    others = [v for v in add.inputs if v is not param]
    if len(others) != 1 or any(read[v] != 1 for v in (param, result, *others)):
        return None
    term, spec = others[0].node, others[0].spec
    same = spec is param.spec and spec.dtype.is_floating
    return term if same and term is not None and term.region is body else None


def _is_total(term: Node) -> bool:
    """Whether a node adds up all elements of an array of several rows."""
    if term.op is not REDUCE_SUM:
        return False
    dims = term.inputs[0].spec.dims
    whole = term.attrs["axis"] == tuple(range(len(dims))) and is_static(term.inputs[0].spec)
    return bool(whole and dims and dims[0] != 1)
