"""Which stores of a large kernel may go past the caches.

Such a store does not read the cache lines that it overwrites, and what it writes would be gone from
the caches before anybody read it.
"""

from __future__ import annotations

from treadle.kernel.ir import Kernel, Store
from treadle.runtime.cpu.nest.memory import split_index
from treadle.runtime.cpu.nest.shape import Shape, strides


def streamed_stores(kernel: Kernel, shape: Shape) -> list[Store]:
    """Stores of whole vectors to new memory, which begin at multiples of a vector wherever their
    buffer does."""
    if shape.scan is not None and (shape.tile is not None or shape.vector is shape.scan):
        return []  # such loops do not begin at whole vectors
    read = set(kernel.inputs)
    return [
        s
        for s in kernel.stores
        if s.buffer not in read and not s.computed and _is_aligned(s, shape)
    ]


def _is_aligned(store: Store, shape: Shape) -> bool:
    coefficients, offset, _ = split_index(store.buffer, store.index, strides(store.buffer))
    if shape.vector is None or store.buffer.dtype.size not in (4, 8):
        return False
    along = coefficients.pop(shape.vector, 0)
    steps = (offset, *coefficients.values())
    return along == 1 and all(isinstance(n, int) and n % shape.lanes == 0 for n in steps)
