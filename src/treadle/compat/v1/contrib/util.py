"""``td.compat.v1.contrib.util``: values of constants."""

from treadle.compat.v1.functions import get_static_value as constant_value
from treadle.names import missing_in

__all__ = ["constant_value"]

__getattr__ = missing_in(__name__)
