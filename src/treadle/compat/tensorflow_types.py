"""All types of TensorFlow's operations that are read."""

from treadle.compat import (
    tensorflow_gradients,
    tensorflow_kernels,
    tensorflow_lists,
    tensorflow_recurrence,
    tensorflow_sparse,
)
from treadle.compat.tensorflow_ops import is_known, run_operation

__all__ = [
    "is_known",
    "run_operation",
    "tensorflow_gradients",
    "tensorflow_kernels",
    "tensorflow_lists",
    "tensorflow_recurrence",
    "tensorflow_sparse",
]
