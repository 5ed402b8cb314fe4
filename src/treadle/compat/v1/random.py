"""``td.compat.v1.random``: random numbers, with TensorFlow 1's names."""

from treadle.compat.v1.functions import multinomial as multinomial
from treadle.compat.v1.functions import random_gamma as gamma
from treadle.compat.v1.functions import random_normal as normal
from treadle.compat.v1.functions import random_poisson as poisson
from treadle.compat.v1.functions import random_shuffle as shuffle
from treadle.compat.v1.functions import random_uniform as uniform
from treadle.compat.v1.functions import set_random_seed as set_random_seed
from treadle.compat.v1.functions import truncated_normal as truncated_normal
from treadle.compat.v1.mirrored import fallback

__all__ = ["gamma", "normal", "poisson", "shuffle", "uniform"]
__getattr__ = fallback(__name__, "treadle.random")
