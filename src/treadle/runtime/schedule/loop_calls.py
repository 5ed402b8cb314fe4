"""Calls of Python in the loops of a program: found when it is built, for a warning.

Users expect calls of Python functions, prints, iterators and ops on strings. They do not expect
that an op on numbers has no native form: calling Python costs each iteration more than the op's
work.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.origin import at
from treadle.graph.ir import Node
from treadle.ops.control.control_flow import WHILE
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Callback, Launch, Loop, Step, node_of


def calls_in_loops(block: Block) -> str:
    """Which ops call Python in loops, and on which line the first one is; "" for none."""
    nodes = list(dict.fromkeys(_calling(block)))
    if not nodes:
        return ""
    first, *others = nodes
    names = [op.name for op in dict.fromkeys(n.op for n in others) if op is not first.op]
    more = f" (and so do {', '.join(names)})" if names else ""
    return f"{first.op.name} has no native form and calls Python in a loop{more}{at(first.origin)}"


def _calling(block: Block) -> Iterator[Node]:
    for step in _in_loops(block):
        node = node_of(step)
        if node is None:
            continue
        unwanted = isinstance(step, Callback) and not _is_meant(node)
        if unwanted or (isinstance(step, Launch) and not step.native):
            yield node


def _is_meant(node: Node) -> bool:
    return node.op.effect is not None or ("strings" in node.op.tags and node.op.lower is None)


def _in_loops(block: Block) -> Iterator[Step]:
    """The steps in loops, and the loops that are interpreted as a whole."""
    for step in all_steps(block):
        if isinstance(step, Loop):
            yield from all_steps(step.condition)
            yield from all_steps(step.body)
        elif isinstance(step, Callback) and step.node.op is WHILE:
            yield step
