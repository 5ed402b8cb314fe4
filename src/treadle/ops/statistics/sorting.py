"""Sorting along an axis: sort, argsort, top_k, searchsorted. Equal elements keep their order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, compound, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.dims import size_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.transposing import transpose
from treadle.ops.lowering import RowCall, Rows
from treadle.ops.op_makers import guard, require_kinds
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import one_hot
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import expand_dims


def _order(x: NDArray, descending: bool, count: int | None = None) -> NDArray:
    """Positions that sort the last axis, or the first `count` of these; NaN is the largest."""
    if x.dtype.itemsize <= 4 and x.shape[-1] < 1 << 32:
        return _order_of_keys(_keys(x, descending), count)
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")[..., :count]
    # Sorting the reversed axis and reversing the result keeps equal elements in order.
    found = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    result: NDArray = x.shape[-1] - 1 - found
    return result[..., :count]


def _keys(x: NDArray, descending: bool) -> NDArray:
    """Integers that sort as the elements do, each with its position in the lower half: they all
    differ, so any way of sorting them is stable, and NumPy sorts integers with vectors."""
    if dtypes.as_dtype(x.dtype).is_floating:
        real = x.astype(np.float32) + np.float32(0)  # a zero has one sign
        real[np.isnan(real)] = np.nan
        bits = real.view(np.int32)
        x = bits ^ (bits >> 31 & 0x7FFFFFFF)
    keys = x.astype(np.int64)
    if x.dtype == np.uint32:
        keys -= 1 << 31
    if descending:
        np.invert(keys, out=keys)
    keys <<= 32
    keys |= np.arange(x.shape[-1])
    return keys


def _order_of_keys(keys: NDArray, count: int | None) -> NDArray:
    if count is not None and count < keys.shape[-1]:
        keys = np.partition(keys, count, axis=-1)[..., :count]
    keys.sort(axis=-1)
    keys &= 0xFFFFFFFF
    return keys


# -- native routines (`runtime/routines/sorting.py`) ------------------------------------------

SEARCH_BYTES = 256  # workspace of a search, without the keys of a row
MOST_KEPT = 1 << 16  # elements of a row whose keys a search keeps
SORTED_WORK = 32  # element operations for each element of a row that is sorted
MOST_EXCHANGED = 1024  # rows of up to so many elements are sorted side by side
LINE = 64  # bytes of keys that belong to one element of these rows


def _names(x: TensorSpec, **more: DType | int) -> dict[str, DType | int]:
    """What the routines need to know of the elements that they compare."""
    kind, size = x.dtype, x.dtype.size
    keys = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
    known: dict[str, DType | int] = {"T": kind, "K": keys[size]}
    known |= {"BITS": 8 * size, "LANES": LINE // size}
    return {**known, "FLOATING": kind.is_floating, "SIGNED": kind.kind == "i", **more}


def _sorting_call(x: TensorSpec, numbers: dict[str, Dim], **more: DType | int) -> RowCall | None:
    """A routine that sorts rows; numbers of 16 bits are made wider before."""
    if x.dtype.is_floating and x.dtype.size == 2:
        return None
    n = x.dims[-1]
    space = 24 * n + 1024 * x.dtype.size  # two arrays of keys and positions, counts of digits
    space += 3 * LINE * compound("min", n, MOST_EXCHANGED)
    rows = product(x.dims[:-1])
    return RowCall(rows, SORTED_WORK * n * rows, numbers, _names(x, **more), space)


def _widened(x: Tensor) -> Tensor:
    """Floats of 16 bits as float32, in the same order."""
    return cast(x, dtypes.float32) if x.dtype.is_floating and x.dtype.size == 2 else x


def _infer_argsort(x: TensorSpec, *, descending: bool) -> TensorSpec:
    require_kinds("fiu", x)
    return TensorSpec(x.dims, dtypes.int32)


def _argsort_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall | None:
    x = inputs[0]
    descending = int(attrs["descending"])
    return _sorting_call(x, {"n": x.dims[-1]}, I=outputs[0].dtype, DESCENDING=descending)


ARGSORT = register(
    Op(
        "argsort",
        _infer_argsort,
        guard("fiu", lambda x, *, descending: _order(x, descending).astype(np.int32)),
        lower=Rows("sorting.argsort", _argsort_call),
    )
)


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The positions (int32) that sort `values` along `axis`; always stable."""
    x, order = _last_axis(values, axis)
    found = run(ARGSORT, _widened(x), descending=_descending(direction))
    return transpose(found, order)


