"""Which expressions of a kernel the code at a level computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from treadle.kernel.ir import Expr, Reduce, postorder
from treadle.runtime.cpu.nest.level import Level


def evaluated(roots: Iterable[Expr]) -> list[Expr]:
    """The values that a loop computes: the expressions below the roots, but not below reductions,
    which are loops of their own."""
    done: dict[Expr, None] = {}
    stack = list(roots)
    while stack:
        e = stack.pop()
        if e in done or isinstance(e, Reduce):
            continue
        done[e] = None
        stack += e.children
    return list(done)


def unknown(roots: Sequence[Expr], level: Level, is_leaf: Callable[[Expr], bool]) -> list[Expr]:
    """The expressions below the roots whose registers a level does not know, operands first;
    nothing below leaves."""
    return postorder(roots, lambda e: level.find(e) is not None, is_leaf)
