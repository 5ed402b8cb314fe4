"""Kernels as LLVM text: explicit vectors along one axis, plain loops along the others.

Every value is computed at the outermost place where all its axes have positions. The vector axis
is the innermost loop: four vectors at a time, then one, then a masked rest. The order in which a
reduction adds depends on extents only, never on the range that a call is given, so results do not
depend on how work is divided among threads.
"""

from __future__ import annotations

import hashlib

from treadle.kernel.ir import Kernel
from treadle.runtime.cpu.nest.blocks import BlockEmitter
from treadle.runtime.cpu.nest.kernel import EmittedKernel, KernelEmitter
from treadle.runtime.cpu.nest.picks import without_picks
from treadle.runtime.cpu.nest.shape import UnsupportedKernel
from treadle.runtime.cpu.target import Target


def emit_kernel(kernel: Kernel, target: Target) -> EmittedKernel:
    """The code of a kernel.

    Raises:
        UnsupportedKernel: there is no code for it.
    """
    symbol = "k_" + hashlib.sha256(repr(kernel).encode()).hexdigest()[:16]
    emitter = BlockEmitter if kernel.blocked else KernelEmitter
    return emitter(without_picks(kernel), target, symbol).emit()


__all__ = ["EmittedKernel", "UnsupportedKernel", "emit_kernel"]
