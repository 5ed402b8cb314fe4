"""Small data sets shipped inside the package."""

from . import digits

__all__ = ["digits"]
