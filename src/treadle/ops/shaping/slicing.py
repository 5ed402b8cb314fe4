"""Slices with known bounds, and their gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, apply, const
from treadle.ops.lowering import (
    Compute,
    LowerCall,
    add_index,
    dim_expr,
    index_expr,
    scale_index,
)  # fmt: skip
from treadle.ops.properties import Dims, Part, PartKind, PartUse
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.sizes import Pairs, slice_sizes


def python_slices(begin: Sequence[int], size: Sequence[int], strides: Sequence[int]) -> Any:
    slices = []
    for start, count, step in zip(begin, size, strides, strict=True):
        stop = start + count * step
        slices.append(slice(start, stop if stop >= 0 else None, step) if count else slice(0, 0))
    return tuple(slices)


def _eager_slice(
    x: NDArray, *, begin: tuple[int, ...], size: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray:
    for start, count, step, dim in zip(begin, size, strides, x.shape, strict=True):
        last = start + (count - 1) * step
        if count < 0 or (count and not (0 <= start < dim and 0 <= last < dim)):
            raise errors.InvalidArgumentError(
                None, None, f"a slice from {start} of size {count} is out of bounds for {x.shape}"
            )
    return x[python_slices(begin, size, strides)]  # type: ignore[no-any-return]


def _lower_slice(call: LowerCall, index: Sequence[Index]) -> Expr:
    begin, strides = call.attrs["begin"], call.attrs["strides"]
    return call.inputs[0](
        [add_index(scale_index(i, s), b) for i, b, s in zip(index, begin, strides, strict=True)]
    )


def _grad_slice(call: OpCall, dy: Tensor) -> list[Any]:
    begin, strides = call.attrs["begin"], call.attrs["strides"]
    return [run(SLICE_GRAD, dy, shape=call.inputs[0].dims, begin=begin, strides=strides)]


def _sliced(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    parts = zip(attrs["begin"], outs[0].dims, attrs["strides"], specs[0].dims, strict=True)
    for part in parts:
        yield from slice_sizes(*part)


def _infer_slice(
    x: TensorSpec, *, begin: Sequence[Dim], size: Sequence[Dim], strides: Sequence[int]
) -> TensorSpec:
    for start, count, step, dim in zip(begin, size, strides, x.dims, strict=True):
        if any(isinstance(a, int) and isinstance(b, int) and a != b
               for a, b in slice_sizes(start, count, step, dim)):  # fmt: skip
            raise errors.InvalidArgumentError(
                None, None, f"a slice from {start} of size {count} is out of bounds for {x.shape}"
            )
    return TensorSpec(size, x.dtype)


# Element i of the result is element begin + i * stride of the input, along every axis.
def _whole(dims: Dims, attrs: Mapping[str, Any]) -> Dims | None:
    """The slice that leaves nothing out."""
    whole = all(b == 0 for b in attrs["begin"]) and all(s == 1 for s in attrs["strides"])
    return dims if whole and tuple(attrs["size"]) == dims else None


STRIDED_SLICE = register(
    Op(
        "strided_slice",
        _infer_slice,
        _eager_slice,
        _grad_slice,
        Compute(_lower_slice, "view"),
        sizes=_sliced,
        tags=frozenset({"any_elements", "moves", "numpy_view"}),
        part=Part(PartKind.SLICE, PartUse.READ),
        same_elements=_whole,
    )
)


def _eager_slice_grad(
    dy: NDArray, *, shape: tuple[int, ...], begin: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray:
    result = np.zeros(shape, dy.dtype)
    result[python_slices(begin, dy.shape, strides)] = dy
    return result


def lower_slice_grad(call: LowerCall, index: Sequence[Index]) -> Expr:
    source: list[Index] = []
    valid: Expr | None = None
    parts = zip(
        index, call.attrs["begin"], call.attrs["strides"], call.specs[0].dims, call.out.dims,
        strict=True,
    )  # fmt: skip
    for i, begin, step, count, extent in parts:
        offset = add_index(i, -begin) if step > 0 else add_index(scale_index(i, -1), begin)
        whole = begin == 0 and step == 1 and count == extent
        if abs(step) != 1:
            value, by = index_expr(offset), const(abs(step), dtypes.int64)
            exact = apply("eq", apply("mod", value, by), const(0, dtypes.int64))
            valid = both(valid, exact)
            offset = apply("floordiv", value, by)
        if not whole:
            valid = both(valid, in_range(offset, count))
        source.append(offset)
    return call.inputs[0](source, valid=valid)


def both(a: Expr | None, b: Expr) -> Expr:
    """``a and b``; b alone where there is no a."""
    return b if a is None else apply("and", a, b)


def in_range(index: Index, count: Dim) -> Expr:
    """``0 <= index < count``."""
    value = index_expr(index)
    low = apply("ge", value, const(0, dtypes.int64))
    return apply("and", low, apply("lt", value, dim_expr(count)))


def _placed(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    parts = zip(attrs["begin"], specs[0].dims, attrs["strides"], outs[0].dims, strict=True)
    for part in parts:
        yield from slice_sizes(*part)


def _grad_slice_grad(call: OpCall, dz: Tensor) -> list[Any]:
    begin, strides = call.attrs["begin"], call.attrs["strides"]
    return [run(STRIDED_SLICE, dz, begin=begin, size=call.inputs[0].dims, strides=strides)]


SLICE_GRAD = register(
    Op(
        "strided_slice_grad",
        lambda dy, *, shape, begin, strides: TensorSpec(shape, dy.dtype),
        _eager_slice_grad,
        _grad_slice_grad,
        Compute(lower_slice_grad, "view"),
        sizes=_placed,
        part=Part(PartKind.SLICE, PartUse.PLACE, 0),
    )
)


def slice_known(
    x: Tensor, begin: Sequence[Dim], size: Sequence[Dim], strides: Sequence[int] | None = None
) -> Tensor:
    """The part of `x` that starts at `begin` and has the dims `size`."""
    steps = tuple(strides) if strides is not None else (1,) * x.ndim
    if tuple(size) == x.dims and all(b == 0 for b in begin) and all(s == 1 for s in steps):
        return x
    return run(STRIDED_SLICE, x, begin=tuple(begin), size=tuple(size), strides=steps)  # type: ignore[no-any-return]


def part_of(x: Tensor, axis: int, start: Dim, count: Dim) -> Tensor:
    begin: list[Dim] = [0] * x.ndim
    size = list(x.dims)
    begin[axis], size[axis] = start, count
    return slice_known(x, begin, size)
