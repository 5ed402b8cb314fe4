"""Routines of the library for GPUs."""

from treadle.runtime.gpu.routines.called import Form, device_form, has_form
from treadle.runtime.gpu.routines.kernel import prepare_together
from treadle.runtime.gpu.routines.library import routine_for
from treadle.runtime.gpu.routines.routine import Routine

__all__ = ["Form", "Routine", "device_form", "has_form", "prepare_together", "routine_for"]
