"""The different elements of a vector."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.op_makers import ANY_KIND, inferred
from treadle.ops.registry import Op, register, run


def _infer_unique(x: TensorSpec, *, out_idx: DType) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    if x.rank != 1:
        raise ValueError(f"a vector is expected, not a tensor of rank {x.rank}")
    if x.dtype.kind not in ANY_KIND and x.dtype is not dtypes.string:
        raise TypeError(f"dtype {x.dtype.name} is not supported")
    count = fresh_symbol("unique")
    return (
        TensorSpec((count,), x.dtype), TensorSpec(x.dims, out_idx), TensorSpec((count,), out_idx)
    )  # fmt: skip


def _eager_unique(x: NDArray, *, out_idx: DType) -> tuple[NDArray, NDArray, NDArray]:
    if x.ndim != 1:
        raise ValueError(f"a vector is expected, not a tensor of rank {x.ndim}")
    first, places = _in_table(x) or _sorted(x)
    order = np.argsort(first)  # as they come, not by size
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    integers = out_idx.np_dtype
    idx = rank[places].astype(integers)
    counts = np.bincount(idx, minlength=len(order)).astype(integers)
    return x[first[order]], idx, counts


_SPREAD = 4  # places of a table for each element, which are read faster than elements are sorted


def _in_table(x: NDArray) -> tuple[NDArray, NDArray] | None:
    """What `_sorted` gives, by a table of all integers of their range; None where that is wide."""
    if x.dtype.kind not in "iu" or not len(x):
        return None
    least, most = int(x.min()), int(x.max())
    if most - least >= max(_SPREAD * len(x), 256):
        return None
    differences = x - x.dtype.type(least)  # modulo 2**bits, so they are right without a sign
    numbers = differences.view(f"u{x.dtype.itemsize}").astype(np.int64)
    table = np.full(most - least + 1, -1)
    table[numbers[::-1]] = np.arange(len(x))[::-1]  # of equal ones the first is written last
    found = np.flatnonzero(table >= 0)
    first = table[found]
    table[found] = np.arange(len(found))
    return first, table[numbers]


def _sorted(x: NDArray) -> tuple[NDArray, NDArray]:
    """Where each of the different elements comes first, by size, and for each element of the vector
    which of them it is."""
    # Each NaN is an element of its own, as none equals another.
    _, first, places = np.unique(x, return_index=True, return_inverse=True, equal_nan=False)
    return first, places


# Compiled programs call NumPy: their number depends on the elements, which a sorted copy tells.
UNIQUE = register(
    Op(
        "unique", _infer_unique, inferred(_infer_unique, _eager_unique),
        tags=frozenset({"dynamic", "any_elements"}),
        callback="it needs a table of the elements that were seen",
        no_gradient="an element that changes ever so little is another one",
    )
)  # fmt: skip


class Unique(NamedTuple):
    """The different elements, and for each element of the vector the position of its equal."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """What `Unique` has, and how often each of the different elements occurs."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The different elements of a vector in the order in which they come, and for each element of
    the vector the position of its equal among them.

    Not differentiable.

    Raises:
        InvalidArgumentError: x is not a vector.
    """
    found = unique_with_counts(x, out_idx)
    return Unique(found.y, found.idx)


def unique_with_counts(
    x: Any, out_idx: Any = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """`unique`, and how often each of the different elements occurs."""
    value, kind = convert_to_tensor(x), dtypes.as_dtype(out_idx)
    if kind not in (dtypes.int32, dtypes.int64):
        text = f"unique: out_idx must be int32 or int64, not {kind.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    return UniqueWithCounts(*run(UNIQUE, value, out_idx=kind))


def _infer_along(x: TensorSpec, *, axis: int, out_idx: DType) -> tuple[TensorSpec, ...]:
    count = fresh_symbol("unique")
    return (
        TensorSpec((*x.dims[:axis], count, *x.dims[axis + 1 :]), x.dtype),
        TensorSpec((x.dims[axis],), out_idx), TensorSpec((count,), out_idx),
    )  # fmt: skip


def _eager_along(x: NDArray, *, axis: int, out_idx: DType) -> tuple[NDArray, NDArray, NDArray]:
    parts = np.moveaxis(x, axis, 0)
    rows = parts.reshape(len(parts), math.prod(parts.shape[1:])).tolist()
    numbers: dict[tuple[Any, ...], int] = {}
    places = [numbers.setdefault(tuple(row), len(numbers)) for row in rows]
    idx = np.array(places, out_idx.np_dtype)
    first = np.unique(idx, return_index=True)[1]
    counts = np.bincount(idx, minlength=len(numbers)).astype(out_idx.np_dtype)
    return np.take(x, first, axis), idx, counts


UNIQUE_ALONG = register(
    Op(
        "unique_along", _infer_along, _eager_along,
        tags=frozenset({"dynamic", "strings"}),
        callback="it needs a table of the parts that were seen",
        no_gradient="a part that changes ever so little is another one",
    )
)  # fmt: skip


def unique_along(x: Tensor, axis: int, out_idx: DType) -> tuple[Tensor, Tensor, Tensor]:
    """The different parts of a tensor along an axis in the order in which they come, for each part
    the position of its equal among them, and how often each of them occurs."""
    return run(UNIQUE_ALONG, x, axis=axis, out_idx=out_idx)  # type: ignore[no-any-return]
