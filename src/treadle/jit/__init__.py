"""`td.jit`: functions written for NumPy, with NumPy's meaning, as compiled programs."""

from treadle.jit.function import Jitted, jit

__all__ = ["Jitted", "jit"]
