"""Other dims for the same elements: reshape, expand_dims, squeeze, broadcast_to, tile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape, product, shape_text
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor, lacks_rank
from treadle.kernel.ir import Expr, Index
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import (
    dims_tensor,
    elements_of,
    partial_dims,
    shape_tensor,
    size_of,
    sizes_of,
)
from treadle.ops.elementwise.selection import where
from treadle.ops.lowering import Compute, LowerCall
from treadle.ops.properties import Dims
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.requirements import require
from treadle.ops.shaping.views import reshape_index
from treadle.ops.sizes import not_one, same_count, same_dims

# -- reshape -------------------------------------------------------------------------------------


def _infer_reshape(x: TensorSpec, *, shape: tuple[Dim, ...]) -> TensorSpec:
    before, after = product(x.dims), product(shape)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Input to reshape is a tensor with {before} values, but the requested shape has "
            f"{after}: {shape_text(shape)}",
        )
    return TensorSpec(shape, x.dtype)


def _lower_reshape(call: LowerCall, index: Sequence[Index]) -> Expr:
    return call.inputs[0](reshape_index(call.specs[0].dims, call.out.dims, index))


def _grad_reshape(call: OpCall, dy: Tensor) -> list[Any]:
    return [reshape_to(dy, call.inputs[0].dims)]


def _reshaped(dims: Dims, attrs: Mapping[str, Any]) -> Dims | None:
    shape = tuple(attrs["shape"])
    return shape if product(shape) == product(dims) else None


RESHAPE = register(
    Op(
        "reshape",
        _infer_reshape,
        lambda x, *, shape: x.reshape(shape),
        _grad_reshape,
        Compute(_lower_reshape, "view"),
        sizes=same_count,
        tags=frozenset({"alias", "any_elements", "moves", "numpy_view"}),
        same_elements=_reshaped,
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
    if lacks_rank(x):
        x = x.elements
    dims = partial_dims(shape)
    if any(d is None for d in dims):
        dims = _open_dims(x, shape, dims)
    return reshape_to(x, fill_in(x, dims))  # type: ignore[arg-type]


def _open_dims(x: Tensor, shape: Any, known: Sequence[Dim | None]) -> tuple[Dim, ...]:
    """The dims of a shape of which only a run can tell some; one of these may be -1."""
    parts = elements_of(shape_tensor(shape))
    if not any(d == -1 for d in known):
        one = convert_to_tensor(1, dtypes.int64)
        rest = math.prod((where(part == -1, one, part) for part in parts), start=one)
        total = dims_tensor(product(x.dims), dtypes.int64)
        left = total // where(rest == 0, one, rest)
        parts = [where(part == -1, left, part) for part in parts]
    return tuple(
        size_of(part, "reshape: a dim") if dim is None else dim
        for part, dim in zip(parts, known, strict=True)
    )


def fill_in(x: Tensor, dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """`dims` with a -1 replaced by what the number of elements leaves."""
    open_dims = [i for i, d in enumerate(dims) if d == -1]
    for number, d in enumerate(dims):
        if isinstance(d, int) and d < -1:
            text = f"reshape: Size {number} must be non-negative, not {d}{at(user_origin())}"
            raise errors.InvalidArgumentError(None, None, text)
    if not open_dims:
        return dims
    given = [d for d in dims if d != -1]
    if 0 in given:  # what is left is that of the other axes
        total, rest = (product(d for d in part if d != 0) for part in (x.dims, given))
    else:
        total, rest = product(x.dims), product(given)
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
        sizes=same_dims,
        tags=frozenset({"alias", "any_elements"}),
    )
)


def _settle_now(elements: NDArray, extents: NDArray, *, out: TensorSpec) -> NDArray:
    shape = tuple(int(n) for n in extents)
    if not out.shape.is_compatible_with(shape):
        raise errors.InvalidArgumentError(None, None, f"the shape is {shape}, not {out.shape}")
    return np.array(elements).reshape(shape)


# The elements of a tensor of unknown rank and its shape, as a tensor of the rank of `out`.
SETTLE_RANK = register(
    Op(
        "settle_rank",
        lambda elements, extents, *, out: out.with_fresh_symbols("result"),
        _settle_now,
        lambda call, dy: [reshape_to(dy, call.inputs[0].dims), None],
        effect="io",  # a check, which belongs to the Python function that gave the elements
        tags=frozenset({"quiet", "strings"}),
        callback="it compares the shape that Python gave with the one that the program expects",
    )
)


def with_dims(x: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """`x`, checked to have these dims; x itself where it is known to.

    Raises:
        InvalidArgumentError: it is known to have others.
    """
    if not TensorShape(dims).is_compatible_with(x.dims):
        raise errors.InvalidArgumentError(
            None, None, f"the shape is {x.shape}, not {shape_text(dims)}{at(user_origin())}"
        )
    return x if x.dims == dims else run(ENSURE_SHAPE, x, shape=dims)


def of_rank(x: Tensor, rank: int) -> Tensor:
    """`x`; where only a run knows its rank, checked to have this one."""
    return ensure_shape(x, [None] * rank) if lacks_rank(x) else x


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, checked to have a shape compatible with `shape` (None: any).

    It gives the result of a Python function, whose rank is not known, the rank of `shape`.
    """
    tensor = convert_to_tensor(x)
    wanted = TensorShape(shape)
    if wanted.rank is None:
        return tensor
    if lacks_rank(tensor):
        out = TensorSpec(wanted, tensor.dtype)
        return run(SETTLE_RANK, tensor.elements, tensor.extents, out=out)  # type: ignore[no-any-return]
    if not tensor.shape.is_compatible_with(wanted):
        raise errors.InvalidArgumentError(
            None, None,
            f"ensure_shape: the shape is {tensor.shape}, not {wanted}{at(user_origin())}",
        )  # fmt: skip
    dims = tuple(
        d if isinstance(d, int) or not isinstance(w, int) else w
        for d, w in zip(tensor.dims, wanted.exact, strict=True)
    )
    return with_dims(tensor, dims)


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """`input` with a dim of 1 inserted before `axis` (negative: counted from the new end).

    The axis may also be a list or a tensor of one integer.

    Raises:
        InvalidArgumentError: there is no such axis, or the list has not one element.
    """
    x = convert_to_tensor(input)
    position = normalize_axis(_only_element(axis), x.ndim + 1)
    return reshape_to(x, (*x.dims[:position], 1, *x.dims[position:]))


