"""The bytes of numbers read as numbers of another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run


def _infer(x: TensorSpec, *, dtype: DType) -> TensorSpec:
    for each in (x.dtype, dtype):
        if not each.is_numeric:
            raise TypeError(f"dtype {each.name} is not supported")
    if x.dtype.size == dtype.size:
        return TensorSpec(x.dims, dtype)
    if x.dtype.size > dtype.size:
        return TensorSpec((*x.dims, x.dtype.size // dtype.size), dtype)
    count = dtype.size // x.dtype.size
    if not x.rank or (isinstance(x.dims[-1], int) and x.dims[-1] != count):
        raise errors.InvalidArgumentError(
            None, None, f"the last axis must have the {count} elements of one {dtype.name}"
        )
    return TensorSpec(x.dims[:-1], dtype)


def _eager(x: NDArray, *, dtype: DType) -> NDArray:
    if not dtype.is_numeric or x.dtype.kind in "bO":
        raise TypeError("not a number")  # the shape rule says which
    if x.dtype.itemsize >= dtype.size:
        more = () if x.dtype.itemsize == dtype.size else (x.dtype.itemsize // dtype.size,)
        flat: NDArray = np.frombuffer(x.tobytes(), dtype.np_dtype)
        return flat.reshape((*x.shape, *more)).copy()
    if not x.ndim or x.shape[-1] * x.dtype.itemsize != dtype.size:
        raise ValueError("the bytes are not those of one element")
    return np.frombuffer(x.tobytes(), dtype.np_dtype).reshape(x.shape[:-1]).copy()


BITCAST = register(
    Op(
        "bitcast", _infer, _eager, tags=frozenset({"gives_own_arrays"}),
        no_gradient="the bits of a number have no derivative",
        callback="no scalar function of kernels sees the bytes of a number",
    )
)  # fmt: skip


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bytes of numbers as numbers of another dtype; not differentiable.

    Args:
        input: numbers, no bools or strings.
        type: the dtype. A narrower one adds a last axis of as many numbers as make one; of a wider
            one the last axis must have as many, and goes.

    Raises:
        InvalidArgumentError: another dtype, or a last axis of another size.
    """
    return run(BITCAST, convert_to_tensor(input), dtype=dtypes.as_dtype(type))  # type: ignore[no-any-return]