def _sorted(x: NDArray, *, descending: bool) -> NDArray:
    """The elements of each row in order: NaN is the largest, -0.0 comes before 0.0."""
    if dtypes.as_dtype(x.dtype).is_floating:
        whole = np.dtype(f"i{x.dtype.itemsize}")
        keys = _turned(np.where(np.isnan(x), x.dtype.type(np.nan), x).view(whole))
        rows = _turned(np.sort(keys, axis=-1)).view(x.dtype)
    else:
        rows = np.sort(x, axis=-1)
    return np.ascontiguousarray(rows[..., ::-1]) if descending else rows


def _turned(bits: NDArray) -> NDArray:
    """Integers with a float's bits, so that they rise as the floats do; and back."""
    found: NDArray = bits ^ (bits >> (8 * bits.itemsize - 1) & np.iinfo(bits.dtype).max)
    return found


def _infer_sort(x: TensorSpec, *, descending: bool) -> TensorSpec:
    require_kinds("fiu", x)
    return x


def _sort_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall | None:
    x = inputs[0]
    quiet = 0
    if x.dtype.is_floating:
        quiet = int(np.array(np.nan, x.dtype.np_dtype).view(f"u{x.dtype.size}"))
    names = {"DESCENDING": int(attrs["descending"]), "QUIET": quiet}
    return _sorting_call(x, {"n": x.dims[-1]}, **names)


def _grad_sort(call: OpCall, dy: Tensor) -> list[Any]:
    """Each gradient goes back to the position that its element came from."""
    order = run(ARGSORT, call.inputs[0], descending=call.attrs["descending"])
    place = run(ARGSORT, order, descending=False)
    axis = dy.ndim - 1
    return [gather(dy, place, axis=axis, batch_dims=axis)]


SORT = register(
    Op(
        "sort",
        _infer_sort,
        guard("fiu", _sorted),
        _grad_sort,
        Rows("exchanges.sort", _sort_call),
    )
)


def sort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """`values` sorted along `axis`. direction: "ASCENDING" or "DESCENDING"."""
    x, order = _last_axis(values, axis)
    found = run(SORT, _widened(x), descending=_descending(direction))
    return transpose(found if found.dtype is x.dtype else _narrowed(found, x.dtype), order)


def _narrowed(x: Tensor, dtype: DType) -> Tensor:
    return cast(x, dtype)


def _last_axis(values: Any, axis: int) -> tuple[Tensor, list[int]]:
    """The tensor with `axis` last, and the order of axes that undoes it."""
    x = convert_to_tensor(values)
    position = normalize_axis(axis, x.ndim)
    order = list(range(x.ndim))
    order[position], order[-1] = order[-1], order[position]
    return transpose(x, order), order


def _descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"direction must be 'ASCENDING' or 'DESCENDING', not {direction!r}{at(user_origin())}"
        )
    return direction == "DESCENDING"


# -- top_k ---------------------------------------------------------------------------------------


class TopKV2(NamedTuple):
    """The largest elements of each row and their positions."""

    values: Tensor
    indices: Tensor


def _infer_top_k(x: TensorSpec, *, k: Dim, index_type: DType) -> tuple[TensorSpec, TensorSpec]:
    require_kinds("fiu", x)
    last = x.dims[-1] if x.dims else 0
    if isinstance(k, int) and k < 0:
        raise errors.InvalidArgumentError(None, None, f"k = {k} must not be negative")
    if isinstance(k, int) and isinstance(last, int) and k > last:
        raise errors.InvalidArgumentError(None, None, f"k = {k} exceeds the last axis of {x.shape}")
    dims = (*x.dims[:-1], k)
    return TensorSpec(dims, x.dtype), TensorSpec(dims, index_type)


def _eager_top_k(x: NDArray, *, k: int, index_type: DType) -> tuple[NDArray, NDArray]:
    if k < 0 or k > x.shape[-1]:
        raise errors.InvalidArgumentError(None, None, f"k = {k} exceeds {x.shape[-1]}")
    found = _order(x, descending=True, count=k)
    return np.take_along_axis(x, found, -1), found.astype(index_type.np_dtype)


def _grad_top_k(call: OpCall, dy: Tensor, _: Any) -> list[Any]:
    """Each gradient goes back to the position that its element came from."""
    x, found = call.inputs[0], call.outputs[1]
    places = one_hot(found, x.dims[-1], dtype=dy.dtype)
    return [reduce_sum(expand_dims(dy, -1) * places, -2)]


def _top_k_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall | None:
    x = inputs[0]
    numbers = {"n": x.dims[-1], "k": attrs["k"]}
    call = _sorting_call(x, numbers, I=attrs["index_type"], DESCENDING=1)
    n, k = x.dims[-1], attrs["k"]
    return call and replace(call, equal=((compound("max", k, n), n),))


