"""What kernels for a GPU are fitted to: one record for one kind of device."""

from __future__ import annotations

from treadle.core.records import record


@record(frozen=True)
class Gpu:
    """A GPU as code is fitted to it.

    Attributes:
        name: as the driver gives it.
        architecture: what code is compiled for, such as "sm_90".
        warp: threads that run in step.
        block: threads of a block, for kernels whose threads do not meet.
        most_block: threads that a block may have.
        multiprocessors: how many blocks have a processor of their own.
        resident: threads that a multiprocessor runs at the same time.
        most_blocks: that it runs at the same time.
        all_shared: bytes of memory that these may share together.
        elements: that a thread should have before another block takes some of them, whose launch
            and memory cost time, too.
        sums: of 4 bytes that a thread keeps in registers.
        shared: bytes of memory that the threads of a block may share.
        bank: bytes that a bank of this memory gives at once.
        kept: bytes of a row that a thread keeps in registers.
        load: bytes that one thread moves at once.
        sector: bytes that move between the device and its memory as a whole.
        parameters: bytes that the parameters of a launch may take.
        cache: bytes of the cache that all multiprocessors share.
        bandwidth: bytes that move between the device and its memory in a second.
        convolves: whether a library of the device may have convolutions.
        decides: whether recorded work may have loops and branches that the device decides about.
    """

    name: str
    architecture: str
    warp: int = 32
    block: int = 256
    most_block: int = 1024
    multiprocessors: int = 132
    resident: int = 2048
    most_blocks: int = 32
    all_shared: int = 228 << 10
    elements: int = 16
    sums: int = 64
    shared: int = 48 << 10
    bank: int = 4
    kept: int = 128
    load: int = 16
    sector: int = 32
    parameters: int = 4096
    cache: int = 50 << 20
    bandwidth: float = 4.8e12
    convolves: bool = False
    decides: bool = True

    def occupancy(self, threads: int, shared: int) -> int:
        """Threads that a multiprocessor runs at the same time, in blocks of so many threads that
        share so many bytes each; fewer where a thread needs many registers."""
        blocks = min(self.resident // threads, self.most_blocks)
        return threads * (min(blocks, self.all_shared // shared) if shared else blocks)
