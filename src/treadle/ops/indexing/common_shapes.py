"""The shape that two shapes broadcast to."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape, broadcast
from treadle.core.tensor import Tensor
from treadle.ops.control.io import Assert
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.logic import logical_or
from treadle.ops.elementwise.selection import where
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.shaping.creation import ones
from treadle.ops.shaping.joining import concat


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The common shape of two TensorShapes; ValueError where there is none."""
    try:
        return TensorShape(broadcast(TensorShape(shape_x).exact, TensorShape(shape_y).exact))
    except ValueError:
        raise ValueError(
            f"shapes {shape_x} and {shape_y} do not broadcast{at(user_origin())}"
        ) from None


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The common shape of two shapes that are integer vectors of known length.

    Raises:
        InvalidArgumentError: there is none.
    """
    given = (convert_to_tensor(s, dtype_hint=dtypes.int32) for s in (shape_x, shape_y))
    x, y = common_dtype("broadcast_dynamic_shape", *given)
    lengths = [t.dims[0] if t.ndim == 1 else None for t in (x, y)]
    if not all(isinstance(n, int) for n in lengths):
        raise ValueError(
            f"broadcast_dynamic_shape: vectors of known length are expected, not of shapes "
            f"{x.shape} and {y.shape}{at(user_origin())}"
        )
    rank = max(n for n in lengths if isinstance(n, int))
    x, y = (concat([ones([rank - t.shape[0]], t.dtype), t], 0) for t in (x, y))
    one_each = logical_or(equal(x, 1), equal(y, 1))
    fit = logical_or(one_each, equal(x, y))
    Assert(reduce_all(fit), ["broadcast_dynamic_shape: these shapes do not broadcast:", x, y])
    return where(equal(x, 1), y, x)
