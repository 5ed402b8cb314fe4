"""``x[key] = value`` as a function: a new tensor with one part replaced, as NumPy would.

A key is followed inwards, one view after the other; the value is then put back outwards. Parts
with bounds known while tracing are one select per element, which fuses with what is around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Affine, Expr, Index, apply, cast, const
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.indexing.assigned import as_element, fit
from treadle.ops.indexing.basic import (
    DYNAMIC_SLICE,
    _Cut,
    _one_axis,
    _size_of,
    bounds_of,
    expand,
    is_array,
    part_key,
)
from treadle.ops.indexing.index import INDEX, check_positions
from treadle.ops.indexing.updates_by_position import set_at_arrays
from treadle.ops.lowering import Compute, LowerCall, add_index, dim_expr, index_expr, scale_index
from treadle.ops.properties import Part, PartKind, PartUse, Refusal
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import zeros_like
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.shaping.slicing import STRIDED_SLICE, both, in_range, python_slices, slice_known
from treadle.ops.sizes import Pairs, slice_sizes

Restore = Callable[[Tensor], Tensor]


def set_item(x: Any, key: Any, value: Any) -> Tensor:
    """`x` with ``x[key]`` replaced by `value`, which broadcasts to the part and takes x's dtype.

    Args:
        key: as in NumPy: ints, slices, None, Ellipsis, scalar integer tensors, a bool mask or
            arrays of positions (those with ``:`` at most).

    Raises:
        InvalidArgumentError: a position out of range, or a value that does not broadcast.
        TypeError: a key or value of an unsuitable type.
    """
    tensor = convert_to_tensor(x)
    items = list(key) if isinstance(key, tuple) else [key]
    if any(is_array(i) for i in items):
        basic, inner = _part_and_positions(tensor, items, value)
        if basic is None:
            return set_at_arrays(tensor, inner, value)
        return _set_part(
            tensor, expand(basic, tensor), key, lambda part: set_at_arrays(part, inner, value)
        )
    return _set_part(
        tensor, expand(items, tensor), key,
        lambda part: fit(as_element(value, tensor.dtype), part.dims),
    )  # fmt: skip


def _part_and_positions(
    x: Tensor, items: list[Any], value: Any
) -> tuple[list[Any] | None, list[Any]]:
    """A key with arrays as the key of a part, and that of the arrays in this part: the elements
    ``x[mask, j, 1:]`` are ``[mask, :]`` of ``x[:, j, 1:]``. No part where the arrays and numbers
    are all positions that belong together, or where the part would order its axes otherwise."""
    arrays = [is_array(i) for i in items]
    numbers = [not a and _is_number(i) for i, a in zip(items, arrays, strict=True)]
    has_mask = any(a and _rank_of(i)[1] for i, a in zip(items, arrays, strict=True))
    cuts = [i for i in items if isinstance(i, slice) and i != slice(None)]
    chosen = [k for k, (a, n) in enumerate(zip(arrays, numbers, strict=True)) if a or n]
    apart = chosen[-1] - chosen[0] >= len(chosen)
    if not cuts and not (any(numbers) and (has_mask or apart)):
        return None, items
    if any(i is None for i in items) or (apart and _rank_of(value)[0]):
        return None, items
    basic: list[Any] = []
    inner: list[Any] = []
    for item, array, number in zip(items, arrays, numbers, strict=True):
        rank, is_mask = _rank_of(item) if array else (1, False)
        basic += [slice(None)] * (rank if is_mask else 1) if array else [item]
        if not number:
            inner.append(slice(None) if isinstance(item, slice) else item)
    return basic, inner


def _is_number(item: Any) -> bool:
    """Whether an entry of a key is one position."""
    return isinstance(item, int | np.integer) or (has_dtype(item) and item.dtype.is_integer)


def _rank_of(value: Any) -> tuple[int, bool]:
    """The rank of an array or tensor, and whether it is a mask."""
    if has_dtype(value):
        return value.shape.rank, value.dtype.is_bool
    found = np.asarray(value)
    return found.ndim, found.dtype.kind == "b"


def _set_part(
    x: Tensor, items: list[Any], key: Any, changed: Callable[[Tensor], Tensor]
) -> Tensor:
    """`x` with a part replaced by what `changed` makes of it."""
    cuts: list[_Cut] = []
    actions: list[tuple[Any, ...]] = []
    for item in items:
        if item is None:
            actions.append(("new",))
            continue
        dim = x.dims[len(cuts)]
        cut, action = _one_axis(item, x, len(cuts), key)
        if action == ("drop",) and isinstance(dim, SymbolicDim) and isinstance(item, int):
            # The program checks the position when it knows the size.
            cut, action = _Cut(0, dim, 1), ("index", convert_to_tensor(np.int64(item)))
        cuts.append(cut)
        actions.append(action)
    part, restores = _follow(_cut_out(x, cuts), actions)
    updated = changed(part)
    for restore in reversed(restores):
        updated = restore(updated)
    return _put_back(x, updated, cuts)


def _cut_out(x: Tensor, cuts: Sequence[_Cut]) -> Tensor:
    return slice_known(x, [c.begin for c in cuts], [c.size for c in cuts], [c.stride for c in cuts])


def _put_back(x: Tensor, part: Tensor, cuts: Sequence[_Cut]) -> Tensor:
    """The inverse of `_cut_out`."""
    begin, strides = tuple(c.begin for c in cuts), tuple(c.stride for c in cuts)
    whole = all(c == _Cut(0, d, 1) for c, d in zip(cuts, x.dims, strict=True))
    return part if whole else run(SLICE_UPDATE, x, part, begin=begin, strides=strides)


def _follow(y: Tensor, actions: Sequence[tuple[Any, ...]]) -> tuple[Tensor, list[Restore]]:
    """The part that is left after each action, and how to undo each of them."""
    restores: list[Restore] = []
    axis = 0
    for action in actions:
        before = y
        match action:
            case ("index", position):
                y = run(INDEX, y, position, axis=axis)
                restores.append(_undo_index(before, position, axis))
            case ("slice", item, *size):
                y, restore = _open_slice(y, axis, item, *size)
                restores.append(restore)
                axis += 1
            case ("drop",):
                y = reshape_to(y, (*y.dims[:axis], *y.dims[axis + 1 :]))
                restores.append(_undo_reshape(before))
            case ("new",):
                y = reshape_to(y, (*y.dims[:axis], 1, *y.dims[axis:]))
                restores.append(_undo_reshape(before))
                axis += 1
            case _:
                axis += 1
    return y, restores


def _undo_reshape(before: Tensor) -> Restore:
    return lambda part: reshape_to(part, before.dims)


def _undo_index(before: Tensor, position: Tensor, axis: int) -> Restore:
    return lambda part: run(INDEX_UPDATE, before, position, part, axis=axis)


def _open_slice(
    y: Tensor, axis: int, item: slice, size: int | None = None
) -> tuple[Tensor, Restore]:
    """A slice with bounds that only a run can tell."""
    bounds, given = bounds_of(item)
    attrs = {"axis": axis, "given": given}
    return (
        run(DYNAMIC_SLICE, y, *bounds, **attrs, **_size_of(size)),
        lambda part: run(DYNAMIC_SLICE_UPDATE, y, *bounds, part, **attrs),
    )


# -- the ops -------------------------------------------------------------------------------------


def _infer_slice_update(
    x: TensorSpec, part: TensorSpec, *, begin: tuple[Dim, ...], strides: tuple[int, ...]
) -> TensorSpec:
    if x.dtype is not part.dtype or x.rank != part.rank:
        raise TypeError(f"a {part.dtype.name} part of rank {part.rank} does not fit")
    return x


def _eager_slice_update(
    x: NDArray, part: NDArray, *, begin: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray:
    result = x.copy()
    result[python_slices(begin, part.shape, strides)] = part
    return result


def _lower_slice_update(call: LowerCall, index: Sequence[Index]) -> Expr:
    """The part's element inside the range, x's own elsewhere."""
    source: list[Index] = []
    inside: Expr | None = None
    parts = zip(
        index, call.attrs["begin"], call.attrs["strides"], call.specs[1].dims, call.out.dims,
        strict=True,
    )  # fmt: skip
    for i, begin, step, count, extent in parts:
        if begin == 0 and step == 1 and count == extent:
            source.append(i)
            continue
        offset = add_index(i, -begin) if step > 0 else add_index(scale_index(i, -1), begin)
        if abs(step) != 1:
            place, by = index_expr(offset), const(abs(step), dtypes.int64)
            exact = apply("eq", apply("mod", place, by), const(0, dtypes.int64))
            inside = both(inside, exact)
            offset = apply("floordiv", place, by)
        inside = both(inside, in_range(offset, count))
        source.append(Affine((), 0) if count == 1 else offset)
    if inside is None:
        return call.inputs[1](source)
    return apply("select", inside, call.inputs[1](source, valid=inside), call.inputs[0](index))


def _grad_slice_update(call: OpCall, dz: Tensor) -> list[Any]:
    part = call.inputs[1]
    kept = run(SLICE_UPDATE, dz, zeros_like(part), **call.attrs)
    return [kept, run(STRIDED_SLICE, dz, size=part.dims, **call.attrs)]


def _slice_fits(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    parts = zip(attrs["begin"], specs[1].dims, attrs["strides"], specs[0].dims, strict=True)
    for part in parts:
        yield from slice_sizes(*part)


# Element begin + i * stride of the result is element i of the part, the others are x's.
SLICE_UPDATE = register(
    Op(
        "slice_update", _infer_slice_update, _eager_slice_update, _grad_slice_update,
        Compute(_lower_slice_update, "view"), sizes=_slice_fits,
        part=Part(PartKind.SLICE, PartUse.SET, 1), tags=frozenset({"any_elements"}),
    )
)  # fmt: skip


def _eager_index_update(x: NDArray, i: NDArray, part: NDArray, *, axis: int) -> NDArray:
    check_positions(np.atleast_1d(i), x.shape[axis], -x.shape[axis])
    result = x.copy()
    result[(slice(None),) * axis + (int(i),)] = part
    return result


def _lower_index_update(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    place = cast(call.inputs[1](()), dtypes.int64)
    if not call.specs[1].dtype.is_unsigned:
        wrapped = apply("add", place, dim_expr(call.out.dims[axis]))
        place = apply("select", apply("lt", place, const(0, dtypes.int64)), wrapped, place)
    here = apply("eq", index_expr(index[axis]), place)
    part = call.inputs[2]([*index[:axis], *index[axis + 1 :]])
    return apply("select", here, part, call.inputs[0](index))


def _grad_index_update(call: OpCall, dz: Tensor) -> list[Any]:
    _, i, part = call.inputs
    kept = run(INDEX_UPDATE, dz, i, zeros_like(part), **call.attrs)
    return [kept, None, run(INDEX, dz, i, **call.attrs)]


def _part_fits(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """A part has the dims of the array without the axis of the position."""
    (x, _, part), axis = specs, attrs["axis"]
    yield from zip((*x.dims[:axis], *x.dims[axis + 1 :]), part.dims, strict=True)


INDEX_UPDATE = register(
    Op(
        "index_update", lambda x, i, part, *, axis: x, _eager_index_update, _grad_index_update,
        Compute(_lower_index_update, "gather"), sizes=_part_fits,
        part=Part(PartKind.INDEX, PartUse.SET, 2), refuses=Refusal.WRAPPING_POSITION,
        tags=frozenset({"any_elements"}),
    )
)  # fmt: skip


def _eager_dynamic_update(
    x: NDArray, *operands: NDArray, axis: int, given: tuple[bool, ...]
) -> NDArray:
    *bounds, part = operands
    result = x.copy()
    result[part_key(bounds, axis, given)] = part
    return result


def _grad_dynamic_update(call: OpCall, dz: Tensor) -> list[Any]:
    _, *bounds, part = call.inputs
    kept = run(DYNAMIC_SLICE_UPDATE, dz, *bounds, zeros_like(part), **call.attrs)
    size = _size_of(part.dims[call.attrs["axis"]])
    none = [None for _ in bounds]
    return [kept, *none, run(DYNAMIC_SLICE, dz, *bounds, **call.attrs, **size)]


def _other_dims_fit(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """A part has the dims of the array but for the axis that is sliced."""
    x, part, axis = specs[0], specs[-1], attrs["axis"]
    pairs = zip(x.dims, part.dims, strict=True)
    yield from (pair for i, pair in enumerate(pairs) if i != axis)


DYNAMIC_SLICE_UPDATE = register(
    Op(
        "dynamic_slice_update", lambda x, *_, axis, given: x,
        _eager_dynamic_update, _grad_dynamic_update, sizes=_other_dims_fit,
        part=Part(PartKind.DYNAMIC_SLICE, PartUse.SET, -1), tags=frozenset({"any_elements"}),
    )
)  # fmt: skip


def refuse_assignment(self: Any, key: Any, value: Any) -> None:
    """``Tensor.__setitem__``: tensors do not change."""
    name = type(self).__name__
    if name.endswith("Variable"):
        raise TypeError(
            f"{name!r} object does not support item assignment: take a tensor `x = v.value()`, "
            "assign `x[key] = value` in a @td.function, and store it with `v.assign(x)`"
            f"{at(user_origin())}"
        )
    raise TypeError(
        f"{name!r} object does not support item assignment: a tensor never changes. Inside a "
        "@td.function that AutoGraph converts, `x[key] = value` on a variable of the function "
        "makes a new tensor; not so on one of an enclosing function without `nonlocal`, nor in a "
        "branch or loop of a variable that a nested function or an except block uses. Code that is "
        "not converted, also under td.config.run_functions_eagerly, uses "
        "td.tensor_scatter_nd_update or td.where, or x.numpy() for an array to write to"
        f"{at(user_origin())}"
    )


def refuse_deletion(self: Any, key: Any) -> None:
    """``Tensor.__delitem__``: tensors do not change."""
    raise TypeError(
        f"{type(self).__name__!r} object does not support item deletion: a tensor never changes. "
        f"Join the parts to keep, td.concat([x[:i], x[i + 1:]], 0){at(user_origin())}"
    )
