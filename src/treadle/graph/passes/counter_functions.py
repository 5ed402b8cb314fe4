"""Costly functions of a loop's counter, which need no other iteration.

    while(%k < 100, %s) body:                      %t = exp(multiply(range(100), %a))
        %1 = exp(multiply(%k, %a))          ->     while(%k < 100, %s, %t) body:
        return %k + 1, %s * %1 + ...                   return %k + 1, %s * index(%t, %k) + ...

A vector of them takes little longer than one of them in each iteration.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.graph.ir import Node, Value, uses
from treadle.graph.passes.choices import takes_few_instructions
from treadle.graph.passes.invariants import cannot_fail
from treadle.graph.passes.moving_parts import READS
from treadle.graph.trip_count import Counter, counter, invariants, trip_count
from treadle.ops.conversion import CONST
from treadle.ops.dims import POSITION
from treadle.ops.elementwise.arithmetic import DIVIDE, FLOORDIV, MOD, TRUNCATEDIV, TRUNCATEMOD

LEAST_TRIPS = 16  # iterations: they fill a vector of any machine
MOST_TRIPS = 1 << 16  # so many numbers are kept for each function: a bound on memory

# Processors divide in one instruction, which scalar code waits little for.
_DIVISIONS = frozenset({DIVIDE, FLOORDIV, MOD, TRUNCATEDIV, TRUNCATEMOD})


class Found(NamedTuple):
    """The functions of a loop that can be computed before it.

    Attributes:
        counter: the number of the loop variable that counts the iterations from 0.
        functions: nodes of scalars.
        made_of: these nodes and the nodes of the body that they need, in their order.
    """

    counter: int
    functions: list[Node]
    made_of: list[Node]


def counter_functions(loop: Node) -> Found | None:
    """The costly functions that a loop of known length computes from its counter and from values
    that it does not change; None where it has none."""
    trips = trip_count(loop)
    if trips is None or not LEAST_TRIPS <= trips <= MOST_TRIPS:
        return None
    body = loop.regions[1]
    counts = [k for k in range(len(body.results)) if counter(loop, k) == Counter(k, 0, 1)]
    moving = {body.params[k] for k in counts}
    fixed = {*invariants(loop), *moving}
    free = [node for node in body.nodes if _is_free(node, fixed)]
    for node in free:
        if not moving.isdisjoint(node.inputs):
            moving.update(node.outputs)
    costly = [n for n in free if n.outputs[0] in moving and _is_costly(n)]
    needed = {v for node in costly for v in node.outputs}
    made_of = set[Node]()
    for node in reversed(free):
        if not needed.isdisjoint(node.outputs):
            made_of.add(node)
            needed.update(node.inputs)
    if not costly:
        return None
    read = uses(body)
    for node in made_of:
        for value in node.inputs:
            read[value] -= 1
    functions = [n for n in costly if read.get(n.outputs[0])]
    return Found(counts[0], functions, [n for n in free if n in made_of])


def _is_free(node: Node, fixed: set[Value]) -> bool:
    """Whether a scalar is known before the loop for every iteration; `fixed` then has it."""
    if node.regions or len(node.outputs) != 1 or node.outputs[0].spec.rank:
        return False
    if node.op is POSITION or not all(v in fixed for v in node.inputs):
        return False
    computed = node.op.is_elementwise and cannot_fail(node)
    if not (computed or node.op is CONST or node.op in READS):
        return False
    fixed.update(node.outputs)
    return True


def _is_costly(node: Node) -> bool:
    floating = node.outputs[0].spec.dtype.is_floating
    many = node.op not in _DIVISIONS and not takes_few_instructions(node)
    return node.op.is_elementwise and floating and many
