"""`td.jit`: functions written for NumPy, with NumPy's meaning, as compiled programs."""

from treadle.jitted.function import Jitted, jit
from treadle.jitted.gradients import grad, value_and_grad

__all__ = ["Jitted", "grad", "jit", "value_and_grad"]
