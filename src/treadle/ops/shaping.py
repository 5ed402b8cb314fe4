"""Reshaping, transposing, adding and removing axes, reversing, tiling, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape, fresh_symbol, product, shape_text
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import partial_dims, shape_tensor
from treadle.ops.lowering import Compute, LowerCall
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.views import reshape_index

# -- reshape -------------------------------------------------------------------------------------


def _infer_reshape(x: TensorSpec, *, shape: tuple[Dim, ...]) -> TensorSpec:
    before, after = product(x.dims), product(shape)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        raise errors.InvalidArgumentError(
            None, None, f"{before} elements do not fill the shape {shape_text(shape)}"
        )
    return TensorSpec(shape, x.dtype)


def _lower_reshape(call: LowerCall, index: Sequence[Index]) -> Expr:
    return call.inputs[0](reshape_index(call.specs[0].dims, call.out.dims, index))


def _grad_reshape(call: OpCall, dy: Tensor) -> list[Any]:
    return [reshape_to(dy, call.inputs[0].dims)]


RESHAPE = register(
    Op(
        "reshape",
        _infer_reshape,
        lambda x, *, shape: x.reshape(shape),
        _grad_reshape,
        Compute(_lower_reshape, "view"),
    )
)


def _infer_reshape_dynamic(
    x: TensorSpec, shape: TensorSpec, *, known: tuple[Dim | None, ...]
) -> TensorSpec:
    dims = (fresh_symbol() if d is None or d == -1 else d for d in known)
    return TensorSpec(dims, x.dtype)


RESHAPE_DYNAMIC = register(
    Op(
        "reshape_dynamic",
        _infer_reshape_dynamic,
        lambda x, shape, *, known: x.reshape(tuple(shape)),
        lambda call, dy: [*_grad_reshape(call, dy), None],
        tags=frozenset({"dynamic"}),
    )
)


def reshape_to(x: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """`x` with exactly these dims; x itself where it has them."""
    return x if x.dims == dims else run(RESHAPE, x, shape=dims)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in row-major order under another shape; one dim may be -1.

    Raises:
        InvalidArgumentError: the number of elements differs.
    """
    x = convert_to_tensor(tensor)
    dims = partial_dims(shape)
    if any(d is None for d in dims):
        return run(RESHAPE_DYNAMIC, x, shape_tensor(shape), known=dims)  # type: ignore[no-any-return]
    return reshape_to(x, fill_in(x, dims))  # type: ignore[arg-type]


