"""The numbers that depthwise routines are given, and the workspace that they need."""

from __future__ import annotations

from treadle.core.shapes import Dim, product
from treadle.runtime.cpu.convolution.tiling import GEOMETRY, LINE, MOST_PARTS, TAP_BYTES, Geometry
from treadle.runtime.tuning import Tuning

# `taps`: bytes of a thread's table of taps; `space`: of its workspace, where sums follow the table;
# `shared`: bytes in front of it; `parts`: threads that the work is worth, or partial filter
# gradients.
NUMBERS = (*GEOMETRY, "taps", "space", "shared", "parts")


def depthwise_numbers(
    g: Geometry, op: str, tuning: Tuning
) -> tuple[tuple[Dim, ...], int, int]:
    """The routine's numbers, and the bytes of workspace of each thread and of all together."""
    taps = _lines(TAP_BYTES * g.rows.window * g.columns.window)
    if op != "conv2d_backprop_filter":
        flops = 2 * product(g.y) * g.rows.window * g.columns.window
        sums = op == "conv2d_backprop_input" and g.outputs > 1
        space = taps + (_lines(tuning.chains * g.filters[3] * g.size) if sums else 0)
        return (*g.numbers, taps, space, 0, flops // tuning.task_flops + 1), space, 0
    window = g.rows.window * g.columns.window * g.filters[3]
    shared = _lines(window * g.size) * MOST_PARTS
    return (*g.numbers, taps, taps, shared, MOST_PARTS), taps, shared


def _lines(size: int) -> int:
    return (size + LINE - 1) // LINE * LINE
