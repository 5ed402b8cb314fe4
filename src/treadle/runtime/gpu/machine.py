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
        elements: that a thread should have before another block takes some of them, whose launch
            and memory cost time, too.
        shared: bytes of memory that the threads of a block may share.
        load: bytes that one thread moves at once.
    """

    name: str
    architecture: str
    warp: int = 32
    block: int = 256
    most_block: int = 1024
    multiprocessors: int = 132
    resident: int = 2048
    elements: int = 16
    shared: int = 48 << 10
    load: int = 16
