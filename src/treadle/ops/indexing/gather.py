"""Reading and writing at positions given by data: gather, scatter, masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape, fresh_symbol, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, apply, cast, const
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.families import require_kinds
from treadle.ops.lowering import (
    Compaction,
    Compute,
    LoopRoutine,
    LowerCall,
    ProgramLoops,
    RowCall,
    Rows,
    dim_expr,
)
from treadle.ops.properties import Part, PartKind, PartUse, Refusal
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.sizes import Pairs

# Ops with this tag read input 0 along attrs["axis"] at positions given by input 1 and must refuse
# positions outside it; `check_positions` is what to check and the error to raise.


def check_positions(indices: NDArray, size: int, low: int = 0, what: str = "index") -> None:
    """InvalidArgumentError naming the first index outside [low, size).

    Raises TypeError, which the shape rule then explains, for positions that are no integers.
    """
    if indices.dtype.kind not in "iu":
        raise TypeError("positions must be integers")
    if not indices.size or (indices.min() >= low and indices.max() < size):
        return
    wrong = indices[(indices < low) | (indices >= size)].reshape(-1)[0]
    raise errors.InvalidArgumentError(
        None, None, f"{what} {int(wrong)} is out of range for a dim of {size}: [{low}, {size})"
    )


# -- gather --------------------------------------------------------------------------------------


def _infer_gather(
    params: TensorSpec, indices: TensorSpec, *, axis: int, batch_dims: int
) -> TensorSpec:
    require_kinds("iu", indices)
    batch = params.dims[:batch_dims], indices.dims[:batch_dims]
    if not TensorShape(batch[0]).is_compatible_with(TensorShape(batch[1])):
        raise errors.InvalidArgumentError(
            None, None, f"the first {batch_dims} dims of {params.shape} and {indices.shape} differ"
        )
    dims = (*params.dims[:axis], *indices.dims[batch_dims:], *params.dims[axis + 1 :])
    return TensorSpec(dims, params.dtype)


def _eager_gather(params: NDArray, indices: NDArray, *, axis: int, batch_dims: int) -> NDArray:
    check_positions(indices, params.shape[axis])
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise errors.InvalidArgumentError(None, None, "the batches differ")
    if not batch_dims:
        return np.take(params, indices, axis)
    # Every batch position joined with the index: one flat take over (batch * dim).
    batch = params.shape[:batch_dims]
    moved = np.moveaxis(params, axis, batch_dims)
    rest = moved.shape[batch_dims + 1 :]
    rows = moved.reshape((product(moved.shape[: batch_dims + 1]), *rest))
    offsets = np.arange(int(np.prod(batch))).reshape(batch) * params.shape[axis]
    flat = indices + offsets.reshape(batch + (1,) * (indices.ndim - batch_dims))
    taken = rows[flat]
    order = list(range(taken.ndim))
    middle = order[batch_dims : indices.ndim]
    outer = order[indices.ndim : indices.ndim + axis - batch_dims]
    tail = order[indices.ndim + axis - batch_dims :]
    result: NDArray = taken.transpose(order[:batch_dims] + outer + middle + tail)
    return result


def _lower_gather(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis, batch = call.attrs["axis"], call.attrs["batch_dims"]
    count = call.specs[1].rank - batch
    position = call.inputs[1]([*index[:batch], *index[axis : axis + count]])
    return call.inputs[0]([*index[:axis], cast(position, dtypes.int64), *index[axis + count :]])


def _grad_gather(call: OpCall, dy: Tensor) -> list[Any]:
    """The gradient rows added up at the positions that they were read from."""
    from treadle.ops.reductions.segments import unsorted_segment_sum
    from treadle.ops.shaping.creation import zeros_like
    from treadle.ops.shaping.reshaping import reshape_to, transpose

    params, indices = call.inputs
    axis, batch = call.attrs["axis"], call.attrs["batch_dims"]
    count = indices.ndim - batch
    size = params.dims[axis]
    outer, inner = range(batch, axis), range(axis + count, dy.ndim)
    # Batch axes, the axes of the indices, then those of what each index names.
    moved = transpose(dy, [*range(batch), *range(axis, axis + count), *outer, *inner])
    rest = moved.dims[indices.ndim :]
    rows = product(params.dims[:batch])
    flat_index = reshape_to(indices, (rows, product(indices.dims[batch:])))
    if batch:
        flat_index = flat_index + _row_offsets(rows, size, indices.dtype)
    flat = reshape_to(flat_index, (product(indices.dims),))
    updates = reshape_to(moved, (product(indices.dims), *rest))
    total = unsorted_segment_sum(updates, flat, rows * size)
    total = reshape_to(total, (*params.dims[:batch], size, *rest))
    back = [*range(batch), *range(batch + 1, axis + 1), batch, *range(axis + 1, params.ndim)]
    return [transpose(total, back) if params.ndim else zeros_like(params), None]


def _row_offsets(rows: Dim, size: Dim, dtype: Any) -> Tensor:
    from treadle.ops.shaping.creation import RANGE
    from treadle.ops.shaping.reshaping import reshape_to

    offsets = run(RANGE, start=0, delta=size, size=rows, dtype=dtype)
    return reshape_to(offsets, (rows, 1))


def _batches(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """The batches of what is gathered from are those of the positions."""
    count = attrs["batch_dims"]
    yield from zip(specs[0].dims[:count], specs[1].dims[:count], strict=True)


GATHER = register(
    Op(
        "gather",
        _infer_gather,
        _eager_gather,
        _grad_gather,
        Compute(_lower_gather, "gather"),
        tags=frozenset({"selects"}),
        refuses=Refusal.POSITION,
        sizes=_batches,
    )
)


def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
    batch_dims: int = 0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The parts of `params` at `indices` along `axis` (default: `batch_dims`).

    The first `batch_dims` axes of both are matched instead of combined.

    Raises:
        InvalidArgumentError: an index outside the axis.
    """
    x, i = convert_to_tensor(params), convert_to_tensor(indices)
    batch = normalize_axis(batch_dims, i.ndim + 1) if batch_dims < 0 else batch_dims
    position = batch if axis is None else normalize_axis(axis, x.ndim)
    if not batch <= position < max(x.ndim, 1) or x.ndim == 0:
        raise errors.InvalidArgumentError(
            None, None,
            f"gather: axis {position} does not fit params of shape {x.shape} and batch_dims "
            f"{batch}{at(user_origin())}",
        )  # fmt: skip
    return run(GATHER, x, i, axis=position, batch_dims=batch)  # type: ignore[no-any-return]


