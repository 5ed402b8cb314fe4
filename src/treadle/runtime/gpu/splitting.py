"""Kernels whose stores need different loops, as several kernels.

Sums of the rows of an array and sums of its columns have no common grid: in one kernel, the ones
would be loops inside of the loops of the others. So would scans in two directions. Nor has a loop
anything to do with stores without one of its axes. Each store joins the first others with which it
can be computed by one team for each point.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.kernel.ir import Axis, Expr, Kernel, Load, Reduce, Scan, Store, postorder
from treadle.runtime.gpu.mapping import order_of


def split(kernel: Kernel) -> list[Kernel]:
    """The kernels that do what one does, in their order; the kernel alone where its stores fit
    together, or where each of two would change what the other one loads.

    All have the buffers of the kernel, and those of its axes that they need.
    """
    groups: list[list[Store]] = []
    for store in kernel.stores if not kernel.segmented else ():
        fitting = next((g for g in groups if _meet(g, store) and _fit([*g, store])), None)
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
        needed = _axes_of(first)
        axes = tuple(a for a in kernel.axes if a in needed)
        found.append(replace(kernel, axes=axes, stores=tuple(first)))
    return found


def _meet(stores: list[Store], other: Store) -> bool:
    """Whether a store has an axis in common with others, or none at all as they."""
    axes, own = _axes_of(stores), _axes_of([other])
    return bool(axes & own) or not (axes or own)


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


def _axes_of(stores: list[Store]) -> set[Axis]:
    """The axes that stores need, those that they reduce over too."""
    exprs = _exprs(stores)
    reduced = {a for e in exprs if isinstance(e, Reduce) for a in e.over}
    return reduced.union(*(e.axes for e in exprs), *(s.axes for s in stores))
