"""Complex numbers: parts, conjugate, argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.tensor import Tensor
from treadle.kernel.functions import FUNCTIONS
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.op_makers import binary_op, unary_op
from treadle.ops.op_makers import real as real_result
from treadle.ops.registry import run


def _complex_dtype(dtype: DType) -> DType:
    return dtype.complex_dtype


def _zeros(x: Tensor) -> Tensor:
    """Zeros in the shape and dtype of real numbers, infinities and NaN among them."""
    return cast(x != x, x.dtype) * 0


def _from_real(dy: Tensor) -> Tensor:
    return complex(dy, _zeros(dy))


# What kernels do with complex numbers; all else is done to their parts.
_PARTS = frozenset({"complex_parts"})
COMPLEX = binary_op(
    "complex", FUNCTIONS["complex"].reference, "f", "complex",
    lambda x, y, z, dz: (lambda: real(dz), lambda: imag(dz)), _complex_dtype, tags=_PARTS,
)  # fmt: skip
REAL = unary_op(
    "real", np.real, "c", "real", lambda x, y, dy: _from_real(dy), real_result, tags=_PARTS
)
IMAG = unary_op(
    "imag", np.imag, "c", "imag", lambda x, y, dy: complex(dy * 0, dy), real_result, tags=_PARTS
)
CONJ = unary_op(
    "conj", np.conj, "c", None, lambda x, y, dy: conj(dy), tags=frozenset({"involution", "cheap"})
)


def _grad_angle(x: Tensor, y: Tensor, dy: Tensor) -> Tensor | None:
    """The angle of a real number is 0 or pi, which has no slope."""
    if not x.dtype.is_complex:
        return None
    turned = complex(-imag(x), real(x))
    return cast(dy, x.dtype) * turned / cast(real(x * conj(x)), x.dtype)


ANGLE = unary_op("angle", np.angle, "fc", None, _grad_angle, real_result)


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """real + imag * 1j, from two float32 or float64 tensors."""
    return run(COMPLEX, *common_dtype("complex", real, imag))  # type: ignore[no-any-return]


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part; real tensors pass unchanged."""
    x = convert_to_tensor(input)
    return run(REAL, x) if x.dtype.is_complex else x


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part; 0 for real tensors."""
    x = convert_to_tensor(input)
    return run(IMAG, x) if x.dtype.is_complex else _zeros(x)


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; real tensors pass unchanged."""
    tensor = convert_to_tensor(x)
    return run(CONJ, tensor) if tensor.dtype.is_complex else tensor


def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of complex numbers; 0 or pi for real ones."""
    return run(ANGLE, convert_to_tensor(input))  # type: ignore[no-any-return]