# -- index: x[i] with a scalar tensor i ----------------------------------------------------------


def _infer_index(x: TensorSpec, i: TensorSpec, *, axis: int) -> TensorSpec:
    require_kinds("iu", i)
    return TensorSpec((*x.dims[:axis], *x.dims[axis + 1 :]), x.dtype)


def _eager_index(x: NDArray, i: NDArray, *, axis: int) -> NDArray:
    check_positions(np.atleast_1d(i), x.shape[axis], -x.shape[axis])
    return x[(slice(None),) * axis + (int(i),)]


def _lower_index(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    position = cast(call.inputs[1](()), dtypes.int64)
    if not call.specs[1].dtype.is_unsigned:
        wrapped = apply("add", position, dim_expr(call.specs[0].dims[axis]))
        position = apply("select", apply("lt", position, const(0, dtypes.int64)), wrapped, position)
    return call.inputs[0]([*index[:axis], position, *index[axis:]])


def _grad_index(call: OpCall, dy: Tensor) -> list[Any]:
    x, i = call.inputs
    return [run(INDEX_GRAD, dy, i, axis=call.attrs["axis"], size=x.dims[call.attrs["axis"]]), None]


INDEX = register(
    Op(
        "index", _infer_index, _eager_index, _grad_index, Compute(_lower_index, "gather"),
        tags=frozenset({"selects", "numpy_view"}), refuses=Refusal.WRAPPING_POSITION,
        part=Part(PartKind.INDEX, PartUse.READ),
    )
)  # fmt: skip


def _eager_index_grad(dy: NDArray, i: NDArray, *, axis: int, size: int) -> NDArray:
    result = np.zeros((*dy.shape[:axis], size, *dy.shape[axis:]), dy.dtype)
    result[(slice(None),) * axis + (int(i),)] = dy
    return result


def _lower_index_grad(call: LowerCall, index: Sequence[Index]) -> Expr:
    from treadle.ops.lowering import index_expr

    axis = call.attrs["axis"]
    place = cast(call.inputs[1](()), dtypes.int64)
    wrapped = apply("add", place, dim_expr(call.attrs["size"]))
    place = apply("select", apply("lt", place, const(0, dtypes.int64)), wrapped, place)
    here = apply("eq", index_expr(index[axis]), place)
    value = call.inputs[0]([*index[:axis], *index[axis + 1 :]])
    return apply("select", here, value, const(0, value.dtype))


def _grad_index_grad(call: OpCall, dz: Tensor) -> list[Any]:
    return [run(INDEX, dz, call.inputs[1], axis=call.attrs["axis"]), None]


INDEX_GRAD = register(
    Op(
        "index_grad",
        lambda dy, i, *, axis, size: TensorSpec((*dy.dims[:axis], size, *dy.dims[axis:]), dy.dtype),
        _eager_index_grad,
        _grad_index_grad,
        Compute(_lower_index_grad, "gather"),
        part=Part(PartKind.INDEX, PartUse.PLACE, 0),
    )
)


# -- gather_nd, scatter --------------------------------------------------------------------------


def _split_nd(indices: NDArray, shape: Sequence[int]) -> tuple[NDArray, ...]:
    if indices.dtype.kind not in "iu":
        raise TypeError("positions must be integers")
    depth = indices.shape[-1]
    for axis in range(depth):
        check_positions(indices[..., axis], shape[axis])
    return tuple(indices[..., axis] for axis in range(depth))


def _eager_gather_nd(params: NDArray, indices: NDArray) -> NDArray:
    if not indices.shape[-1]:  # every row of positions names all of it
        return np.broadcast_to(params, (*indices.shape[:-1], *params.shape))
    return np.asarray(params[_split_nd(indices, params.shape)])


def _infer_gather_nd(params: TensorSpec, indices: TensorSpec) -> TensorSpec:
    require_kinds("iu", indices)
    depth = indices.dims[-1] if indices.dims else None
    if not isinstance(depth, int) or depth > params.rank:
        raise errors.InvalidArgumentError(
            None, None, f"the last dim of the indices must be at most {params.rank}"
        )
    return TensorSpec((*indices.dims[:-1], *params.dims[depth:]), params.dtype)


def _lower_gather_nd(call: LowerCall, index: Sequence[Index]) -> Expr:
    from treadle.kernel.ir import as_index

    lead = call.specs[1].rank - 1
    depth = call.specs[1].dims[-1]
    assert isinstance(depth, int)
    places = [
        cast(call.inputs[1]([*index[:lead], as_index(k)]), dtypes.int64) for k in range(depth)
    ]
    return call.inputs[0]([*places, *index[lead:]])


def _grad_gather_nd(call: OpCall, dy: Tensor) -> list[Any]:
    params, indices = call.inputs
    return [run(SCATTER_ND, indices, dy, shape=params.dims), None]


GATHER_ND = register(
    Op(
        "gather_nd", _infer_gather_nd, _eager_gather_nd, _grad_gather_nd,
        Compute(_lower_gather_nd, "gather"), refuses=Refusal.ROW_OF_POSITIONS,
        part=Part(PartKind.ROWS, PartUse.READ),
    )
)  # fmt: skip


def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """The parts of `params` at positions given by the last axis of `indices`."""
    x, i = convert_to_tensor(params), convert_to_tensor(indices)
    if batch_dims:
        return _batch_gather_nd(x, i, batch_dims)
    return run(GATHER_ND, x, i)  # type: ignore[no-any-return]


def _batch_gather_nd(x: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """Batch positions become the first columns of the indices."""
    from treadle.ops.broadcasting import broadcast_dims
    from treadle.ops.shaping.creation import RANGE
    from treadle.ops.shaping.joining import concat
    from treadle.ops.shaping.reshaping import reshape_to

    lead = (*indices.dims[:-1], 1)
    columns = []
    for axis in range(batch_dims):
        steps = run(RANGE, start=0, delta=1, size=x.dims[axis], dtype=indices.dtype)
        shape = tuple(x.dims[axis] if i == axis else 1 for i in range(len(lead)))
        columns.append(broadcast_dims(reshape_to(steps, shape), lead))
    return run(GATHER_ND, x, concat([*columns, indices], -1))  # type: ignore[no-any-return]


def _eager_scatter_nd(indices: NDArray, updates: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    result = np.zeros(shape, updates.dtype)
    _fit_updates(indices, updates, shape)
    np.add.at(*_parts_at(result, indices), updates)
    return result


def _parts_at(array: NDArray, indices: NDArray) -> tuple[NDArray, tuple[NDArray, ...]]:
    """A view of an array and the index of it that gives the parts at some positions. Positions
    without numbers are all that of the whole array."""
    if indices.shape[-1] == 0:
        return array[None], (np.zeros(indices.shape[:-1], np.intp),)
    return array, _split_nd(indices, array.shape)


def _fit_updates(indices: NDArray, updates: NDArray, shape: Sequence[int]) -> None:
    """Raise where NumPy would broadcast the updates."""
    wanted = (*indices.shape[:-1], *shape[indices.shape[-1] :])
    if updates.shape != wanted or indices.shape[-1] > len(shape):
        raise errors.InvalidArgumentError(
            None, None, f"the updates have shape {updates.shape}; {wanted} is needed"
        )


def _infer_scatter_nd(
    indices: TensorSpec, updates: TensorSpec, *, shape: tuple[Dim, ...]
) -> TensorSpec:
    return _infer_update(TensorSpec(shape, updates.dtype), indices, updates)


def _scattered(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """There is an update for every position, of the dims of the part that it replaces."""
    *_, positions, updates = (s.dims for s in specs)
    target, depth = outs[0].dims, positions[-1]
    if isinstance(depth, int):
        yield from zip(updates, (*positions[:-1], *target[depth:]), strict=True)


SCATTER_ND = register(
    Op(
        "scatter_nd",
        _infer_scatter_nd,
        _eager_scatter_nd,
        lambda call, dz: [None, gather_nd(dz, call.inputs[0])],
        ProgramLoops(LoopRoutine.SCATTER, bools=False),
        sizes=_scattered,
        part=Part(PartKind.ROWS, PartUse.PLACE, 1),
    )
)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape` with `updates` added at `indices`."""
    from treadle.ops.dims import sizes_of

    dims = sizes_of(shape, "scatter_nd: a dim")
    return run(SCATTER_ND, convert_to_tensor(indices), convert_to_tensor(updates), shape=dims)  # type: ignore[no-any-return]


def _infer_update(x: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    require_kinds("iu", indices)
    if x.dtype is not updates.dtype:
        raise TypeError(f"the tensor is {x.dtype.name} and the updates {updates.dtype.name}")
    expected = _infer_gather_nd(x, indices)
    if not expected.shape.is_compatible_with(updates.shape):
        raise errors.InvalidArgumentError(
            None, None, f"the updates have shape {updates.shape}; {expected.shape} is needed"
        )
    return x


def _eager_update(x: NDArray, indices: NDArray, updates: NDArray) -> NDArray:
    result = x.copy()
    _fit_updates(indices, updates, x.shape)
    parts, places = _parts_at(result, indices)
    parts[places] = updates
    return result


def _eager_scatter_add(x: NDArray, indices: NDArray, updates: NDArray) -> NDArray:
    result = x.copy()
    _fit_updates(indices, updates, x.shape)
    np.add.at(*_parts_at(result, indices), updates)
    return result


def _grad_update(call: OpCall, dz: Tensor) -> list[Any]:
    from treadle.ops.shaping.creation import zeros_like

    _, indices, updates = call.inputs
    kept = run(SCATTER_UPDATE, dz, indices, zeros_like(updates))
    return [kept, None, gather_nd(dz, indices)]


SCATTER_UPDATE = register(
    Op(
        "tensor_scatter_nd_update", _infer_update, _eager_update, _grad_update, sizes=_scattered,
        part=Part(PartKind.ROWS, PartUse.SET, 2),
    )
)  # fmt: skip
SCATTER_ADD = register(
    Op(
        "tensor_scatter_nd_add",
        _infer_update,
        _eager_scatter_add,
        lambda call, dz: [dz, None, gather_nd(dz, call.inputs[1])],
        sizes=_scattered,
        part=Part(PartKind.ROWS, PartUse.ADD, 2),
    )
)


def tensor_scatter_nd_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """`tensor` with the parts at `indices` replaced by `updates`."""
    x = convert_to_tensor(tensor)
    return run(SCATTER_UPDATE, x, convert_to_tensor(indices), convert_to_tensor(updates, x.dtype))  # type: ignore[no-any-return]


def tensor_scatter_nd_add(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` added to the parts at `indices`."""
    x = convert_to_tensor(tensor)
    return run(SCATTER_ADD, x, convert_to_tensor(indices), convert_to_tensor(updates, x.dtype))  # type: ignore[no-any-return]


def tensor_scatter_nd_sub(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` subtracted from the parts at `indices`."""
    x = convert_to_tensor(tensor)
    return tensor_scatter_nd_add(x, indices, -convert_to_tensor(updates, x.dtype))


# -- masks ---------------------------------------------------------------------------------------


def _select_call(specs: Sequence[TensorSpec], *_: Any) -> RowCall:
    x = specs[0]
    numbers: dict[str, Dim] = {"n": x.dims[0], "inner": product(x.dims[1:])}
    return RowCall(1, product(x.dims), numbers, {"K": _BY_SIZE[x.dtype.size]})


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
        Compaction("counting.select_true", _select_call, 1),
        tags=frozenset({"dynamic"}),
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
    call = _select_call(outputs)
    numbers: dict[str, Dim] = {**call.numbers, "given": inputs[0].dims[0]}
    return RowCall(1, call.work, numbers, call.names)


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
    """The parts of `tensor` where `mask` (over some of its axes, from `axis`) is true."""
    from treadle.ops.elementwise.selection import where
    from treadle.ops.shaping.reshaping import reshape_to, with_dims

    x, chosen = convert_to_tensor(tensor), convert_to_tensor(mask)
    start = normalize_axis(axis or 0, max(x.ndim, 1))
    end = start + chosen.ndim
    if not chosen.dtype.is_bool or chosen.ndim == 0:
        raise TypeError(
            f"boolean_mask: the mask must be a bool tensor with at least one axis, got "
            f"{chosen.dtype.name} of shape {chosen.shape}{at(user_origin())}"
        )
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
    return gather(flat, positions, axis=start)