TOP_K = register(
    Op(
        "top_k", _infer_top_k, guard("fiu", _eager_top_k), _grad_top_k,
        Rows("sorting.top_k", _top_k_call),
    )
)  # fmt: skip


def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dtypes.int32,
    name: str | None = None,
) -> TopKV2:  # fmt: skip
    """The k largest elements along the last axis, largest first, and their positions."""
    x = convert_to_tensor(input)
    if x.ndim == 0:
        text = f"top_k: a scalar has no axis to select from{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    count = size_of(k, "top_k: k", most=x.dims[-1])
    places = dtypes.as_dtype(index_type)
    if not places.is_integer:
        text = f"top_k: index_type must be an integer dtype, not {places.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    values, found = run(TOP_K, _widened(x), k=count, index_type=places)
    return TopKV2(values if values.dtype is x.dtype else cast(values, x.dtype), found)


class ApproxTopK(NamedTuple):
    """Elements along an axis and their positions, the most extreme first."""

    values: Tensor
    indices: Tensor


def approx_max_k(
    operand: Any, k: Any, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:  # fmt: skip
    """The k largest elements along an axis and their positions, exactly: the arguments that say how
    approximate the result may be are accepted for TensorFlow programs."""
    x = convert_to_tensor(operand)
    axis = normalize_axis(reduction_dimension, x.ndim)
    order = [*(a for a in range(x.ndim) if a != axis), axis]
    back = [order.index(a) for a in range(x.ndim)]
    found = top_k(permute(x, order), k)
    return ApproxTopK(permute(found.values, back), permute(found.indices, back))


def approx_min_k(
    operand: Any, k: Any, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:  # fmt: skip
    """The k smallest elements along an axis and their positions; see `approx_max_k`."""
    values, found = approx_max_k(-convert_to_tensor(operand), k, reduction_dimension)
    return ApproxTopK(-values, found)


def approx_top_k(
    input: Any, k: Any, reduction_dimension: int = -1, recall_target: float = 0.95,
    is_max_k: bool = True, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:  # fmt: skip
    """`approx_max_k`, or `approx_min_k` where `is_max_k` is False."""
    return (approx_max_k if is_max_k else approx_min_k)(input, k, reduction_dimension)


# -- searchsorted --------------------------------------------------------------------------------


def _infer_search(rows: TensorSpec, values: TensorSpec, *, right: bool, dtype: DType) -> TensorSpec:
    require_kinds("fiu", rows, values)
    if rows.rank < 1 or rows.rank != values.rank:
        raise errors.InvalidArgumentError(None, None, "both inputs must have the same axes")
    if not rows.shape[:-1].is_compatible_with(values.shape[:-1]):
        raise errors.InvalidArgumentError(
            None, None, f"the leading axes of {rows.shape} and {values.shape} differ"
        )
    return TensorSpec(values.dims, dtype)


def _eager_search(rows: NDArray, values: NDArray, *, right: bool, dtype: DType) -> NDArray:
    if rows.dtype.kind in "bc" or not rows.ndim or rows.shape[:-1] != values.shape[:-1]:
        raise errors.InvalidArgumentError(None, None, "the leading axes differ")
    side = "right" if right else "left"
    count = math.prod(rows.shape[:-1])
    flat_rows, flat_values = (a.reshape((count, a.shape[-1])) for a in (rows, values))
    found = [
        np.searchsorted(row, wanted, side)  # type: ignore[call-overload]
        for row, wanted in zip(flat_rows, flat_values, strict=True)
    ]
    return np.array(found, dtype.np_dtype).reshape(values.shape)


def _search_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall | None:
    rows, values = inputs
    if rows.dtype.is_floating and rows.dtype.size == 2:
        return None
    names = _names(rows, I=attrs["dtype"], RIGHT=int(attrs["right"]))
    numbers = {"n": rows.dims[-1], "m": values.dims[-1]}
    same = tuple(zip(rows.dims[:-1], values.dims[:-1], strict=True))
    count = product(values.dims)
    space = SEARCH_BYTES + 8 * compound("min", rows.dims[-1], MOST_KEPT)
    return RowCall(count, SORTED_WORK * count, numbers, names, space, same)


SEARCHSORTED = register(
    Op(
        "searchsorted",
        _infer_search,
        _eager_search,
        lower=Rows("sorting.searchsorted", _search_call),
    )
)


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Where each value would be inserted in its sorted row to keep it sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', not {side!r}{at(user_origin())}")
    rows, wanted = common_dtype("searchsorted", sorted_sequence, values)
    dtype = dtypes.as_dtype(dtypes.int32 if out_type is None else out_type)
    rows, wanted = _widened(rows), _widened(wanted)
    return run(SEARCHSORTED, rows, wanted, right=side == "right", dtype=dtype)  # type: ignore[no-any-return]
