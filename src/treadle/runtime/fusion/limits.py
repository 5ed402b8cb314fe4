"""How far fusion goes on a machine, by the sizes of caches and the cost of memory accesses."""

from __future__ import annotations

from treadle.core.records import record
from treadle.runtime.tuning import Tuning


@record(frozen=True)
class Limits:
    """Sizes at which fusion decides otherwise.

    Attributes:
        small_row: elements that a whole-array reduction may have to be followed by its consumers:
            they take a third of the first cache.
        many_columns: columns that are enough for every thread to get some blocks of 16 vectors;
            where there are fewer, threads divide the rows instead.
        shared_weight: operations an element that take less time than reading it again.
        shared_buffers: arrays that one pass reads whose lines may all share a set of the first
            cache, with two of the pass's own.
        large: bytes of an array that is not in the first cache any more for its next reader.
        small_step: bytes of an array that is.
        streamed: bytes that no cache holds.
        columns: whether going down columns costs no more than going along rows.
    """

    small_row: int
    many_columns: int
    shared_weight: int
    shared_buffers: int
    large: int
    small_step: int
    streamed: int
    columns: bool

    @staticmethod
    def of(tuning: Tuning, columns: bool = False) -> Limits:
        """The limits for a machine."""
        element = 4  # bytes of the usual numbers
        moved = tuning.moving * element  # cycles times bytes of a line
        return Limits(
            small_row=tuning.l1.size // (3 * element),
            many_columns=16 * tuning.lanes,
            shared_weight=moved * tuning.fma * tuning.lanes // tuning.line,
            shared_buffers=max(2, tuning.l1.ways - 2),
            large=tuning.l1.size * 4 // 3,
            small_step=tuning.l1.size * 2 // 3,
            streamed=tuning.l3.size,
            columns=columns,
        )
