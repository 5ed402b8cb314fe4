"""``td.compat.v1.math``: functions of elements and reductions, with TensorFlow 1's arguments."""

from treadle.compat.v1.mirrored import fallback
from treadle.compat.v1.nn import in_top_k as in_top_k

__all__ = ["in_top_k"]
__getattr__ = fallback(__name__, "treadle.math")
