"""Additions to parts of arrays: what gradients of loops are written with before they are compiled.

Programs do them in the array's memory where nobody else needs it. Users have no functions for
these ops, and they have no gradients: `treadle.runtime.passes.additions` writes them when all
gradients are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.kernel.ir import Expr, Index, apply, cast, const
from treadle.ops.indexing.basic import part_key
from treadle.ops.lowering import Compute, LowerCall, dim_expr, index_expr
from treadle.ops.properties import Part, PartKind, PartUse, Refusal
from treadle.ops.registry import Op, register
from treadle.ops.shaping.slicing import lower_slice_grad, python_slices


def _eager_index_add(x: NDArray, i: NDArray, part: NDArray, *, axis: int) -> NDArray:
    result = x.copy()
    result[(slice(None),) * axis + (int(i),)] += part
    return result


def _lower_index_add(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    place = cast(call.inputs[1](()), dtypes.int64)
    around = apply("add", place, dim_expr(call.out.dims[axis]))
    place = apply("select", apply("lt", place, const(0, dtypes.int64)), around, place)
    here = apply("eq", index_expr(index[axis]), place)
    old = call.inputs[0](index)
    part = call.inputs[2]([*index[:axis], *index[axis + 1 :]])
    return apply("select", here, apply("add", old, part), old)


def _eager_slice_add(
    x: NDArray, part: NDArray, *, begin: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray:
    result = x.copy()
    result[python_slices(begin, part.shape, strides)] += part
    return result


class _SecondOnly:
    """A call of the gradient's rule, which knows nothing of the accumulator."""

    def __init__(self, call: LowerCall) -> None:
        self.inputs, self.specs = call.inputs[1:], call.specs[1:]
        self.out, self.which, self.attrs, self.axis = call.out, 0, call.attrs, call.axis


def _lower_slice_add(call: LowerCall, index: Sequence[Index]) -> Expr:
    part = lower_slice_grad(_SecondOnly(call), index)
    return apply("add", call.inputs[0](index), part)


def _eager_dynamic_add(
    x: NDArray, *operands: NDArray, axis: int, given: tuple[bool, ...]
) -> NDArray:
    *bounds, part = operands
    result = x.copy()
    result[part_key(bounds, axis, given)] += part
    return result


def _eager_segment_add(x: NDArray, data: NDArray, ids: NDArray) -> NDArray:
    flat, result = ids.reshape(-1), x.copy()
    rows = data.reshape((flat.size, *data.shape[ids.ndim :]))
    kept = flat >= 0
    np.add.at(result, flat[kept], rows[kept])
    return result


def _like_first(x: TensorSpec, *_: object, **__: object) -> TensorSpec:
    return x


INDEX_ADD = register(
    Op(
        "index_add", _like_first, _eager_index_add, lower=Compute(_lower_index_add, "gather"),
        part=Part(PartKind.INDEX, PartUse.ADD, 2), refuses=Refusal.WRAPPING_POSITION,
    )
)  # fmt: skip
SLICE_ADD = register(
    Op(
        "slice_add", _like_first, _eager_slice_add, lower=Compute(_lower_slice_add, "gather"),
        part=Part(PartKind.SLICE, PartUse.ADD, 1),
    )
)  # fmt: skip
DYNAMIC_SLICE_ADD = register(
    Op(
        "dynamic_slice_add", _like_first, _eager_dynamic_add,
        part=Part(PartKind.DYNAMIC_SLICE, PartUse.ADD, -1),
    )
)  # fmt: skip
SEGMENT_ADD = register(
    Op(
        "segment_add", _like_first, _eager_segment_add,
        part=Part(PartKind.SEGMENTS, PartUse.ADD, 1),
    )
)  # fmt: skip
