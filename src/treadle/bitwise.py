"""``td.bitwise``: operations on the bits of integers."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.ops.elementwise.logic import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
