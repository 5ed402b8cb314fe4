"""The parts of a tensor where a mask is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, fresh_symbol, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gathered
from treadle.ops.lowering import (
    Compaction,
    RowCall,
    Rows,
)
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.reshaping import reshape_to, with_dims
from treadle.ops.sizes import Pairs

# Integers of the size of elements that are only moved.
_BY_SIZE = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def _same_rows(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """The mask is true or false for every row."""
    yield specs[0].dims[0], specs[1].dims[0]


def _eager_select(x: NDArray, mask: NDArray) -> NDArray:
    return x[mask]


def _grad_select(call: OpCall, dy: Tensor) -> list[Any]:
    return [run(EXPAND, dy, call.inputs[1]), None]


COMPRESS = register(
    Op(
        "compress",
        lambda x, mask: TensorSpec((fresh_symbol("masked"), *x.dims[1:]), x.dtype),
        _eager_select,
        _grad_select,
        Compaction(1, rows=0),
        tags=frozenset({"any_elements", "dynamic"}),
        sizes=_same_rows,
    )
)


def _eager_expand(x: NDArray, mask: NDArray) -> NDArray:
    result = np.zeros((*mask.shape, *x.shape[1:]), x.dtype)
    result[mask] = x
    return result


def _expand_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall:
    x = outputs[0]
    rows, given = x.dims[0], inputs[0].dims[0]
    numbers: dict[str, Dim] = {"n": rows, "inner": product(x.dims[1:]), "given": given}
    return RowCall(1, product(x.dims), numbers, {"K": _BY_SIZE[x.dtype.size]})


# The rows of x, which are as many as the mask has true elements, at these; zeros elsewhere. In
# gradients the numbers agree; assignments to what a mask selects compare them before.
EXPAND = register(
    Op(
        "expand_masked",
        lambda x, mask: TensorSpec((mask.dims[0], *x.dims[1:]), x.dtype),
        _eager_expand,
        lambda call, dz: [run(COMPRESS, dz, call.inputs[1]), None],
        Rows("counting.spread_true", _expand_call),
    )
)


def boolean_mask(
    tensor: Any, mask: Any, axis: int | None = None, name: str | None = None
) -> Tensor:
    """The parts of `tensor` where `mask` (over some of its axes, from `axis`) is true.

    Numbers in the mask are true unless 0.
    """
    x, chosen = convert_to_tensor(tensor), convert_to_tensor(mask)
    start = normalize_axis(0 if axis is None else axis, max(x.ndim, 1))
    end = start + chosen.ndim
    if chosen.ndim == 0:
        raise ValueError(f"boolean_mask: the mask is a scalar, without an axis{at(user_origin())}")
    if not chosen.dtype.is_bool:
        chosen = not_equal(chosen, convert_to_tensor(0, chosen.dtype))
    if end > x.ndim or not chosen.shape.is_compatible_with(x.shape[start:end]):
        raise errors.InvalidArgumentError(
            None, None,
            f"boolean_mask: a mask of shape {chosen.shape} does not fit shape {x.shape} at axis "
            f"{start}{at(user_origin())}",
        )  # fmt: skip
    chosen = with_dims(chosen, x.dims[start:end])
    count = product(x.dims[start:end])
    flat = reshape_to(x, (*x.dims[:start], count, *x.dims[end:]))
    if start == 0 and not x.dtype.is_complex:
        return run(COMPRESS, flat, reshape_to(chosen, (count,)))  # type: ignore[no-any-return]
    found = where(reshape_to(chosen, (product(chosen.dims),)))
    positions = reshape_to(found, (found.dims[0],))
    return gathered(flat, positions, axis=start)
