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
from treadle.runtime.tuning import Tuning

# No machine changes these: they compare instructions with instructions.
MOST_KEPT = 8  # values of a block that wait for later stages: more would be stored than computed
_CHEAP = 12  # cycles of a chain that is computed again rather than kept
_LONG = {4: 55, 8: 70}  # cycles of a long function, by the size of its numbers
_DIVISIONS = frozenset({"div", "sqrt", "rsqrt", "floordiv", "truncdiv"})


def block_vectors(tuning: Tuning) -> int:
    """Vectors of a block, a power of 2: waiting values take a third of the first-level cache."""
    most = tuning.l1.size // (3 * MOST_KEPT * tuning.vector_bytes)
    return 1 << max(1, most).bit_length() - 1


def longest_chain(tuning: Tuning) -> int:
    """Cycles of a chain that is left in one piece: the processor begins four operations in each,
    and holds no more than its window. A long function is one piece anyway."""
    return max(_LONG[8], tuning.window // 4)


def stages(exprs: Sequence[Expr], axis: Axis, longest: int) -> list[list[Expr]]:
    """The values to keep after each stage but the last, operands first; [] for a single stage.

    longest: cycles of a chain that is left in one piece.
    exprs: the values that a loop along the axis computes, operands first; all other operands of
        theirs are known before the loop.
    """
    chains = _chains(exprs)
    if max(chains.values(), default=0) <= longest:
        return []
    stage = _assigned(exprs, longest)
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
        return _LONG[8 if wide else 4]
    return (20 if wide else 15) if e.fn in _DIVISIONS else 4


def _chains(exprs: Sequence[Expr]) -> dict[Expr, int]:
    """The cycles of the longest chain that leads to each value."""
    chains: dict[Expr, int] = {}
    for e in exprs:
        chains[e] = _latency(e) + max((chains.get(x, 0) for x in e.children), default=0)
    return chains


def _assigned(exprs: Sequence[Expr], longest: int) -> dict[Expr, int]:
    """The stage in which each value can be computed first, with chains of at most `longest`."""
    stage: dict[Expr, int] = {}
    within: dict[Expr, int] = {}  # the chain inside the stage
    for e in exprs:
        here = max((stage.get(x, 0) for x in e.children), default=0)
        before = max((within[x] for x in e.children if stage.get(x) == here), default=0)
        if before and before + _latency(e) > longest:
            here, before = here + 1, 0
        stage[e], within[e] = here, before + _latency(e)
    return stage
