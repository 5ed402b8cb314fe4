"""Single elements at positions that are scalar tensors: ``x[i, j]`` and ``x[i, j] = v``.

Nobody calls these ops: the pass `elements` writes them for chains of views and of updates of views
that end in one element, so that no row is made in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, apply, cast, const
from treadle.ops.indexing.index import INDEX_GRAD, check_positions
from treadle.ops.lowering import Compute, LowerCall, dim_expr, index_expr
from treadle.ops.op_makers import require_kinds
from treadle.ops.properties import Part, PartKind, PartUse, Refusal
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import zeros_like

# Inputs 1, 2, ... are positions, one for every axis of input 0; negative ones count from the end.


def _infer_element(x: TensorSpec, *positions: TensorSpec) -> TensorSpec:
    _check(x, positions)
    return TensorSpec((), x.dtype)


def _infer_update(x: TensorSpec, *more: TensorSpec) -> TensorSpec:
    *positions, value = more
    _check(x, positions)
    if value.rank or value.dtype is not x.dtype:
        raise TypeError(f"the element is a scalar of dtype {x.dtype.name}")
    return x


def _check(x: TensorSpec, positions: Sequence[TensorSpec]) -> None:
    for position in positions:
        require_kinds("iu", position)
    if len(positions) != x.rank or any(p.rank for p in positions):
        raise TypeError(f"an element of an array of rank {x.rank} has as many scalar positions")


def _place(x: NDArray, positions: Sequence[NDArray]) -> tuple[int, ...]:
    for position, size in zip(positions, x.shape, strict=True):
        check_positions(np.atleast_1d(position), size, -size)
    return tuple(int(p) for p in positions)


def _eager_element(x: NDArray, *positions: NDArray) -> Any:
    return x[_place(x, positions)]


def _eager_update(x: NDArray, *more: NDArray) -> NDArray:
    *positions, value = more
    result = x.copy()
    result[_place(x, positions)] = value
    return result


def _wrapped(call: LowerCall, count: int) -> list[Expr]:
    """The positions along each axis, counted from its beginning."""
    found = []
    for axis in range(count):
        place = cast(call.inputs[1 + axis](()), dtypes.int64)
        if not call.specs[1 + axis].dtype.is_unsigned:
            size = dim_expr(call.specs[0].dims[axis])
            back = apply("lt", place, const(0, dtypes.int64))
            place = apply("select", back, apply("add", place, size), place)
        found.append(place)
    return found


def _lower_element(call: LowerCall, index: Sequence[Index]) -> Expr:
    return call.inputs[0](_wrapped(call, len(call.specs) - 1))


def _lower_update(call: LowerCall, index: Sequence[Index]) -> Expr:
    """The value at its place, x's own elements elsewhere."""
    places = zip(index, _wrapped(call, len(call.specs) - 2), strict=True)
    here = [apply("eq", index_expr(i), place) for i, place in places]
    both = here[0]
    for more in here[1:]:
        both = apply("and", both, more)
    return apply("select", both, call.inputs[-1](()), call.inputs[0](index))


def _grad_element(call: OpCall, dy: Tensor) -> list[Any]:
    x, *positions = call.inputs
    for position, size in reversed(list(zip(positions, x.dims, strict=True))):
        dy = run(INDEX_GRAD, dy, position, axis=0, size=size)
    return [dy, *(None for _ in positions)]


def _grad_update(call: OpCall, dz: Tensor) -> list[Any]:
    _, *positions, value = call.inputs
    kept = run(ELEMENT_UPDATE, dz, *positions, zeros_like(value))
    return [kept, *(None for _ in positions), run(ELEMENT, dz, *positions)]


ELEMENT = register(
    Op(
        "element", _infer_element, _eager_element, _grad_element,
        Compute(_lower_element, "gather"), refuses=Refusal.ELEMENT_POSITIONS,
        tags=frozenset({"any_elements"}),
        part=Part(PartKind.ELEMENT, PartUse.READ),
    )
)  # fmt: skip
ELEMENT_UPDATE = register(
    Op(
        "element_update", _infer_update, _eager_update, _grad_update,
        Compute(_lower_update, "gather"), refuses=Refusal.ELEMENT_POSITIONS,
        tags=frozenset({"any_elements"}),
        part=Part(PartKind.ELEMENT, PartUse.SET, -1),
    )
)  # fmt: skip
