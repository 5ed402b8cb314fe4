"""Kernels as LLVM text: explicit vectors along one axis, plain loops along the others.

Every value is computed at the outermost place where all its axes have positions. The vector axis
is the innermost loop: four vectors at a time, then one, then a masked rest. The order in which a
reduction adds depends on extents only, never on the range that a call is given, so results do not
depend on how work is divided among threads.
"""

from __future__ import annotations

from treadle.runtime.cpu.nest.kernel import EmittedKernel, add_kernel, emit_kernel
from treadle.runtime.cpu.nest.shape import UnsupportedKernel

__all__ = ["EmittedKernel", "UnsupportedKernel", "add_kernel", "emit_kernel"]
