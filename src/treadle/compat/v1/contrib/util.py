"""``td.compat.v1.contrib.util``: values of constants."""

from treadle.compat.v1.functions import get_static_value as constant_value

__all__ = ["constant_value"]
