"""Helpers for tests: gradients checked by finite differences."""

from treadle.autodiff.checking import (
    GradientError,
    check_gradients,
    compute_gradient,
)

__all__ = [
    "GradientError",
    "check_gradients",
    "compute_gradient",
]
