"""Tensors made from shapes and numbers: zeros, fill, eye, one_hot."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.arrays import empty
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor, placed_array
from treadle.kernel.ir import Expr, Index, apply, cast, const
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.dims import in_integers, partial_dims, size_of, sizes_of
from treadle.ops.elementwise.selection import where
from treadle.ops.lowering import Compute, LowerCall, index_expr
from treadle.ops.op_makers import guard, inferred
from treadle.ops.registry import Op, OpCall, register, run

# -- fill ----------------------------------------------------------------------------------------


def _infer_fill(value: TensorSpec, *, shape: tuple[Dim, ...]) -> TensorSpec:
    if value.rank:
        raise errors.InvalidArgumentError(None, None, f"the value has shape {value.shape}, not ()")
    return TensorSpec(shape, value.dtype)


def _eager_fill(value: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    if value.ndim:
        raise errors.InvalidArgumentError(None, None, "the value is not a scalar")
    return _full(shape, value, value.dtype)


def _full(shape: Sequence[Any], value: Any, dtype: np.dtype[Any]) -> NDArray:
    """``np.full(shape, value, dtype)``. A variable of that value, as an optimizer's moments, is
    not copied for the first program that writes it."""
    result: NDArray = np.empty(shape, dtype) if dtype.hasobject else empty(tuple(shape), dtype)
    result[...] = value
    return result


FILL = register(
    Op(
        "fill",
        _infer_fill,
        _eager_fill,
        lambda call, dy: [unbroadcast(dy, call.inputs[0])],
        Compute(lambda call, index: call.inputs[0](()), "view"),
        tags=frozenset({"any_elements", "cheap"}),
    )
)


def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor of the given shape with `value` everywhere; `layout` is ignored, as there is one
    device."""
    return run(FILL, convert_to_tensor(value), shape=sizes_of(dims, "fill: a dim"))  # type: ignore[no-any-return]


def _filled(shape: Any, number: int, dtype: DType) -> Tensor:
    if dtype is dtypes.string:
        return fill(shape, convert_to_tensor(b"" if number == 0 else number, dtype))
    if context.recorder is None:
        dims = partial_dims(shape)
        with contextlib.suppress(MemoryError, ValueError):  # `fill` explains it
            return placed_array(_full(dims, number, dtype.np_dtype))
    return fill(shape, convert_to_tensor(np.asarray(number, dtype.np_dtype)))


def zeros(
    shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None
) -> Tensor:
    """A tensor of zeros (False for bool, empty strings); `layout` is ignored."""
    return _filled(shape, 0, dtypes.as_dtype(dtype))


def ones(
    shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None
) -> Tensor:
    """A tensor of ones (True for bool); `layout` is ignored."""
    return _filled(shape, 1, dtypes.as_dtype(dtype))


def zeros_like(
    input: Any, dtype: Any = None, name: str | None = None, layout: Any = None
) -> Tensor:
    """Zeros in the shape of `input`, in its dtype unless another is given; `layout` is ignored."""
    x = convert_to_tensor(input)
    return _filled(x.spec.shape, 0, x.dtype if dtype is None else dtypes.as_dtype(dtype))


def ones_like(
    input: Any, dtype: Any = None, name: str | None = None, layout: Any = None
) -> Tensor:
    """Ones in the shape of `input`, in its dtype unless another is given; `layout` is ignored."""
    x = convert_to_tensor(input)
    return _filled(x.spec.shape, 1, x.dtype if dtype is None else dtypes.as_dtype(dtype))


# -- eye, one_hot --------------------------------------------------------------------------------


def _lower_eye(call: LowerCall, index: Sequence[Index]) -> Expr:
    dtype = call.out.dtype
    here = apply("eq", index_expr(index[-2]), index_expr(index[-1]))
    return apply("select", here, const(1, dtype), const(0, dtype))


def _infer_eye(*, shape: tuple[Dim, ...], dtype: DType) -> TensorSpec:
    if dtype is dtypes.string:
        raise TypeError("there is no identity matrix of strings")
    return TensorSpec(shape, dtype)


def _eager_eye(*, shape: tuple[int, ...], dtype: DType) -> NDArray:
    if min(shape) < 0:
        raise errors.InvalidArgumentError(None, None, f"the shape {shape} has a negative dim")
    matrix = np.eye(shape[-2], shape[-1], dtype=np.bool_).astype(dtype.np_dtype)
    return np.broadcast_to(matrix, shape)


EYE = register(
    Op(
        "eye",
        _infer_eye,
        inferred(_infer_eye, _eager_eye),
        lower=Compute(_lower_eye, "view"),
    )
)


