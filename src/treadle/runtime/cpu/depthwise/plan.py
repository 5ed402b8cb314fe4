"""What the depthwise routines are told, and the workspace they need."""

from __future__ import annotations

from treadle.core.shapes import Dim, product
from treadle.runtime.cpu.convolution.plan import GEOMETRY, LINE, MOST_PARTS, TAP_BYTES, Geometry

TASK_FLOPS = 1 << 18  # not less for each thread

# `taps`: bytes of a thread's table of taps; `shared`: bytes in front of the tables; `parts`:
# threads that the work is worth, or partial filter gradients.
NUMBERS = (*GEOMETRY, "taps", "shared", "parts")


def depthwise_numbers(g: Geometry, of_filter: bool) -> tuple[tuple[Dim, ...], int, int]:
    """The routine's numbers, and the bytes of workspace of each thread and of all together."""
    taps = _lines(TAP_BYTES * g.rows.window * g.columns.window)
    if not of_filter:
        flops = 2 * product(g.y) * g.rows.window * g.columns.window
        return (*g.numbers, taps, 0, flops // TASK_FLOPS + 1), taps, 0
    window = g.rows.window * g.columns.window * g.filters[3]
    shared = _lines(window * g.size) * MOST_PARTS
    return (*g.numbers, taps, shared, MOST_PARTS), taps, shared


def _lines(size: int) -> int:
    return (size + LINE - 1) // LINE * LINE
