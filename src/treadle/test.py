"""Helpers for tests: gradients checked by finite differences."""

from treadle.autodiff.checking import (
    GradientError,
    check_gradients,
    compute_gradient,
)
from treadle.names import missing_in

__all__ = [
    "GradientError",
    "check_gradients",
    "compute_gradient",
]

__getattr__ = missing_in(__name__)
