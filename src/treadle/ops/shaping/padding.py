"""Padding: elements added around a tensor, and its mirrored border."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.inequalities import is_at_least
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, apply, const
from treadle.ops.conversion import convert_to_tensor, has_dtype, to_array
from treadle.ops.dims import elements_of, size_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.lowering import (
    Compute,
    LowerCall,
    add_index,
    dim_expr,
    index_expr,
)  # fmt: skip
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import fill
from treadle.ops.shaping.permuting import reverse
from treadle.ops.shaping.reshaping import with_dims
from treadle.ops.shaping.slicing import both, in_range, slice_known
from treadle.ops.sizes import Pairs, at_most

_MODES = ("constant", "reflect", "symmetric")
Paddings = tuple[tuple[Dim, Dim], ...]


def _infer_pad(x: TensorSpec, *, paddings: Paddings, mode: str, value: float) -> TensorSpec:
    dims = []
    for dim, widths in zip(x.dims, paddings, strict=True):
        if any(isinstance(p, int) and p < 0 for p in widths):
            raise errors.InvalidArgumentError(None, None, f"paddings {widths} are negative")
        for small, large in _padding_sizes(dim, widths, mode):
            if isinstance(small, int) and isinstance(large, int) and small != large:
                raise errors.InvalidArgumentError(
                    None, None, f"paddings {widths} exceed {large} for a dim of {dim}"
                )
        dims.append(dim + widths[0] + widths[1])
    return TensorSpec(dims, x.dtype)


def _padding_sizes(dim: Dim, widths: tuple[Dim, Dim], mode: str) -> Pairs:
    """No padding is negative, and a mirror shows at most what there is."""
    for width in widths:
        if not is_at_least(width, 0):
            yield at_most(0, width)
        if mode != "constant" and width != 0:
            yield at_most(width, dim - (mode == "reflect"))


def _padded(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    for dim, widths in zip(specs[0].dims, attrs["paddings"], strict=True):
        yield from _padding_sizes(dim, widths, attrs["mode"])


def _eager_pad(x: NDArray, *, paddings: Any, mode: str, value: float | bytes) -> NDArray:
    if not paddings:  # NumPy takes an empty list for floats
        return x.copy()
    if mode == "constant":
        if isinstance(value, bytes):
            sides = list(zip(x.shape, paddings, strict=True))
            shape = [before + dim + after for dim, (before, after) in sides]
            padded = np.full(shape, value, object)
            padded[tuple(slice(before, before + dim) for dim, (before, _) in sides)] = x
            return padded
        return np.pad(x, paddings, constant_values=x.dtype.type(value))
    for dim, widths in zip(x.shape, paddings, strict=True):
        if max(widths) > max(dim - (mode == "reflect"), 0):
            raise errors.InvalidArgumentError(None, None, f"paddings {widths} exceed the dim {dim}")
    return np.pad(x, paddings, mode=mode)  # type: ignore[call-overload, no-any-return]


def _lower_pad(call: LowerCall, index: Sequence[Index]) -> Expr:
    mode, source = call.attrs["mode"], []
    valid: Expr | None = None
    parts = zip(index, call.attrs["paddings"], call.specs[0].dims, strict=True)
    for i, (before, after), dim in parts:
        place = add_index(i, -before)
        if before != 0 or after != 0:
            if mode == "constant":
                valid = both(valid, in_range(place, dim))
            else:
                place = _mirrored(place, dim, 0 if mode == "reflect" else 1)
        source.append(place)
    return call.inputs[0](source, valid=valid, fill=call.attrs["value"])


def _mirrored(place: Index, dim: Dim, repeat: int) -> Index:
    """Positions outside [0, dim) reflected at the edges; with `repeat` an edge appears twice."""
    at_place = index_expr(place)
    low = apply("max", at_place, apply("sub", const(-repeat, dtypes.int64), at_place))
    high = apply("sub", dim_expr(dim * 2 - 2 + repeat), low)
    return apply("min", low, high)


def _grad_pad(call: OpCall, dy: Tensor) -> list[Any]:
    x, paddings, mode = call.inputs[0], call.attrs["paddings"], call.attrs["mode"]
    if mode == "constant":
        return [slice_known(dy, [before for before, _ in paddings], x.dims)]
    for axis, (before, after) in enumerate(paddings):
        dy = _fold_mirror(dy, axis, before, after, 0 if mode == "reflect" else 1)
    return [dy]


def _fold_mirror(dy: Tensor, axis: int, before: Dim, after: Dim, repeat: int) -> Tensor:
    """Add the mirrored borders of one axis back onto the elements that they copied."""
    if before == 0 and after == 0:
        return dy
    dim = dy.dims[axis] - before - after

    def part(start: Dim, count: Dim) -> Tensor:
        begin: list[Dim] = [0] * dy.ndim
        size = list(dy.dims)
        begin[axis], size[axis] = start, count
        return slice_known(dy, begin, size)

    def placed(piece: Tensor, start: Dim) -> Tensor:
        widths: list[tuple[Dim, Dim]] = [(0, 0)] * dy.ndim
        widths[axis] = (start, dim - start - piece.dims[axis])
        return run(PAD, piece, paddings=tuple(widths), mode="constant", value=0)  # type: ignore[no-any-return]

    total = part(before, dim)
    if before != 0:
        total = total + placed(reverse(part(0, before), [axis]), 1 - repeat)
    if after != 0:
        mirrored = reverse(part(before + dim, after), [axis])
        total = total + placed(mirrored, dim - after - 1 + repeat)
    return total


PAD = register(
    Op(
        "pad", _infer_pad, _eager_pad, _grad_pad, Compute(_lower_pad, "view"), sizes=_padded,
        tags=frozenset({"any_elements"}),
    )
)  # fmt: skip


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`tensor` with ``paddings[i] = (before, after)`` elements added along axis i.

    Args:
        mode: "CONSTANT" pads with `constant_values`; "REFLECT" mirrors without repeating the
            edge, "SYMMETRIC" repeats it.
    """
    x = convert_to_tensor(tensor)
    kind = mode.lower()
    if kind not in _MODES:
        raise ValueError(f"pad: unknown mode {mode!r}{at(user_origin())}")
    pairs = _pad_widths(x, paddings, kind)
    if np.ndim(constant_values):
        shape = np.shape(constant_values)
        text = f"pad: constant_values must be a scalar, not of shape {shape}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    if isinstance(constant_values, Tensor) and constant_values.is_symbolic:
        return _padded_with(x, pairs, kind, constant_values)
    value = constant_values.numpy() if isinstance(constant_values, Tensor) else constant_values
    if x.dtype is dtypes.string:
        number = to_array(value or b"", x.dtype).item()
    else:
        number = np.asarray(value).astype(x.dtype.np_dtype).item()
    return run(PAD, x, paddings=pairs, mode=kind, value=number)  # type: ignore[no-any-return]


