"""What the allocator (`kept_memory.py`) and its machine code (`kept_memory_code.py`) agree on."""

from __future__ import annotations

SMALLEST, LARGEST = 16, 30  # sizes of blocks that wait, as powers of two
HUGE = 4 << 20  # bytes from which a block asks for huge pages, as NumPy's arrays do
PAGE, MADV_HUGEPAGE = 2 << 20, 14
HEADER = 64  # bytes before a block: its size's power of two or 0, the next in the list, its size

# The allocator's words; the first blocks of its lists follow, by powers of two.
WORDS = ("lock", "kept", "budget", "aligned_alloc", "free", "madvise", "reclaim", "used", "peak")
