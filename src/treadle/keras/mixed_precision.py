"""``keras.mixed_precision``: policies for computations in 16 bits, by Keras 2's names too."""

from treadle.keras.dtype_policies import DTypePolicy, Policy, dtype_policy, set_dtype_policy
from treadle.keras.optimizers import LossScaleOptimizer
from treadle.names import missing_in

global_policy, set_global_policy = dtype_policy, set_dtype_policy

__all__ = [
    "DTypePolicy", "LossScaleOptimizer", "Policy", "dtype_policy", "global_policy",
    "set_dtype_policy", "set_global_policy",
]  # fmt: skip

__getattr__ = missing_in(__name__)
