"""Long chains of operations in stages: a block of elements goes through one loop after another.

A processor works on as many elements at once as its window of a few hundred instructions holds.
Where each element is a long chain of dependent operations, as of a logarithm, a division and an
error function, that is too few to fill its units. A stage is a loop of its own over a block, whose
results wait in the first-level cache for the next: its chains are shorter and its instructions
fewer, so that more elements are under way. The operations and their results are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.kernel.ir import Apply, Axis, Expr
from treadle.runtime.cpu.elements import LONG_FUNCTIONS

BLOCK = 32  # vectors of a block
MOST_KEPT = 8  # values of a block that wait for later stages: they share the cache with operands
LONGEST = 100  # cycles of a chain that is left in one piece
_CHEAP = 12  # cycles: what is computed again rather than kept
_DIVISIONS = frozenset({"div", "sqrt", "rsqrt", "floordiv", "truncdiv"})


def stages(exprs: Sequence[Expr], axis: Axis) -> list[list[Expr]]:
    """The values to keep after each stage but the last, operands first; [] for a single stage.

    exprs: what a loop along the axis computes, operands first; what they need beyond is known.
    """
    chains = _chains(exprs)
    if max(chains.values(), default=0) <= LONGEST:
        return []
    stage = _assigned(exprs)
    needed: dict[Expr, int] = {}  # the last stage that uses a value
    for e in exprs:
        for x in e.children:
            needed[x] = max(needed.get(x, 0), stage[e])
    kept = [
        e
        for e in exprs
        if isinstance(e, Apply)
        and axis in e.axes
        and chains[e] > _CHEAP
        and stage[e] < needed.get(e, 0)
    ]
    if not kept or len(kept) > MOST_KEPT:
        return []
    return [[e for e in kept if stage[e] == k] for k in sorted({stage[e] for e in kept})]


def _latency(e: Expr) -> int:
    """Cycles from an operation's operands to its result, roughly."""
    if not isinstance(e, Apply):
        return 0
    wide = e.dtype.size == 8
    if e.fn in LONG_FUNCTIONS:
        return 70 if wide else 55
    return (20 if wide else 15) if e.fn in _DIVISIONS else 4


def _chains(exprs: Sequence[Expr]) -> dict[Expr, int]:
    """The cycles of the longest chain that leads to each value."""
    chains: dict[Expr, int] = {}
    for e in exprs:
        chains[e] = _latency(e) + max((chains.get(x, 0) for x in e.children), default=0)
    return chains


def _assigned(exprs: Sequence[Expr]) -> dict[Expr, int]:
    """The stage in which each value can be computed first, with chains of at most `LONGEST`."""
    stage: dict[Expr, int] = {}
    within: dict[Expr, int] = {}  # the chain inside the stage
    for e in exprs:
        here = max((stage.get(x, 0) for x in e.children), default=0)
        before = max((within[x] for x in e.children if stage.get(x) == here), default=0)
        if before and before + _latency(e) > LONGEST:
            here, before = here + 1, 0
        stage[e], within[e] = here, before + _latency(e)
    return stage
