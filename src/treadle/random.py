"""``td.random``: random numbers from counter-based streams (Philox 4x32-10)."""

from treadle.names import missing_in
from treadle.ops.random.distributions import (
    categorical,
    normal,
    set_seed,
    shuffle,
    split,
    stateless_categorical,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
    truncated_normal,
    uniform,
)
from treadle.ops.random.generator import (
    Generator,
    get_global_generator,
    set_global_generator,
)

__all__ = [
    "Generator",
    "categorical",
    "get_global_generator",
    "normal",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_categorical",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]

__getattr__ = missing_in(__name__)
