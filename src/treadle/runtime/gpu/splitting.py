"""Kernels whose stores need different loops, as several kernels.

Sums of the rows of an array and sums of its columns have no common grid: in one kernel, the ones
would be loops inside of the loops of the others. So would scans in two directions. Each store joins
the first others with which it can be computed by one team for each point.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.kernel.ir import Expr, Kernel, Load, Reduce, Scan, Store, postorder
from treadle.runtime.gpu.mapping import order_of


def split(kernel: Kernel) -> list[Kernel]:
    """The kernels that do what one does, in their order; the kernel alone where its stores fit
    together, or where each of two would change what the other one loads.

    All have the buffers of the kernel, and those of its axes that they need.
    """
    groups: list[list[Store]] = []
    for store in kernel.stores if not kernel.segmented else ():
        fitting = next((g for g in groups if _fit([*g, store])), None)
        if fitting is None:
            groups.append([store])
        else:
            fitting.append(store)
    if len(groups) < 2:
        return [kernel]  # also one store that does not fit with itself
    found: list[Kernel] = []
    while groups:
        first = next((g for g in groups if not _changes_loads(g, groups)), None)
        if first is None:
            return [kernel]
        groups.remove(first)
        needed = {a for e in _exprs(first) for a in _axes(e)} | {a for s in first for a in s.axes}
        axes = tuple(a for a in kernel.axes if a in needed)
        found.append(replace(kernel, axes=axes, stores=tuple(first)))
    return found


def _fit(stores: list[Store]) -> bool:
    """Whether no reduction lies inside of a loop along another axis, scans are alone and along one
    axis in one direction, and so are stores whose order matters."""
    if any(map(order_of, stores)):
        return False
    exprs = _exprs(stores)
    reductions = [e for e in exprs if isinstance(e, Reduce)]
    scans = {(e.axis, e.reverse) for e in exprs if isinstance(e, Scan)}
    inner = {a for r in reductions for a in r.over} | {axis for axis, _ in scans}
    apart = len(scans) > 1 or (scans and reductions)
    return not apart and not any(r.axes & inner for r in reductions)


def _changes_loads(group: list[Store], groups: list[list[Store]]) -> bool:
    """Whether a group stores into what another one has yet to load."""
    stored = {s.buffer for s in group}
    loads = (e for other in groups if other is not group for e in _exprs(other))
    return any(isinstance(e, Load) and e.buffer in stored for e in loads)


def _exprs(stores: list[Store]) -> list[Expr]:
    return postorder([e for s in stores for e in s.roots])


def _axes(expr: Expr) -> set[object]:
    """The axes that an expression needs, those that it reduces over too."""
    return {*expr.axes, *(expr.over if isinstance(expr, Reduce) else ())}
