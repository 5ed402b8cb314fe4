"""Logical operations on bools and bitwise operations on integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.tensor import Tensor
from treadle.kernel.functions import FUNCTIONS
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.op_makers import binary, binary_op, unary, unary_op

_JOINS = frozenset({"cheap", "idempotent"})
LOGICAL_AND = binary_op("logical_and", np.logical_and, "b", "and", tags=_JOINS)
LOGICAL_OR = binary_op("logical_or", np.logical_or, "b", "or", tags=_JOINS)
LOGICAL_XOR = binary_op("logical_xor", np.logical_xor, "b", "xor")
LOGICAL_NOT = unary_op(
    "logical_not", np.logical_not, "b", "not", tags=frozenset({"cheap", "involution"})
)
BITWISE_AND = binary_op("bitwise_and", np.bitwise_and, "iu", "and")
BITWISE_OR = binary_op("bitwise_or", np.bitwise_or, "iu", "or")
BITWISE_XOR = binary_op("bitwise_xor", np.bitwise_xor, "iu", "xor")
INVERT = unary_op("invert", np.invert, "iu", "not")
LEFT_SHIFT = binary_op("left_shift", FUNCTIONS["shl"].reference, "iu", "shl")
RIGHT_SHIFT = binary_op("right_shift", FUNCTIONS["shr"].reference, "iu", "shr")

logical_and = binary(LOGICAL_AND, "x and y, element by element, on bools.")
logical_or = binary(LOGICAL_OR, "x or y, element by element, on bools.")
logical_xor = binary(LOGICAL_XOR, "True where exactly one of x and y is, on bools.")
logical_not = unary(LOGICAL_NOT, "not x, element by element, on bools.")
bitwise_and = binary(BITWISE_AND, "The bits set in both integers.")
bitwise_or = binary(BITWISE_OR, "The bits set in either integer.")
bitwise_xor = binary(BITWISE_XOR, "The bits set in exactly one of the integers.")
invert = unary(INVERT, "Every bit of the integer flipped.")
left_shift = binary(LEFT_SHIFT, "x shifted left by y bits; amounts are clamped to the width.")
right_shift = binary(
    RIGHT_SHIFT, "x shifted right by y bits, keeping the sign; amounts are clamped to the width."
)


def and_(x: Any, y: Any) -> Tensor:
    """The ``&`` operator: logical on bools, bitwise on integers."""
    return (logical_and if _on_bools(x, y) else bitwise_and)(x, y)


def or_(x: Any, y: Any) -> Tensor:
    """The ``|`` operator: logical on bools, bitwise on integers."""
    return (logical_or if _on_bools(x, y) else bitwise_or)(x, y)


def xor_(x: Any, y: Any) -> Tensor:
    """The ``^`` operator: logical on bools, bitwise on integers."""
    return (logical_xor if _on_bools(x, y) else bitwise_xor)(x, y)


def not_(x: Any) -> Tensor:
    """The ``~`` operator: logical on bools, bitwise on integers."""
    tensor = convert_to_tensor(x)
    return (logical_not if tensor.dtype.is_bool else invert)(tensor)


def _on_bools(x: Any, y: Any) -> bool:
    typed = x if hasattr(x, "dtype") and hasattr(x.dtype, "is_bool") else y
    return bool(typed.dtype.is_bool)
