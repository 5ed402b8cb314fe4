"""Which buffers of a large kernel are stored past the caches.

Such a store does not read the cache lines that it overwrites. The kernel is so large that the
elements would have left the caches before anybody read them.
"""

from __future__ import annotations

from treadle.kernel.ir import Buffer, Kernel, Store
from treadle.runtime.cpu.nest.memory import split_index
from treadle.runtime.cpu.nest.shape import Shape


def streamed_buffers(kernel: Kernel, shape: Shape) -> list[Buffer]:
    """The buffers of new memory into which all stores are of whole vectors, which begin at
    multiples of a vector wherever the buffer does."""
    if shape.scan is not None and (shape.tile is not None or shape.vector is shape.scan):
        return []  # such loops do not begin at whole vectors
    refused = {s.buffer for s in kernel.stores if s.computed or not _is_aligned(s, shape)}
    refused.update(kernel.inputs)
    return list(dict.fromkeys(s.buffer for s in kernel.stores if s.buffer not in refused))


def _is_aligned(store: Store, shape: Shape) -> bool:
    coefficients, offset, _ = split_index(store.buffer, store.index)
    if shape.vector is None or store.buffer.dtype.size not in (4, 8):
        return False
    along = coefficients.pop(shape.vector, 0)
    steps = (offset, *coefficients.values())
    return along == 1 and all(isinstance(n, int) and n % shape.lanes == 0 for n in steps)