def _padded_with(x: Tensor, pairs: Paddings, mode: str, value: Tensor) -> Tensor:
    """Padding with a number that only a run can tell."""
    inside = run(PAD, fill(x.spec.shape, True), paddings=pairs, mode=mode, value=0)
    if x.dtype is dtypes.string:
        return where(inside, run(PAD, x, paddings=pairs, mode=mode, value=b""), value)
    zeros = run(PAD, x, paddings=pairs, mode=mode, value=0)
    return where(inside, zeros, cast(value, x.dtype))


def _pad_widths(x: Tensor, paddings: Any, mode: str) -> Paddings:
    """How much to add (before, after) every axis: sizes up to what mirroring allows."""
    if has_dtype(paddings) or isinstance(paddings, np.ndarray):
        paddings = convert_to_tensor(paddings)
        if not paddings.dtype.is_integer:
            text = f"pad: paddings must be integers, not {paddings.dtype.name}{at(user_origin())}"
            raise errors.DtypeError(None, None, text)
        if paddings.ndim == 1:  # an empty one would be pairs of no axes
            raise _no_pairs(paddings, x)
        if paddings.shape.is_compatible_with((x.ndim, 2)):
            paddings = with_dims(paddings, (x.ndim, 2))
    if isinstance(paddings, Tensor) and paddings.is_symbolic and paddings.dims == (x.ndim, 2):
        paddings = [elements_of(paddings[k]) for k in range(x.ndim)]
    elif isinstance(paddings, Tensor):
        paddings = paddings if paddings.is_symbolic else paddings.numpy().tolist()
    elif isinstance(paddings, list | tuple):
        paddings = [elements_of(p) if _is_symbolic_vector(p) else p for p in paddings]
    if not _are_pairs(paddings, x.ndim):
        raise _no_pairs(paddings, x)
    most = [{"reflect": d - 1, "symmetric": d}.get(mode) for d in x.dims]
    for k, pair in enumerate(paddings):  # nothing is shown of an axis that is not padded
        if all(isinstance(p, int) and p == 0 for p in pair):
            most[k] = None
    return tuple(
        (size_of(a, f"pad: paddings[{k}][0]", most=m), size_of(b, f"pad: paddings[{k}][1]", most=m))
        for k, ((a, b), m) in enumerate(zip(paddings, most, strict=True))
    )


def _no_pairs(paddings: Any, x: Tensor) -> errors.InvalidArgumentError:
    text = f"pad: paddings {paddings!r} must give (before, after) for each of the {x.ndim} axes"
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


def _is_symbolic_vector(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.is_symbolic
        and value.ndim == 1
        and isinstance(value.dims[0], int)
    )


def _are_pairs(paddings: Any, rank: int) -> bool:
    sized = hasattr(paddings, "__len__") and getattr(paddings, "ndim", 2) == 2
    return sized and len(paddings) == rank and all(
        hasattr(p, "__len__") and len(p) == 2 for p in paddings
    )
