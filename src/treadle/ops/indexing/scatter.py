"""Parts at positions given by rows of numbers: read, replaced, added to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import Dim, SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, as_index, cast
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import sizes_of
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.bad_positions import inside, is_ignored, kept
from treadle.ops.indexing.gather import rows_of
from treadle.ops.indexing.index import check_positions
from treadle.ops.lowering import (
    Compute,
    LoopRoutine,
    LowerCall,
    ProgramLoops,
)
from treadle.ops.op_makers import inferred, require_kinds
from treadle.ops.properties import Part, PartKind, PartUse, Refusal
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import zeros, zeros_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import Pairs

_MOST_POSITIONS = 31  # along which NumPy adds at positions


def _split_nd(indices: NDArray, shape: Sequence[int]) -> tuple[NDArray, ...]:
    if indices.dtype.kind not in "iu":
        raise TypeError("positions must be integers")
    depth = indices.shape[-1]
    for axis in range(depth):
        check_positions(indices[..., axis], shape[axis])
    return tuple(indices[..., axis] for axis in range(depth))


def _eager_gather_nd(params: NDArray, indices: NDArray) -> NDArray:
    if indices.dtype.kind not in "iu":
        raise TypeError("positions must be integers")
    if not indices.shape[-1]:  # every row of positions names all of it
        return np.broadcast_to(params, (*indices.shape[:-1], *params.shape))
    return np.asarray(params[_split_nd(indices, params.shape)])


def _infer_gather_nd(params: TensorSpec, indices: TensorSpec) -> TensorSpec:
    require_kinds("iu", indices)
    depth = indices.dims[-1] if indices.dims else None
    if isinstance(depth, SymbolicDim):
        raise NotYetKnown(
            "how many axes the indices are for, their last dim, is not known while tracing; give "
            "them a known one (td.ensure_shape)", depth,
        )  # fmt: skip
    if depth is None or depth > params.rank:
        raise errors.InvalidArgumentError(
            None, None, f"the last dim of the indices must be at most {params.rank}"
        )
    return TensorSpec((*indices.dims[:-1], *params.dims[depth:]), params.dtype)


def _lower_gather_nd(call: LowerCall, index: Sequence[Index]) -> Expr:
    lead = call.specs[1].rank - 1
    depth = call.specs[1].dims[-1]
    assert isinstance(depth, int)
    places = [
        cast(call.inputs[1]([*index[:lead], as_index(k)]), dtypes.int64) for k in range(depth)
    ]
    return call.inputs[0]([*places, *index[lead:]])


def _grad_gather_nd(call: OpCall, dy: Tensor) -> list[Any]:
    params, indices = call.inputs
    if indices.ndim == 2 and indices.dims[1] == 1:
        return [rows_of(params, indices, dy), None]
    return [run(SCATTER_ND, indices, dy, shape=params.dims), None]


GATHER_ND = register(
    Op(
        "gather_nd", _infer_gather_nd, _eager_gather_nd, _grad_gather_nd,
        Compute(_lower_gather_nd, "gather"), refuses=Refusal.ROW_OF_POSITIONS,
        part=Part(PartKind.ROWS, PartUse.READ), tags=frozenset({"any_elements"}),
    )
)  # fmt: skip


def gather_nd(
    params: Any, indices: Any, batch_dims: int = 0, name: str | None = None,
    bad_indices_policy: str = "",
) -> Tensor:  # fmt: skip
    """The parts of `params` at positions given by the last axis of `indices`.

    Args:
        bad_indices_policy: what becomes of positions outside; "IGNORE" gives zeros for them,
            "ERROR" and "DEFAULT" raise InvalidArgumentError.
    """
    x, i = convert_to_tensor(params), convert_to_tensor(indices)
    if batch_dims:
        i = batch_positions(i, batch_dims)
    if not is_ignored(bad_indices_policy):
        return run(GATHER_ND, x, i)  # type: ignore[no-any-return]
    there = reshape_to(inside(i, x.dims), (*i.dims[:-1], 1))
    found: Tensor = run(GATHER_ND, x, where(there, i, zeros_like(i)))
    each = (*i.dims[:-1], *[1] * (found.ndim - i.ndim + 1))
    return where(reshape_to(there, each), found, zeros_like(found))


def batch_positions(indices: Tensor, batch_dims: int) -> Tensor:
    """Rows of positions with those of their batches as first columns.

    Args:
        indices: rows of positions inside a batch.
        batch_dims: how many of their first axes are batches.
    """
    lead = (*indices.dims[:-1], 1)
    columns = []
    for axis in range(batch_dims):
        steps = run(RANGE, start=0, delta=1, size=lead[axis], dtype=indices.dtype)
        shape = tuple(d if i == axis else 1 for i, d in enumerate(lead))
        columns.append(broadcast_dims(reshape_to(steps, shape), lead))
    return concat([*columns, indices], -1)


def _eager_scatter_nd(indices: NDArray, updates: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    result = np.zeros(shape, updates.dtype)
    fit_updates(indices, updates, shape)
    add_at(result, indices, updates)
    return result


def add_at(array: NDArray, indices: NDArray, updates: NDArray) -> None:
    """Add to parts of an array in place. NumPy's `at` takes 32 axes at most: positions and parts
    have one axis each."""
    parts, places = parts_at(array, indices)
    if len(places) > _MOST_POSITIONS:
        text = f"a position of {len(places)} numbers has more than {_MOST_POSITIONS}"
        raise errors.InvalidArgumentError(None, None, text)
    lead = parts.shape[: len(places)]
    flat = parts.reshape(*lead, math.prod(parts.shape[len(lead) :]))
    count = math.prod(indices.shape[:-1])
    np.add.at(flat, tuple(p.reshape(-1) for p in places), updates.reshape(count, flat.shape[-1]))


def parts_at(array: NDArray, indices: NDArray) -> tuple[NDArray, tuple[NDArray, ...]]:
    """A view of an array and the index of it that gives the parts at some positions. Positions
    without numbers are all that of the whole array."""
    if indices.shape[-1] == 0:
        return array[None], (np.zeros(indices.shape[:-1], np.intp),)
    return array, _split_nd(indices, array.shape)


def fit_updates(indices: NDArray, updates: NDArray, shape: Sequence[int]) -> None:
    """Raise where NumPy would broadcast the updates."""
    wanted = (*indices.shape[:-1], *shape[indices.shape[-1] :])
    if updates.shape != wanted or indices.shape[-1] > len(shape):
        raise errors.InvalidArgumentError(
            None, None, f"the updates have shape {updates.shape}; {wanted} is needed"
        )


def _infer_scatter_nd(
    indices: TensorSpec, updates: TensorSpec, *, shape: tuple[Dim, ...]
) -> TensorSpec:
    return infer_update(TensorSpec(shape, updates.dtype), indices, updates)


def scattered(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """There is an update for every position, of the dims of the part that it replaces."""
    *_, positions, updates = (s.dims for s in specs)
    target, depth = outs[0].dims, positions[-1]
    if isinstance(depth, int):
        yield from zip(updates, (*positions[:-1], *target[depth:]), strict=True)


SCATTER_ND = register(
    Op(
        "scatter_nd",
        _infer_scatter_nd,
        inferred(_infer_scatter_nd, _eager_scatter_nd),
        lambda call, dz: [None, gather_nd(dz, call.inputs[0])],
        ProgramLoops(LoopRoutine.SCATTER, bools=False),
        sizes=scattered,
        part=Part(PartKind.ROWS, PartUse.PLACE, 1),
    )
)


def _eager_appended(x: NDArray, indices: NDArray, updates: NDArray) -> NDArray:
    result = x.copy()
    fit_updates(indices, updates, x.shape)
    parts, places = parts_at(result, indices)
    count, lead = math.prod(indices.shape[:-1]), parts.shape[: len(places)]
    flat = parts.reshape(*lead, math.prod(parts.shape[len(lead) :]))
    rows = updates.reshape(count, flat.shape[-1])
    for place, row in zip(zip(*(p.reshape(-1) for p in places), strict=True), rows, strict=True):
        flat[place] += row
    return result


def _infer_appended(x: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    require_kinds("s", x)
    return infer_update(x, indices, updates)


# Strings are put behind those at the positions, in the order of the updates.
SCATTER_APPEND = register(
    Op(
        "scatter_append", _infer_appended, inferred(_infer_appended, _eager_appended),
        sizes=scattered, tags=frozenset({"strings"}),
    )
)  # fmt: skip


def scatter_nd(
    indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """Zeros of `shape` with `updates` added at `indices`. Strings at one position are joined.

    Args:
        bad_indices_policy: what becomes of positions outside; "IGNORE" leaves them out, "ERROR" and
            "DEFAULT" raise InvalidArgumentError.
    """
    dims = sizes_of(shape, "scatter_nd: a dim")
    i, new = kept(convert_to_tensor(indices), convert_to_tensor(updates), dims, bad_indices_policy)
    if new.dtype is dtypes.string:
        return run(SCATTER_APPEND, zeros(dims, dtypes.string), i, new)  # type: ignore[no-any-return]
    return run(SCATTER_ND, i, new, shape=dims)  # type: ignore[no-any-return]


def infer_update(x: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    require_kinds("iu", indices)
    if x.dtype is not updates.dtype:
        raise TypeError(f"the tensor is {x.dtype.name} and the updates {updates.dtype.name}")
    expected = _infer_gather_nd(x, indices)
    if not expected.shape.is_compatible_with(updates.shape):
        raise errors.InvalidArgumentError(
            None, None, f"the updates have shape {updates.shape}; {expected.shape} is needed"
        )
    return x


def _infer_added(x: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    require_kinds("fciu", x)
    return infer_update(x, indices, updates)


def _eager_update(x: NDArray, indices: NDArray, updates: NDArray) -> NDArray:
    result = x.copy()
    fit_updates(indices, updates, x.shape)
    parts, places = parts_at(result, indices)
    parts[places] = updates
    return result


def _eager_scatter_add(x: NDArray, indices: NDArray, updates: NDArray) -> NDArray:
    result = x.copy()
    fit_updates(indices, updates, x.shape)
    add_at(result, indices, updates)
    return result


def _grad_update(call: OpCall, dz: Tensor) -> list[Any]:
    _, indices, updates = call.inputs
    kept = run(SCATTER_UPDATE, dz, indices, zeros_like(updates))
    return [kept, None, gather_nd(dz, indices)]


SCATTER_UPDATE = register(
    Op(
        "tensor_scatter_nd_update", infer_update, inferred(infer_update, _eager_update),
        _grad_update, sizes=scattered,
        part=Part(PartKind.ROWS, PartUse.SET, 2), tags=frozenset({"any_elements"}),
    )
)  # fmt: skip
SCATTER_ADD = register(
    Op(
        "tensor_scatter_nd_add",
        _infer_added,
        inferred(_infer_added, _eager_scatter_add),
        lambda call, dz: [dz, None, gather_nd(dz, call.inputs[1])],
        sizes=scattered,
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
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """`tensor` with `updates` added to the parts at `indices`.

    Args:
        bad_indices_policy: what becomes of positions outside; "IGNORE" leaves them out, "ERROR" and
            "DEFAULT" raise InvalidArgumentError.
    """
    x = convert_to_tensor(tensor)
    new = convert_to_tensor(updates, x.dtype)
    return run(SCATTER_ADD, x, *kept(convert_to_tensor(indices), new, x.dims, bad_indices_policy))  # type: ignore[no-any-return]


def tensor_scatter_nd_sub(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """`tensor` with `updates` subtracted from the parts at `indices`, as `tensor_scatter_nd_add`
    adds them."""
    x = convert_to_tensor(tensor)
    new = -convert_to_tensor(updates, x.dtype)
    return tensor_scatter_nd_add(x, indices, new, bad_indices_policy)
