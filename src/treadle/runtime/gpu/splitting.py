"""Kernels whose stores need different loops, as several kernels.

Sums of the rows of an array and sums of its columns have no common grid: in one kernel, the ones
would be loops inside of the loops of the others. So would scans in two directions. Nor has a loop
anything to do with stores without one of its axes. Each store joins the first others with which it
can be computed by one team for each point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from treadle.kernel.ir import Axis, Expr, Kernel, Load, Reduce, Scan, Store, postorder
from treadle.runtime.gpu.mapping import order_of


def split(kernel: Kernel) -> list[Kernel]:
    """The kernels that do what one does, in their order; the kernel alone where its stores fit
    together, or where each of two would change what the other one loads.

    All have the buffers of the kernel, and those of its axes that they need.
    """
    if kernel.segmented or len(kernel.stores) == 1:
        return [kernel]
    parts: list[list[Store]] = []
    for stores in _ordered(_grouped(kernel.stores, _meet)) or [list(kernel.stores)]:
        parts += _ordered(_grouped(stores, _fit)) or [stores]
    if len(parts) == 1:
        return [kernel]
    found = []
    for part in parts:
        needed = _axes_of(part)
        axes = tuple(a for a in kernel.axes if a in needed)
        found.append(replace(kernel, axes=axes, stores=tuple(part)))
    return found


def _grouped(
    stores: Sequence[Store], together: Callable[[list[Store], Store], bool]
) -> list[list[Store]]:
    """Stores, each with the first others that it goes together with."""
    groups: list[list[Store]] = []
    for store in stores:
        fitting = next((g for g in groups if together(g, store)), None)
        if fitting is None:
            groups.append([store])
        else:
            fitting.append(store)
    return groups


def _ordered(groups: list[list[Store]]) -> list[list[Store]] | None:
    """Groups of stores in an order in which none stores into what another one has yet to load; None
    where there is none."""
    stored = [{s.buffer for s in g} for g in groups]
    loaded = [{e.buffer for e in _exprs(g) if isinstance(e, Load)} for g in groups]
    waiting, found = list(range(len(groups))), []
    while waiting:
        free = (
            n for n in waiting if not any(stored[n] & loaded[m] for m in waiting if m != n)
        )
        first = next(free, None)
        if first is None:
            return None
        waiting.remove(first)
        found.append(groups[first])
    return found


def _meet(stores: list[Store], other: Store) -> bool:
    """Whether a store has an axis in common with others, or none at all as they."""
    axes, own = _axes_of(stores), _axes_of([other])
    return bool(axes & own) or not (axes or own)


def _fit(stores: list[Store], other: Store) -> bool:
    """Whether no reduction lies inside of a loop along another axis, scans are alone and along one
    axis in one direction, and so are stores whose order matters."""
    every = [*stores, other]
    if any(map(order_of, every)):
        return False
    exprs = _exprs(every)
    reductions = [e for e in exprs if isinstance(e, Reduce)]
    scans = {(e.axis, e.reverse) for e in exprs if isinstance(e, Scan)}
    inner = {a for r in reductions for a in r.over} | {axis for axis, _ in scans}
    apart = len(scans) > 1 or (scans and reductions)
    return not apart and not any(r.axes & inner for r in reductions)


def _exprs(stores: list[Store]) -> list[Expr]:
    return postorder([e for s in stores for e in s.roots])


def _axes_of(stores: list[Store]) -> set[Axis]:
    """The axes that stores need, those that they reduce over too."""
    exprs = _exprs(stores)
    reduced = {a for e in exprs if isinstance(e, Reduce) for a in e.over}
    return reduced.union(*(e.axes for e in exprs), *(s.axes for s in stores))
