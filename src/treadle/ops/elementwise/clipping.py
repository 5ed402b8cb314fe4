"""`cast` to what a dtype holds: saturate_cast."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import clip_by_value


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`cast` that clamps values outside the target's range to its ends."""
    tensor, target = convert_to_tensor(value), dtypes.as_dtype(dtype)
    source = tensor.dtype
    if target.is_integer and source.is_integer:
        low, high = max(source.min, target.min), min(source.max, target.max)
        return cast(clip_by_value(tensor, int(low), int(high)), target)
    if target.is_floating and source.is_floating and target.size < source.size:
        return cast(clip_by_value(tensor, float(target.min), float(target.max)), target)
    return cast(tensor, target)
