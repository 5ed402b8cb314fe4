"""The elements of a point that a team goes through several times: softmax reads its row for the
greatest element, for the sum and for the results.

Each thread goes through the same elements every time. So it may keep what it has loaded, in
registers or in its part of the memory that the block shares, and no thread waits for another.
"""

from __future__ import annotations

from treadle.core.records import record
from treadle.core.shapes import product
from treadle.kernel.ir import Axis, Expr, Kernel, Load, Reduce, postorder
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.mapping import Mapping, nested
from treadle.runtime.gpu.scalars import found_size, found_type
from treadle.runtime.gpu.stages import reduction_levels


@record(frozen=True)
class Kept:
    """What a thread keeps of a load between passes.

    Attributes:
        turns: elements, or vectors, that each thread keeps.
        whole: whether these are all that it loads.
        registers: whether they lie in registers, not in shared memory.
    """

    turns: int
    whole: bool
    registers: bool


def kept_loads(kernel: Kernel, mapping: Mapping, gpu: Gpu) -> dict[Load, Kept]:
    """The loads that several passes over all inner axes need. Those that find room in registers are
    kept there, and others as far as the shared memory has room."""
    if mapping.team == 1 or mapping.parts != 1 or nested(kernel, mapping.inner):
        return {}
    passes: dict[Load, int] = {}
    inner = frozenset(mapping.inner)
    for roots in _passes(kernel, mapping.inner):
        below = postorder(roots, leaf=lambda e: isinstance(e, Reduce))
        for load in below:
            if isinstance(load, Load) and inner <= load.axes:
                passes[load] = passes.get(load, 0) + 1
    each = mapping.team * mapping.run
    size = product(a.extent for a in mapping.inner)
    turns = -(-size // each) if isinstance(size, int) else None
    registers, shared = gpu.kept, gpu.shared - _combining(kernel, mapping, gpu)
    found: dict[Load, Kept] = {}
    for load in (e for e, count in passes.items() if count > 1):
        own = int(load.dtype.size) * mapping.run
        if turns is not None and turns * own <= registers:
            registers -= turns * own
            found[load] = Kept(turns, True, True)
            continue
        room = shared // (own * mapping.threads)
        most = room if turns is None else min(turns, room)
        if most:
            shared -= most * own * mapping.threads
            found[load] = Kept(most, most == turns, False)
    return found


def _passes(kernel: Kernel, inner: tuple[Axis, ...]) -> list[list[Expr]]:
    """The values of each loop over all inner axes."""
    along = frozenset(inner)
    found = [
        [r.value for r in level if frozenset(r.over) == along] for level in reduction_levels(kernel)
    ]
    found.append([e for s in kernel.stores if along <= s.axes for e in s.roots])
    return found


def _combining(kernel: Kernel, mapping: Mapping, gpu: Gpu) -> int:
    """Bytes of shared memory through which threads combine what they have found."""
    rooms = mapping.rooms(gpu)
    kinds = {found_type(e): found_size(e) for e in kernel.exprs if isinstance(e, Reduce)}
    return sum(-(-size * rooms // gpu.load) * gpu.load for size in kinds.values())
