"""Constants as operands: kernels that differ in nothing else become one.

A program of many kernels spends its compile time on code that differs in numbers only (a series
unrolled by Python, thousands of outputs). There, flat kernels take their floating constants as
rank-0 operands: kernels become equal, and their neighbouring launches are merged into one. The
arithmetic stays the same, operation by operation.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.kernel.ir import Buffer, Const, Kernel, Load
from treadle.kernel.rewrite import Rewrite
from treadle.runtime.fusion.group import MAX_BUFFERS

MANY = 16  # sets of constants in a program's kernels: more would take long to compile anywhere


class Lifting:
    """Decides for the kernels of one program: the first sets of constants stay in the code, and
    do so wherever they come again; those beyond `MANY` become operands."""

    def __init__(self) -> None:
        self.inside: set[tuple[Const, ...]] = set()

    def __call__(self, kernel: Kernel) -> tuple[Kernel, list[Const]]:
        """A flat kernel, and the constants that are its last operands."""
        found = tuple(_constants(kernel))
        if not found or found in self.inside:
            return kernel, []
        if len(self.inside) < MANY:
            self.inside.add(found)
            return kernel, []
        return lift_constants(kernel)


def lift_constants(kernel: Kernel) -> tuple[Kernel, list[Const]]:
    """A flat kernel with a rank-0 buffer after its others for every floating constant.

    Returns:
        The kernel and the constants, in the order of their buffers; the kernel as it is and no
        constants where it has none, or too many.
    """
    found = _constants(kernel)
    if not found or len(found) + len(kernel.buffers) > MAX_BUFFERS:
        return kernel, []
    buffers = tuple(Buffer(f"c{i}", c.dtype, ()) for i, c in enumerate(found))
    rewrite = Rewrite(lambda buffer, index: (buffer, index))
    rewrite.memo |= {c: Load(b, ()) for c, b in zip(found, buffers, strict=True)}
    stores = tuple(map(rewrite.store, kernel.stores))
    return replace(kernel, buffers=(*kernel.buffers, *buffers), stores=stores), found


def _constants(kernel: Kernel) -> list[Const]:
    exprs = kernel.exprs
    return [e for e in exprs if isinstance(e, Const) and e.dtype.is_floating]
