"""``td.compat.v1.math``: functions of elements and reductions, with TensorFlow 1's arguments."""

from treadle.compat.v1.functions import argmax as argmax
from treadle.compat.v1.functions import argmin as argmin
from treadle.compat.v1.functions import count_nonzero as count_nonzero
from treadle.compat.v1.functions import reduce_all as reduce_all
from treadle.compat.v1.functions import reduce_any as reduce_any
from treadle.compat.v1.functions import reduce_logsumexp as reduce_logsumexp
from treadle.compat.v1.functions import reduce_max as reduce_max
from treadle.compat.v1.functions import reduce_mean as reduce_mean
from treadle.compat.v1.functions import reduce_min as reduce_min
from treadle.compat.v1.functions import reduce_prod as reduce_prod
from treadle.compat.v1.functions import reduce_sum as reduce_sum
from treadle.compat.v1.mirrored import fallback
from treadle.compat.v1.nn import in_top_k as in_top_k

__all__ = [
    "argmax", "argmin", "count_nonzero", "in_top_k", "reduce_all", "reduce_any", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
]  # fmt: skip
__getattr__ = fallback(__name__, "treadle.math")