def fill_in(x: Tensor, dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """`dims` with a -1 replaced by what the number of elements leaves."""
    open_dims = [i for i, d in enumerate(dims) if d == -1]
    if any(isinstance(d, int) and d < -1 for d in dims):
        raise errors.InvalidArgumentError(
            None, None, f"reshape: {shape_text(dims)} has a negative dim{at(user_origin())}"
        )
    if not open_dims:
        return dims
    total, rest = product(x.dims), product(d for d in dims if d != -1)
    both = isinstance(total, int) and isinstance(rest, int)
    if len(open_dims) > 1:
        problem = "only one dim may be -1"
    elif both and (rest == 0 or total % rest != 0):
        problem = f"{total} elements do not divide into {rest}"
    else:
        missing = total // rest
        return tuple(missing if d == -1 else d for d in dims)
    raise errors.InvalidArgumentError(
        None, None, f"reshape: {x.shape} to {shape_text(dims)}: {problem}{at(user_origin())}"
    )


def _eager_ensure_shape(x: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    if x.shape != shape:
        raise errors.InvalidArgumentError(None, None, f"the shape is {x.shape}, not {shape}")
    return x


ENSURE_SHAPE = register(
    Op(
        "ensure_shape",
        lambda x, *, shape: TensorSpec(shape, x.dtype),
        _eager_ensure_shape,
        lambda call, dy: [with_dims(dy, call.inputs[0].dims)],
        Compute(lambda call, index: call.inputs[0](index), "view"),
    )
)


def with_dims(x: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """`x`, checked to have these dims; x itself where it is known to."""
    return x if x.dims == dims else run(ENSURE_SHAPE, x, shape=dims)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, checked to have a shape compatible with `shape` (None: any)."""
    tensor = convert_to_tensor(x)
    wanted = TensorShape(shape)
    if not tensor.shape.is_compatible_with(wanted):
        raise errors.InvalidArgumentError(
            None, None,
            f"ensure_shape: the shape is {tensor.shape}, not {wanted}{at(user_origin())}",
        )  # fmt: skip
    dims = tuple(
        d if isinstance(d, int) or not isinstance(w, int) else w
        for d, w in zip(tensor.dims, wanted.dims, strict=True)
    )
    return with_dims(tensor, dims)


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """`input` with a dim of 1 inserted before `axis` (negative: counted from the new end)."""
    x = convert_to_tensor(input)
    position = normalize_axis(axis, x.ndim + 1)
    return reshape_to(x, (*x.dims[:position], 1, *x.dims[position:]))


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """`input` without its dims of 1, or without those named by `axis`."""
    x = convert_to_tensor(input)
    if axis is None or (isinstance(axis, list | tuple) and not axis):
        return reshape_to(x, tuple(d for d in x.dims if d != 1))
    chosen = {
        normalize_axis(a, x.ndim) for a in (axis if isinstance(axis, list | tuple) else [axis])
    }
    for position in sorted(chosen):
        if x.dims[position] != 1 and isinstance(x.dims[position], int):
            raise errors.InvalidArgumentError(
                None, None,
                f"squeeze: dim {position} of {x.shape} is {x.dims[position]}, not 1"
                f"{at(user_origin())}",
            )  # fmt: skip
    return reshape_to(x, tuple(d for i, d in enumerate(x.dims) if i not in chosen))


# -- transpose, reverse --------------------------------------------------------------------------


def _lower_transpose(call: LowerCall, index: Sequence[Index]) -> Expr:
    source: list[Any] = [None] * len(index)
    for position, axis in enumerate(call.attrs["perm"]):
        source[axis] = index[position]
    return call.inputs[0](source)


def _grad_transpose(call: OpCall, dy: Tensor) -> list[Any]:
    perm = call.attrs["perm"]
    return [transpose(dy, [perm.index(i) for i in range(len(perm))])]


TRANSPOSE = register(
    Op(
        "transpose",
        lambda x, *, perm: TensorSpec((x.dims[p] for p in perm), x.dtype),
        lambda x, *, perm: x.transpose(perm),
        _grad_transpose,
        Compute(_lower_transpose, "view"),
    )
)


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> Tensor:
    """`a` with its axes in the order `perm` (default: reversed)."""
    x = convert_to_tensor(a)
    order = _permutation(perm, x)
    if order != tuple(range(x.ndim)):
        x = run(TRANSPOSE, x, perm=order)
    return _conjugated(x) if conjugate else x


def _conjugated(x: Tensor) -> Tensor:
    from treadle.ops.complex_numbers import conj

    return conj(x)


def _permutation(perm: Any, x: Tensor) -> tuple[int, ...]:
    if perm is None:
        return tuple(reversed(range(x.ndim)))
    perm = perm.numpy() if isinstance(perm, Tensor) else perm
    order = tuple(int(p) + (x.ndim if int(p) < 0 else 0) for p in perm)
    if sorted(order) != list(range(x.ndim)):
        raise errors.InvalidArgumentError(
            None, None,
            f"transpose: perm {tuple(int(p) for p in perm)} is no order of the {x.ndim} axes of "
            f"shape {x.shape}{at(user_origin())}",
        )  # fmt: skip
    return order


def swap_last(x: Tensor) -> Tensor:
    """`x` with its last two axes exchanged."""
    order = list(range(x.ndim))
    order[-2:] = order[-1], order[-2]
    return transpose(x, order)


def _lower_reverse(call: LowerCall, index: Sequence[Index]) -> Expr:
    from treadle.ops.lowering import add_index, scale_index

    dims, axes = call.specs[0].dims, call.attrs["axis"]
    return call.inputs[0](
        [
            add_index(scale_index(i, -1), dims[n] - 1) if n in axes else i
            for n, i in enumerate(index)
        ]
    )


REVERSE = register(
    Op(
        "reverse",
        lambda x, *, axis: x,
        lambda x, *, axis: np.flip(x, axis),
        lambda call, dy: [reverse(dy, call.attrs["axis"])],
        Compute(_lower_reverse, "view"),
    )
)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """`tensor` with the order of elements reversed along the given axes."""
    x = convert_to_tensor(tensor)
    axes = axis.numpy() if isinstance(axis, Tensor) else axis
    chosen = tuple(normalize_axis(a, x.ndim) for a in np.atleast_1d(axes))
    return run(REVERSE, x, axis=chosen)  # type: ignore[no-any-return]


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated along dims of 1 and new leading dims to fill `shape`."""
    x = convert_to_tensor(input)
    dims = partial_dims(shape)
    if any(d is None for d in dims):
        from treadle.ops.creation import fill

        return x + fill(shape, convert_to_tensor(0, x.dtype))
    lead = len(dims) - x.ndim
    known = tuple(x.dims[i - lead] if d == -1 else d for i, d in enumerate(dims))
    return broadcast_dims(x, known)  # type: ignore[arg-type]


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` repeated ``multiples[i]`` times along axis i."""
    x = convert_to_tensor(input)
    counts = partial_dims(multiples, "multiples")
    if len(counts) != x.ndim or any(c is None for c in counts):
        raise ValueError(
            f"tile: multiples {multiples} must give one known count for each of the {x.ndim} "
            f"axes{at(user_origin())}"
        )
    spread: list[Dim] = []
    split: list[Dim] = []
    for dim, count in zip(x.dims, counts, strict=True):
        split += [1, dim]
        spread += [count, dim]  # type: ignore[list-item]
    wide = broadcast_dims(reshape_to(x, tuple(split)), tuple(spread))
    return reshape_to(wide, tuple(d * c for d, c in zip(x.dims, counts, strict=True)))  # type: ignore[operator]
