"""Joining and taking apart: concat, stack, unstack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import Dim, shape_text
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, apply, const
from treadle.ops.axes import normalize_axis
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor, has_dtype, register_stack
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.lowering import Compute, LowerCall, add_index, dim_expr, index_expr
from treadle.ops.op_makers import needs
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.reshaping import reshape_to, with_dim
from treadle.ops.shaping.slicing import part_of, slice_known
from treadle.ops.sizes import Pairs


def convert_all(values: Any) -> list[Tensor]:
    """Tensors of one dtype: values without a dtype of their own take that of the first that has."""
    if isinstance(values, Tensor):
        return unstack(values)
    typed = next((v for v in values if has_dtype(v)), None)
    if typed is None:
        common = _python_dtype(values) if len(values) else None
        return [convert_to_tensor(v, common) for v in values]
    dtype = typed.dtype
    return [convert_to_tensor(v) if has_dtype(v) else convert_to_tensor(v, dtype) for v in values]


def _python_dtype(values: Sequence[Any]) -> DType:
    """The dtype of Python values: float32 as soon as one of several numbers is a float."""
    found = [convert_to_tensor(v).dtype for v in values]
    floats = (d for d in found if d.is_floating and not any(f.is_bool for f in found))
    return next(floats, found[0])


def _same_dtype(specs: Sequence[TensorSpec]) -> None:
    for spec in specs:
        if spec.dtype is not specs[0].dtype:
            raise TypeError(f"dtypes {specs[0].dtype.name} and {spec.dtype.name} differ")


def one_dtype(arrays: Sequence[NDArray]) -> Sequence[NDArray]:
    """The arrays, or TypeError where NumPy would promote them to a common dtype."""
    if any(a.dtype != arrays[0].dtype for a in arrays):
        raise TypeError("the dtypes differ")
    return arrays


# -- concat --------------------------------------------------------------------------------------


def _infer_concat(*specs: TensorSpec, axis: int) -> TensorSpec:
    _same_dtype(specs)
    dims = list(specs[0].dims)
    for spec in specs[1:]:
        if spec.rank != len(dims):
            raise errors.InvalidArgumentError(None, None, "the ranks differ")
        for position, dim in enumerate(spec.dims):
            if position == axis:
                dims[axis] = dims[axis] + dim
            elif isinstance(dim, int) and isinstance(dims[position], int) and dim != dims[position]:
                raise errors.InvalidArgumentError(
                    None, None,
                    f"Dimensions of inputs should match: dim {position} is {dims[position]} in one "
                    f"and {dim} in another",
                )  # fmt: skip
            elif isinstance(dim, int):
                dims[position] = dim
    return TensorSpec(dims, specs[0].dtype)


def _lower_concat(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    position = index_expr(index[axis])
    ends: list[Dim] = []
    for spec in call.specs:
        ends.append((ends[-1] if ends else 0) + spec.dims[axis])
    result: Expr | None = None
    for number in range(len(ends) - 1, -1, -1):
        start = 0 if number == 0 else ends[number - 1]
        place = list(index)
        place[axis] = add_index(index[axis], -start)
        before_end = apply("lt", position, dim_expr(ends[number]))
        after_start = apply("ge", position, dim_expr(start))
        valid = apply("and", before_end, after_start)
        value = call.inputs[number](place, valid=valid)
        result = value if result is None else apply("select", before_end, value, result)
    assert result is not None
    return result


def _grad_concat(call: OpCall, dy: Tensor) -> list[Any]:
    axis, start, grads = call.attrs["axis"], 0, []
    for position, x in enumerate(call.inputs):
        begin: list[Dim] = [0] * dy.ndim
        begin[axis] = start
        grads.append(slice_known(dy, begin, x.dims) if needs(call, position) else None)
        start = start + x.dims[axis]
    return grads


def _joined(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """The parts have the dims of the result, but for the axis along which they are joined."""
    for spec in specs:
        pairs = zip(spec.dims, outs[0].dims, strict=True)
        yield from (pair for i, pair in enumerate(pairs) if i != attrs["axis"])


CONCAT = register(
    Op(
        "concat",
        _infer_concat,
        lambda *arrays, axis: np.concatenate(one_dtype(arrays), axis),
        _grad_concat,
        Compute(_lower_concat, "view"),
        sizes=_joined,
        tags=frozenset({"any_elements"}),
    )
)


def concat(values: Any, axis: Any, name: str | None = None) -> Tensor:
    """The tensors joined along an axis that they have; a single tensor as it is."""
    if hasattr(values, "joined"):  # a list of the graph
        joined: Tensor = values.joined(axis)
        return joined
    tensors = convert_all(values if isinstance(values, list | tuple) else [values])
    if not tensors:
        raise errors.InvalidArgumentError(
            None, None, f"concat: there are no tensors to join{at(user_origin())}"
        )
    if len(tensors) == 1:  # of any rank, whatever the axis is
        of_axis = convert_to_tensor(axis).shape
        if of_axis.rank:
            raise ValueError(f"Shape {of_axis} must have rank 0{at(user_origin())}")
        return tensors[0]
    if tensors[0].ndim == 0:
        raise errors.InvalidArgumentError(
            None, None, f"concat: scalars have no axis to join; use stack{at(user_origin())}"
        )
    axis = normalize_axis(axis, tensors[0].ndim)
    return run(CONCAT, *tensors, axis=axis)  # type: ignore[no-any-return]


# -- stack, unstack ------------------------------------------------------------------------------


def _infer_stack(*specs: TensorSpec, axis: int) -> TensorSpec:
    _same_dtype(specs)
    dims = specs[0].dims
    for spec in specs[1:]:
        if not spec.shape.is_compatible_with(specs[0].shape):
            raise errors.InvalidArgumentError(
                None, None, f"the shapes {shape_text(dims)} and {spec.shape} differ"
            )
        dims = tuple(b if isinstance(b, int) else a for a, b in zip(dims, spec.dims, strict=True))
    return TensorSpec((*dims[:axis], len(specs), *dims[axis:]), specs[0].dtype)


def _lower_stack(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    rest = [*index[:axis], *index[axis + 1 :]]
    result = call.inputs[-1](rest)
    for number in range(len(call.inputs) - 2, -1, -1):
        here = apply("eq", index_expr(index[axis]), const(number, dtypes.int64))
        result = apply("select", here, call.inputs[number](rest), result)
    return result


def _stacked(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """The parts have the dims of the result without the axis that is new."""
    axis, dims = attrs["axis"], outs[0].dims
    for spec in specs:
        yield from zip(spec.dims, (*dims[:axis], *dims[axis + 1 :]), strict=True)


STACK = register(
    Op(
        "stack",
        _infer_stack,
        lambda *arrays, axis: np.stack(one_dtype(arrays), axis),
        lambda call, dy: unstack(dy, axis=call.attrs["axis"]),
        Compute(_lower_stack, "view"),
        sizes=_stacked,
        tags=frozenset({"any_elements"}),
    )
)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Tensors of one shape as the parts of a new axis."""
    if hasattr(values, "stacked"):  # a list of the graph
        stacked: Tensor = values.stacked(axis)
        return stacked
    tensors = convert_all(values)
    if not tensors:
        return convert_to_tensor(np.zeros(0, np.float32))
    return run(STACK, *tensors, axis=normalize_axis(axis, tensors[0].ndim + 1))  # type: ignore[no-any-return]


