"""Loops and branches that are part of a recording, so that the device decides about them while it
does the recorded work: the host is asked for nothing.

An array that two buffers have in turn is in the second one after an odd number of iterations, and
recorded work has fixed addresses. So two iterations are recorded, one for each direction: where the
loop ends between them, the arrays are copied to where they are after both.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from treadle.core.spec import ListSpec
from treadle.graph.ir import Node
from treadle.graph.rewrite import mentioned_symbols
from treadle.ops.control.checks import NOTE
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.one_block import SERVED
from treadle.runtime.gpu.routines import routine_for
from treadle.runtime.roles import Role, bounds_in_data, role_of
from treadle.runtime.schedule.steps import Branch, Loop

if TYPE_CHECKING:
    from treadle.runtime.gpu.run import Run


def fits_recording(node: Node, gpu: Gpu) -> bool:
    """Whether all that is in a loop or a branch is done by kernels and routines that can be
    recorded, on arrays of sizes that are known before it."""
    inside = [n for region in node.regions for n in region.walk()]
    known = {symbol for value in node.inputs for symbol in value.spec.symbols()}
    return all(_fits(n, known, gpu) for n in inside)


def _fits(node: Node, known: Collection[str], gpu: Gpu) -> bool:
    role = role_of(node)
    if node.op is NOTE:
        return True
    if role is Role.LIBRARY:
        routine = routine_for(node, (), gpu)
        if routine is None or not routine.replays:
            return False
    elif role not in SERVED or bounds_in_data(node):
        return False
    lists = any(isinstance(v.spec, ListSpec) for v in (*node.inputs, *node.outputs))
    return not lists and mentioned_symbols(node) <= set(known)


def is_decided_late(step: Loop | Branch) -> bool:
    """Whether only the device has the bool that a step depends on, and the host no number that the
    step computes."""
    if isinstance(step, Branch):
        return step.predicate.place is not None and all(o.place for o in step.results)
    (flag,) = step.condition.results
    return flag.place is not None and all(c.place for c in step.carried)


def record_branch(run: Run, step: Branch) -> None:
    """Record a branch."""
    assert step.predicate.place is not None
    flag = run.address(step.predicate.place)
    otherwise = partial(run.block, step.otherwise) if step.otherwise.steps else None
    run.driver.choose(flag, partial(run.block, step.then), otherwise)


def record_loop(run: Run, step: Loop) -> None:
    """Record a loop whose variables have what they start with."""
    place = step.condition.results[0].place
    assert place is not None
    pairs = [(c.place, c.other) for c in step.carried if c.place and c.other]
    run.block(step.condition)

    def once() -> None:
        run.iteration(step)
        run.block(step.condition)

    def twice() -> None:
        once()
        moves = [(run.address(b), run.address(a), run.bytes_of(a)) for a, b in pairs]

        def back() -> None:
            for move in moves:
                run.copy(*move)

        run.driver.choose(run.address(place), once, back)

    run.driver.repeat(run.address(place), twice if pairs else once)
