"""Rows that are computed where they are stored.

A sum of segments, or a scatter, stores the rows of an array at places that data tells. Where a
kernel computes these rows for nothing else, as that of a product with a sparse matrix does, the
kernel that stores them computes each element when it stores it: nobody writes the rows to memory,
which may be many times larger than the result, and reads them again.

The array keeps its place, as the call of NumPy that raises an error has its operands; nothing
touches its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from treadle.kernel.ir import Affine, Kernel, Reduce, Scan, postorder
from treadle.kernel.rewrite import Rewrite
from treadle.runtime.fusion.kernels import with_extent
from treadle.runtime.schedule.joining import Shared, is_plain, shared_buffers, with_values
from treadle.runtime.schedule.steps import (
    Check,
    Launch,
    Note,
    Operand,
    OpLoops,
    Place,
    Step,
    Update,
    memory,
)

ROWS = 1  # the buffer of a kernel that stores rows (`scatters`)


def compute_where_stored(
    steps: Sequence[Step], results: Sequence[Operand], launch: Callable[..., Launch]
) -> list[Step]:
    """`steps` without the kernels whose results are rows that another kernel stores.

    Args:
        results: what is read after the steps.
        launch: makes the launch of a kernel with its operands.
    """
    found = list(steps)
    kept = {memory(o.place) for o in results if o.place is not None}
    for step in steps:
        if not isinstance(step, OpLoops | Update) or step.launch is None:
            continue
        place = step.launch.operands[ROWS].place
        if place is None or place.kind != "temporary" or memory(place) in kept:
            continue
        maker = _maker(found, step, place)
        joined = None if maker is None else _joined(maker, step.launch)
        if maker is None or joined is None:
            continue
        new = launch(*joined)
        if not new.native or new.scratch is not None or new.shared is not None:
            continue
        step.launch = new
        step.reads = [*step.reads, *new.reads]
        step.writes = [*step.writes, place]
        found.remove(maker)
    return found


def _maker(steps: Sequence[Step], user: Step, place: Place) -> Launch | None:
    """The launch that writes an array which nothing but `user` reads, where it may as well be done
    with `user`."""
    where = memory(place)
    touching = [s for s in steps if where in _of(s.reads) | _of(s.writes)]
    if len(touching) != 2 or touching[1] is not user or not isinstance(touching[0], Launch):
        return None
    maker = touching[0]
    operands = [o.place for n, o in enumerate(maker.operands) if n not in maker.outputs]
    read = _of([p for p in operands if p is not None])
    if where in read or read & _of(user.writes) or len(_of(maker.writes)) != 1:
        return None
    between = steps[steps.index(maker) + 1 : steps.index(user)]
    for step in between:
        # A step that ends the program leaves nobody who would need the rows.
        if not (is_plain(step) or isinstance(step, Check | Note | OpLoops)):
            return None
        if read & _of(step.writes):
            return None
    return maker


def _of(places: Sequence[Place]) -> set[Hashable]:
    return set(map(memory, places))


def _joined(maker: Launch, user: Launch) -> tuple[Kernel, list[Operand]] | None:
    """The kernel that stores rows as it computes them, and its operands; None where the first one
    does not compute one element for each that the second one stores."""
    if not maker.native or maker.scratch is not None or maker.shared is not None:
        return None
    first, then = maker.kernel, user.kernel
    if maker.extent is not None:
        first = with_extent(first, maker.extent)
    if len(first.stores) != 1 or len(then.stores) != 1 or user.extent is not None:
        return None
    (made,), (stored,) = first.stores, then.stores
    rows = then.buffers[ROWS]
    if made.combine != "set" or [a.extent for a in first.axes] != [a.extent for a in then.axes]:
        return None
    if made.index != tuple(Affine(((a, 1),)) for a in first.axes):
        return None
    if any(isinstance(e, Reduce | Scan) for e in postorder([made.value])):
        return None
    found: Shared = {}
    operands = dict(zip(then.buffers, user.operands, strict=True))
    del operands[rows]
    after = shared_buffers(found, operands, keep=True)
    operands = dict(zip(first.buffers, maker.operands, strict=True))
    del operands[made.buffer]
    before = shared_buffers(found, operands)
    axes = dict(zip(first.axes, then.axes, strict=True))
    value = Rewrite(lambda buffer, index: (before[buffer], index), axes)(made.value)
    rewrite = Rewrite(lambda buffer, index: (after.get(buffer, buffer), index))
    store = rewrite.store(stored)
    (new,) = with_values([store.value], {rows: value})
    buffers = tuple(b for b, _ in found.values())
    kernel = Kernel(then.axes, buffers, (replace(store, value=new),))
    return kernel, [operand for _, operand in found.values()]
