"""Axes in another order, which may be known only when the program runs."""

from __future__ import annotations

import operator
from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor, is_symbolic
from treadle.ops.dims import (
    dims_tensor,
    elements_of,
    shape_tensor,
    size_of,
)
from treadle.ops.dims import shape as dims_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gathered
from treadle.ops.reductions.reduction import reduce_all, reduce_any
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import range as numbers
from treadle.ops.shaping.reshaping import expand_dims, reshape_to, with_dims


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> Tensor:
    """`a` with its axes in the order `perm` (default: reversed)."""
    x = convert_to_tensor(a)
    if is_symbolic(perm) or isinstance(perm, list | tuple) and any(map(is_symbolic, perm)):
        moved = _transpose_by(x, convert_to_tensor(perm))
    else:
        moved = permute(x, _permutation(perm, x))
    return conj(moved) if conjugate else moved


def _transpose_by(x: Tensor, perm: Tensor) -> Tensor:
    """`x` with its axes in an order that only a run can tell, as elements read by position.

    Output axis k runs over input axis ``perm[k]``, whose elements lie ``strides[perm[k]]`` apart.
    """
    if not perm.dtype.is_integer:
        text = f"transpose: perm is a sequence of integers, not of {perm.dtype.name}"
        raise errors.DtypeError(None, None, f"{text}{at(user_origin())}")
    order = cast(perm, dtypes.int64)
    if order.shape.is_compatible_with((x.ndim,)):
        order = with_dims(order, (x.ndim,))
    else:
        raise errors.InvalidArgumentError(
            None, None,
            f"transpose: perm must have the shape ({x.ndim},), one number for each axis of "
            f"{x.shape}, not {order.shape}{at(user_origin())}",
        )  # fmt: skip
    order = where(order < 0, order + x.ndim, order)
    hits = expand_dims(order, 1) == numbers(x.ndim, dtype=dtypes.int64)
    Assert(reduce_all(reduce_any(hits, 0)), ["transpose: perm is no order of the axes:", perm])
    sizes = elements_of(gathered(dims_of(x, dtypes.int64), order))
    strides = [product(x.dims[k + 1 :]) for k in range(x.ndim)]
    steps = gathered(shape_tensor(strides), order)
    dims = tuple(size_of(s, "transpose: a dim") for s in sizes)
    place = convert_to_tensor(0, dtypes.int64)
    for axis, dim in enumerate(dims):
        along = (dim, *(1,) * (x.ndim - axis - 1))
        place = place + reshape_to(numbers(dims_tensor(dim, dtypes.int64)) * steps[axis], along)
    return gathered(reshape_to(x, (product(x.dims),)), place)


def _permutation(perm: Any, x: Tensor) -> tuple[int, ...]:
    if perm is None:
        return tuple(reversed(range(x.ndim)))
    perm = perm.numpy() if isinstance(perm, Tensor) else perm
    try:
        order = tuple(operator.index(p) + (x.ndim if p < 0 else 0) for p in perm)
    except TypeError:
        text = f"transpose: perm is a sequence of integers, not {perm!r}{at(user_origin())}"
        raise errors.DtypeError(None, None, text) from None
    if sorted(order) != list(range(x.ndim)):
        raise errors.InvalidArgumentError(
            None, None,
            f"transpose: perm {tuple(int(p) for p in perm)} is no order of the {x.ndim} axes of "
            f"shape {x.shape}{at(user_origin())}",
        )  # fmt: skip
    return order
