"""Conversions between dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import cast as cast_expr
from treadle.kernel.reference import cast_array
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.lowering import elementwise_rule
from treadle.ops.registry import Op, OpCall, register, run


def _eager_cast(x: NDArray, *, dtype: DType) -> NDArray:
    source = dtypes.from_numpy(x.dtype)
    if dtype is dtypes.string:
        raise TypeError("a number is no string")
    if source.is_complex and not (dtype.is_complex or dtype.is_bool):
        x, source = x.real, source.real_dtype
    if source.is_floating and dtype.is_integer:
        return _to_integer(x, dtype)
    return x.astype(dtype.np_dtype)


def _to_integer(x: NDArray, dtype: DType) -> NDArray:
    """Truncated towards zero and saturated; NaN gives 0."""
    if x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    if x.size:
        low, high = x.min(), x.max()
        if not (low > dtype.min and high < dtype.max):
            return cast_array(x, dtype)
    return x.astype(dtype.np_dtype)


def _grad_cast(call: OpCall, dy: Tensor) -> list[Any]:
    source = call.inputs[0].dtype
    return [cast(dy, source) if source.is_differentiable else None]


def _infer_cast(x: TensorSpec, *, dtype: DType) -> TensorSpec:
    if dtypes.string in (x.dtype, dtype):
        raise errors.UnimplementedError(
            None, None,
            f"{x.dtype.name} is not cast to {dtype.name}: td.strings.to_number and td.as_string "
            "convert them",
        )  # fmt: skip
    return TensorSpec(x.dims, dtype)


CAST = register(
    Op(
        "cast",
        _infer_cast,
        _eager_cast,
        _grad_cast,
        elementwise_rule(lambda call, x: cast_expr(x, call.attrs["dtype"])),
        tags=frozenset({"cheap", "takes_rows"}),
    )
)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`x` in another dtype; of `IndexedSlices` the rows.

    Floats become integers by truncation towards zero, saturating at the range's ends (NaN gives
    0); complex numbers become real by dropping the imaginary part; anything but 0 is True.
    """
    target = dtypes.as_dtype(dtype)
    if isinstance(x, IndexedSlices):
        return x.with_values(cast(x.values, target))  # type: ignore[return-value]
    tensor = convert_to_tensor(x) if has_dtype(x) else _literal(x, target)
    return tensor if tensor.dtype is target else run(CAST, tensor, dtype=target)


def _literal(value: Any, target: DType) -> Tensor:
    """A Python value goes to the target at once where it fits, without rounding in between."""
    try:
        return convert_to_tensor(value, target)
    except (TypeError, ValueError):
        return convert_to_tensor(value)
