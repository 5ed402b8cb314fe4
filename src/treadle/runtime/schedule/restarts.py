"""Comparisons of sizes after which a run may begin anew: it has changed nothing before.

A program takes sizes to be equal where the operands of an operation broadcast. Where they differ
after all, the interpreter can run the whole graph instead, if nobody can see what ran so far:
variables have their values, no random numbers were drawn, nothing was printed and no code of the
user's was called.
"""

from __future__ import annotations

from treadle.runtime.schedule.steps import Block, Branch, Guard, Loop, Step, node_of
from treadle.runtime.symbols import may_broadcast


def note_restarts(block: Block) -> None:
    """Note in the guards of a program whether a run may begin anew after them."""
    _note(block, True)


def _note(block: Block, unchanged: bool) -> bool:
    """The same for a block; whether nothing is changed after it, if nothing was before it."""
    for step in block.steps:
        match step:
            case Guard():
                step.restarts = unchanged and may_broadcast(step.node)
            case Branch():
                after = [_note(inner, unchanged) for inner in (step.then, step.otherwise)]
                unchanged = all(after)
            case Loop():
                # What an iteration changes is changed before the next one.
                parts = (step.condition, step.body)
                unchanged = unchanged and not any(_changes(s) for p in parts for s in p.steps)
                for inner in parts:
                    _note(inner, unchanged)
            case _:
                unchanged = unchanged and not _changes(step)
    return unchanged


def _changes(step: Step) -> bool:
    """Whether others may see that a step ran."""
    match step:
        case Branch():
            blocks = [step.then, step.otherwise]
        case Loop():
            blocks = [step.condition, step.body]
        case _:
            blocks = []
    if any(_changes(inner) for block in blocks for inner in block.steps):
        return True
    node = node_of(step)
    has_effect = node is not None and not blocks and node.has_effect
    return has_effect or any(place.kind == "variable" for place in step.writes)