def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The identity matrix, or a batch of them.

    Raises:
        TypeError: strings are asked for.
    """
    batch = () if batch_shape is None else sizes_of(batch_shape, "eye: batch_shape")
    num_rows, num_columns = in_integers([num_rows, num_columns])
    rows = size_of(num_rows, "eye: num_rows")
    columns = rows if num_columns is None else size_of(num_columns, "eye: num_columns")
    return run(EYE, shape=(*batch, rows, columns), dtype=dtypes.as_dtype(dtype))  # type: ignore[no-any-return]


def _check_scalars(*ranks: int) -> None:
    """The rank of `on_value` and that of `off_value` are 0, as TensorFlow wants it."""
    for name, rank in zip(("on_value", "off_value"), ranks, strict=True):
        if rank:
            text = f"{name} must be a scalar, not of rank {rank}"
            raise errors.InvalidArgumentError(None, None, text)


def _eager_one_hot(
    indices: NDArray, on: NDArray, off: NDArray, *, depth: int, axis: int
) -> NDArray:
    _check_scalars(on.ndim, off.ndim)
    if depth < 0:
        raise errors.InvalidArgumentError(None, None, f"depth {depth} is negative")
    if depth >> 60:
        raise MemoryError(f"there is no memory for a depth of {depth}")
    hit = np.expand_dims(indices, axis) == np.arange(depth).reshape(
        [depth if i == axis else 1 for i in np.arange(indices.ndim + 1)]
    )
    return np.where(hit, on, off)


def _infer_one_hot(
    indices: TensorSpec, on: TensorSpec, off: TensorSpec, *, depth: Dim, axis: int
) -> TensorSpec:
    if not indices.dtype.is_integer:
        raise TypeError(f"the indices must be integers, not {indices.dtype.name}")
    _check_scalars(on.rank, off.rank)
    if on.dtype is not off.dtype:
        raise TypeError(f"on_value is {on.dtype.name} and off_value {off.dtype.name}")
    return TensorSpec((*indices.dims[:axis], depth, *indices.dims[axis:]), on.dtype)


def _lower_one_hot(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    label = call.inputs[0]([*index[:axis], *index[axis + 1 :]])
    hit = apply("eq", cast(label, dtypes.int64), index_expr(index[axis]))
    return apply("select", hit, call.inputs[1](()), call.inputs[2](()))


def _grad_one_hot(call: OpCall, dy: Tensor) -> list[Any]:
    indices, on, off = call.inputs
    one, zero = convert_to_tensor(1, on.dtype), convert_to_tensor(0, on.dtype)
    attrs = call.attrs
    hit = run(ONE_HOT, indices, one, zero, depth=attrs["depth"], axis=attrs["axis"]) == one
    return [None, unbroadcast(where(hit, dy, zero), on), unbroadcast(where(hit, zero, dy), off)]


ONE_HOT = register(
    Op(
        "one_hot",
        _infer_one_hot,
        guard("iu", _eager_one_hot),
        _grad_one_hot,
        Compute(_lower_one_hot, "gather"),
        tags=frozenset({"any_elements"}),
    )
)


def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: int | None = None,
    dtype: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`on_value` at the position that each index names along a new axis, `off_value` elsewhere.

    An index outside [0, depth) gives `off_value` only. The new axis comes last unless given.
    The dtype is that of the values, float32 where none is given.

    Raises:
        InvalidArgumentError: `on_value` or `off_value` is no scalar, or `depth` is negative.
        TypeError: the indices are no integers, or the values have different dtypes.
    """
    x = convert_to_tensor(indices, dtype_hint=dtypes.int32)
    values = [v for v in (on_value, off_value) if v is not None]
    target = dtypes.as_dtype(dtype) if dtype is not None else _common_dtype(values)
    on = convert_to_tensor(1 if on_value is None else on_value, target)
    off = convert_to_tensor(0 if off_value is None else off_value, target)
    position = x.ndim if axis is None else normalize_axis(axis, x.ndim + 1)
    size = size_of(depth, "one_hot: depth")
    return run(ONE_HOT, x, on, off, depth=size, axis=position)  # type: ignore[no-any-return]


def _common_dtype(values: Sequence[Any]) -> DType:
    """That of the first value that has one, else what the first becomes; float32 without any."""
    typed = next((v for v in values if has_dtype(v)), None)
    if typed is not None:
        return typed.dtype  # type: ignore[no-any-return]
    return convert_to_tensor(values[0]).dtype if values else dtypes.float32