def _packed(parts: list[Tensor], dtype: DType | None) -> Tensor:
    return stack(parts if dtype is None else [cast(x, dtype) for x in parts])


register_stack(_packed)


def parallel_stack(values: Any, name: str | None = None) -> Tensor:
    """Tensors of one shape as the parts of a new first axis."""
    return stack(values)


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str | None = None
) -> list[Tensor]:
    """The parts of `value` along an axis of known size, without that axis."""
    x = convert_to_tensor(value)
    position = normalize_axis(axis, x.ndim)
    count = num if num is not None else x.dims[position]
    if not isinstance(count, int):
        raise NotYetKnown(
            f"unstack: the size of axis {axis} of {x.shape} is not known while tracing; give num"
            f"{at(user_origin())}"
        )
    if isinstance(x.dims[position], int) and x.dims[position] != count:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"unstack: axis {axis} of {x.shape} has not {count} parts{at(user_origin())}",
        )
    if count < 0:
        raise errors.InvalidArgumentError(
            None, None, f"unstack: num = {count} is negative{at(user_origin())}"
        )
    if not count and not isinstance(x.dims[position], int):  # no result would carry the check
        empty = dims_tensor(x.dims[position], dtypes.int64) == 0
        Assert(empty, [f"unstack: axis {axis} has not 0 parts{at(user_origin())}"])
    x = with_dim(x, position, count)
    rest = (*x.dims[:position], *x.dims[position + 1 :])
    return [reshape_to(part_of(x, position, i, 1), rest) for i in range(count)]
