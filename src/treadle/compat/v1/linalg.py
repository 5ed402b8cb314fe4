"""``td.compat.v1.linalg``: functions of matrices, with TensorFlow 1's arguments."""

from treadle.compat.v1.functions import norm as norm
from treadle.compat.v1.mirrored import fallback

__all__ = ["norm"]
__getattr__ = fallback(__name__, "treadle.linalg")