def _only_element(axis: Any) -> Any:
    if not isinstance(axis, list | tuple | np.ndarray | Tensor):
        return axis
    elements = convert_to_tensor(axis)
    if any(dim != 1 for dim in elements.dims):
        raise errors.InvalidArgumentError(
            None, None, f"expand_dims: axis is to be one integer, not {axis!r}{at(user_origin())}"
        )
    return reshape_to(elements, ()) if elements.ndim else axis


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """`input` without its dims of 1, or without those named by `axis`.

    Raises:
        InvalidArgumentError: a named dim is not 1; or, without `axis`, a dim is 1 that was not
            known while tracing.
    """
    x = convert_to_tensor(input)
    if axis is None or (isinstance(axis, list | tuple) and not axis):
        unknown = [d for d in x.dims if not isinstance(d, int)]
        y = require(
            x, map(not_one, unknown),
            f"squeeze: a dim of {x.shape} is 1 in this call and was not known while tracing; name "
            "the axes to drop, which decide the rank of the result",
        )  # fmt: skip
        return reshape_to(y, tuple(d for d in x.dims if d != 1))
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
    x = with_dims(x, tuple(1 if i in chosen else d for i, d in enumerate(x.dims)))
    return reshape_to(x, tuple(d for i, d in enumerate(x.dims) if i not in chosen))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated along dims of 1 and new leading dims to fill `shape`."""
    return broadcast_dims(convert_to_tensor(input), sizes_of(shape, "broadcast_to: a dim"))


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` repeated ``multiples[i]`` times along axis i."""
    x = convert_to_tensor(input)
    counts = sizes_of(multiples, "tile: multiples")
    if len(counts) != x.ndim:
        raise errors.InvalidArgumentError(
            None, None,
            f"tile: multiples {multiples} must give one count for each of the {x.ndim} axes"
            f"{at(user_origin())}",
        )  # fmt: skip
    spread: list[Dim] = []
    split: list[Dim] = []
    for dim, count in zip(x.dims, counts, strict=True):
        split += [1, dim]
        spread += [count, dim]
    wide = broadcast_dims(reshape_to(x, tuple(split)), tuple(spread))
    return reshape_to(wide, tuple(d * c for d, c in zip(x.dims, counts, strict=True)))


def with_dim(x: Tensor, axis: int, dim: Dim) -> Tensor:
    """`x`, checked to have this dim."""
    return with_dims(x, (*x.dims[:axis], dim, *x.dims[axis + 1 :]))
