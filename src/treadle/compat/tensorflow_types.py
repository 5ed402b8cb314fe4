"""All types of TensorFlow's operations that are read."""

from treadle.compat import tensorflow_gradients, tensorflow_kernels, tensorflow_recurrence
from treadle.compat.tensorflow_ops import is_known, run_operation

__all__ = [
    "is_known",
    "run_operation",
    "tensorflow_gradients",
    "tensorflow_kernels",
    "tensorflow_recurrence",
]
