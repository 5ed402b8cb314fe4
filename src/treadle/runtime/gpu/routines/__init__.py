"""Routines of the library for GPUs."""

from treadle.runtime.gpu.routines.library import routine_for
from treadle.runtime.gpu.routines.routine import Routine

__all__ = ["Routine", "routine_for"]
