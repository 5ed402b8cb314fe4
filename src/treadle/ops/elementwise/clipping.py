"""`cast` to what a dtype holds: saturate_cast."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import complex, imag, real
from treadle.ops.elementwise.unary import clip_by_value


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`cast` that clamps values outside the target's range, infinities among them, to its ends.

    Real and imaginary parts are clamped each by itself.
    """
    tensor, target = convert_to_tensor(value), dtypes.as_dtype(dtype)
    if tensor.dtype.is_complex and target.is_complex:
        if tensor.dtype.size > target.size:
            limits = target.real_dtype
            tensor = complex(_clamped(real(tensor), limits), _clamped(imag(tensor), limits))
        return cast(tensor, target)
    tensor = real(tensor) if tensor.dtype.is_complex else tensor
    return cast(_clamped(tensor, target.real_dtype), target)


def _clamped(x: Tensor, target: dtypes.DType) -> Tensor:
    """The numbers within the range of a dtype, which is no wider than that of their own."""
    source = x.dtype
    if source.is_floating and target.is_integer:
        return x  # `cast` clamps them
    if source is dtypes.bool or target is dtypes.bool:
        return x
    if source.is_integer:
        return clip_by_value(x, max(source.min, int(target.min)), min(source.max, int(target.max)))
    limit = _inside(min(float(source.max), float(target.max)), source)
    return clip_by_value(x, -limit, limit)


def _inside(limit: float, source: dtypes.DType) -> float:
    """The greatest number of a dtype of floats that does not exceed the limit."""
    with np.errstate(over="ignore"):
        found = np.asarray(limit).astype(source.as_numpy_dtype)
    return float(np.nextafter(found, found.dtype.type(0)) if float(found) > limit else found)
