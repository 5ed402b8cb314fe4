"""Evenly spaced numbers, and the grids that they span: range, linspace, meshgrid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, SymbolicDim, broadcast, compound, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, apply, cast, const
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import (
    common_dtype,
    convert_to_tensor,
    has_dtype,
    is_symbolic,
    to_array,
)
from treadle.ops.dims import as_dim_value, dims_tensor, size_of
from treadle.ops.elementwise.casting import cast as cast_tensor
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import ceil
from treadle.ops.lowering import Compute, LowerCall, dim_expr, index_expr
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import number as scalar_number
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import expand_dims, reshape, reshape_to
from treadle.ops.shaping.slicing import slice_known


def _eager_range(*, start: Any, delta: Any, size: int, dtype: DType) -> NDArray:
    if size >> 60:  # np.arange would give none at all
        raise MemoryError(f"there is no memory for {size} numbers")
    own = dtype.np_dtype.type
    steps = np.arange(size, dtype=np.int64)
    if dtype.is_floating:
        numbers: NDArray = own(start) + steps.astype(dtype.np_dtype) * own(delta)
    else:
        numbers = start + steps * delta
    return numbers.astype(dtype.np_dtype)


def _number(value: Any, dtype: DType) -> Expr:
    return cast(dim_expr(value), dtype) if isinstance(value, SymbolicDim) else const(value, dtype)


def _element(start: Expr, delta: Expr, index: Index, dtype: DType) -> Expr:
    """Element `index` of a range: floats are rounded to `dtype` after each operation."""
    wide = _wide(dtype)
    if dtype.is_floating:
        steps = cast(cast(index_expr(index), dtype), wide)
        way = cast(cast(apply("mul", steps, cast(delta, wide)), dtype), wide)
    else:
        way = apply("mul", cast(index_expr(index), wide), cast(delta, wide))
    return cast(apply("add", cast(start, wide), way), dtype)


def _wide(dtype: DType) -> DType:
    """The dtype that a kernel computes the elements of a range in."""
    if not dtype.is_floating:
        return dtypes.int64
    return dtypes.float32 if dtype.size < dtypes.float32.size else dtype


def _lower_range(call: LowerCall, index: Sequence[Index]) -> Expr:
    wide = _wide(call.out.dtype)
    start, delta = (_number(call.attrs[name], wide) for name in ("start", "delta"))
    return _element(start, delta, index[0], call.out.dtype)


# Element i is start + i * delta; start and delta are numbers or dims. Floats are rounded to the
# range's dtype after each operation, as TensorFlow's.
RANGE = register(
    Op(
        "range",
        lambda *, start, delta, size, dtype: TensorSpec((size,), dtype),
        _eager_range,
        lower=Compute(_lower_range, "view"),
    )
)


def _eager_range_dynamic(start: NDArray, limit: NDArray, delta: NDArray, *, size: int) -> NDArray:
    dtype = dtypes.from_numpy(start.dtype)
    return _eager_range(start=start.item(), delta=delta.item(), size=size, dtype=dtype)


def _lower_range_dynamic(call: LowerCall, index: Sequence[Index]) -> Expr:
    start, delta = (call.inputs[k](()) for k in (0, 2))
    return _element(start, delta, index[0], call.out.dtype)


# The limit is what `size` was computed from: loops that count read it instead of the array.
RANGE_DYNAMIC = register(
    Op(
        "range_dynamic",
        lambda start, limit, delta, *, size: TensorSpec((size,), start.dtype),
        _eager_range_dynamic,
        lower=Compute(_lower_range_dynamic, "view"),
    )
)


_STEPS = "range: the number of steps from start to limit"


def _range_size(start: Any, limit: Any, delta: Any, dtype: DType) -> int:
    if all(isinstance(n, int) for n in (start, limit, delta)):
        return max(0, int(-((start - limit) // delta)))
    own = dtype.np_dtype.type
    with np.errstate(all="ignore"):
        steps = float((own(limit) - own(start)) / own(delta))
    if not math.isfinite(steps):
        raise errors.InvalidArgumentError(
            None, None, f"{_STEPS} must be finite, not {steps}{at(user_origin())}"
        )
    return max(0, int(math.ceil(steps)))


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = None
) -> Tensor:
    """The numbers start, start + delta, ... below limit; ``range(n)`` starts at 0.

    The dtype is the widest of the arguments' unless given.
    """
    if limit is None:
        start, limit = 0, start
    target = dtypes.as_dtype(dtype) if dtype is not None else _range_dtype(start, limit, delta)
    if target.is_complex or not target.is_numeric:
        text = f"range: values of {target.name} have no order{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    values = (start, limit, delta)
    if target.is_integer and any(isinstance(v, float) for v in values):
        text = f"range: a float is no number of dtype {target.name}{at(user_origin())}"
        raise TypeError(text)
    names = ("range: start", "range: limit", "range: delta")
    numbers = [_static_number(n, v, target) for n, v in zip(names, values, strict=True)]
    if any(n is None for n in numbers):
        return _range_of_tensors(values, target)
    first, last, step = numbers
    if step == 0:
        raise errors.InvalidArgumentError(None, None, f"range: delta is 0{at(user_origin())}")
    if any(isinstance(n, SymbolicDim) for n in numbers):
        return _symbolic_range(first, last, step, target)
    if (last - first) * step < 0:
        raise errors.InvalidArgumentError(
            None, None,
            f"range: {last} cannot be reached from {first} by steps of {step}{at(user_origin())}",
        )  # fmt: skip
    size = size_of(_range_size(first, last, step, target), _STEPS)
    return run(RANGE, start=first, delta=step, size=size, dtype=target)  # type: ignore[no-any-return]


def _symbolic_range(first: Any, last: Any, step: Any, dtype: DType) -> Tensor:
    span = last - first if step == 1 else -((first - last) // step)
    provably = first == 0 and step == 1 and _is_symbol(last)
    size = span if provably else compound("max", span, 0)
    return run(RANGE, start=first, delta=step, size=size, dtype=dtype)  # type: ignore[no-any-return]


def _is_symbol(dim: Any) -> bool:
    """A dim without negative terms is never below 0."""
    return isinstance(dim, SymbolicDim) and all(c > 0 for _, c in dim.terms)


def _range_dtype(*values: Any) -> DType:
    order = [
        dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
    ]  # fmt: skip
    found = [v.dtype if has_dtype(v) else convert_to_tensor_dtype(v) for v in values]
    return max(found, key=lambda d: order.index(d) if d in order else -1)


def convert_to_tensor_dtype(value: Any) -> DType:
    """The dtype that `value` would have as a tensor."""
    return dtypes.from_numpy(to_array(value).dtype)


def _static_number(what: str, value: Any, dtype: DType) -> Any:
    """A Python number or dim, or None where only a run can tell. Tensors are cast to `dtype`."""
    if isinstance(value, SymbolicDim):
        return value
    found = scalar_number(what, value)
    if is_symbolic(found):
        return as_dim_value(found) if found.dtype.is_integer else None
    if has_dtype(value):
        return cast_tensor(value, dtype).numpy().item()
    if dtype.is_floating and abs(found) > float(dtype.max):
        return math.copysign(math.inf, found)  # which a tensor of `dtype` holds
    return float(dtype.np_dtype.type(found)) if dtype.is_floating else found


def _range_of_tensors(values: Sequence[Any], dtype: DType) -> Tensor:
    numbers = [cast_tensor(v, dtype) for v in values]
    start, _, delta = values
    if dtype.is_integer and isinstance(delta, int) and delta == 1:
        from_zero = isinstance(start, int) and start == 0
        count = numbers[1] if from_zero else numbers[1] - numbers[0]
    else:
        count = _range_count(*numbers)
    size = size_of(count, _STEPS)
    return run(RANGE_DYNAMIC, *numbers, size=size)  # type: ignore[no-any-return]


def _range_count(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """How many numbers a range has; -1 where the steps lead away from the limit, are 0, or
    never end."""
    wide = start.dtype if start.dtype.is_floating else dtypes.int64
    span, step = cast_tensor(limit, wide) - cast_tensor(start, wide), cast_tensor(delta, wide)
    safe = where(step == 0, convert_to_tensor(1, wide), step)
    steps = ceil(span / safe) if wide.is_floating else -(-span // safe)
    leads = (step != 0) & ((span == 0) | ((span > 0) == (step > 0)))
    if wide.is_floating:
        leads = leads & (steps < math.inf)
    return where(leads, cast_tensor(steps, dtypes.int64), convert_to_tensor(-1, dtypes.int64))


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced numbers from start to stop, which broadcast, both included.

    Raises:
        InvalidArgumentError: the shapes of `start` and `stop` do not broadcast, or `num` is below
            0, or below 1 where only a run knows it.
    """
    first, last = common_dtype("linspace", start, stop)
    if first.dims != last.dims:
        try:
            both = broadcast(first.dims, last.dims)
        except errors.InvalidArgumentError as error:
            text = f"linspace: start and stop have shapes {first.shape} and {last.shape}"
            where_from = f"{text}{at(user_origin())}"
            raise errors.InvalidArgumentError(None, None, where_from) from error
        first, last = broadcast_dims(first, both), broadcast_dims(last, both)
    if not first.dtype.is_floating:
        first, last = cast_tensor(first, dtypes.float64), cast_tensor(last, dtypes.float64)
    count = size_of(num, "linspace: num", least=0 if isinstance(num, int) else 1)
    position = normalize_axis(axis, first.ndim + 1)
    low, high = expand_dims(first, position), expand_dims(last, position)
    if count == 1:
        return low
    if count == 0:
        return slice_known(
            low, [0] * low.ndim, (*low.dims[:position], 0, *low.dims[position + 1 :])
        )
    between = cast_tensor(dims_tensor(count - 1, dtypes.int64), first.dtype)
    shape: list[Dim] = [1] * (first.ndim + 1)
    shape[position] = count - 1
    whole = run(RANGE, start=0, delta=1, size=count - 1, dtype=dtypes.int64)
    steps = reshape(cast_tensor(whole, first.dtype), shape)
    end = high if isinstance(count, int) else where(between == 0, low, high)
    return concat([low + steps * ((high - low) / between), end], position)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """The coordinate arrays of the grid that vectors span; other tensors count as their
    elements."""
    if indexing not in ("xy", "ij"):
        raise ValueError(
            f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}{at(user_origin())}"
        )
    vectors = [reshape_to(v, (product(v.dims),)) for v in map(convert_to_tensor, args)]
    dims = tuple(v.dims[0] for v in vectors)
    grids = []
    for number, vector in enumerate(vectors):
        shape = tuple(d if i == number else 1 for i, d in enumerate(dims))
        grids.append(broadcast_dims(reshape_to(vector, shape), dims))
    if indexing == "xy" and len(grids) > 1:
        order = [k for k, _ in enumerate(grids)]
        order[:2] = 1, 0
        grids = [permute(g, order) for g in grids]
    return grids
