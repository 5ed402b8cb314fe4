"""``tensor[key]`` without arrays in the key: ints, slices, None, Ellipsis and scalar tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core import errors
from treadle.core.context import context
from treadle.core.inequalities import is_at_least
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, SymbolicDim, compound, fresh_symbol
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor, from_array
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.dims import as_dim_value, number_tensor
from treadle.ops.indexing.index import INDEX
from treadle.ops.lowering import SLICE
from treadle.ops.numbers.python_numbers import interval_of, is_symbolic_number
from treadle.ops.properties import Part, PartKind, PartUse
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.shaping.slicing import slice_known

MOST_ELEMENTS = 1 << 61  # more than any array has; sums of such numbers do not overflow
_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def get_part(x: Tensor, key: Any) -> Tensor:
    """``x[key]`` where no entry of the key is an array.

    Raises:
        InvalidArgumentError: an index out of range.
        TypeError: a key of another type.
    """
    part = eager_part(x, key)
    if part is not None:
        return part
    items = list(key) if isinstance(key, tuple) else [key]
    return select(x, expand(items, x), key)


def eager_part(x: Tensor, key: Any) -> Tensor | None:
    """``x[key]`` as NumPy's view; None where ops must give it, or raise with a message."""
    if type(x) is Tensor and not context.counted and _is_basic(key):
        try:
            return from_array(np.asarray(x._buffer[key]))
        except (IndexError, ValueError, OverflowError):
            return None
    return None


def is_array(item: Any) -> bool:
    """Whether an entry of a key holds several positions or a mask."""
    if isinstance(item, list | np.ndarray):
        return np.ndim(item) > 0
    return bool(has_dtype(item) and (item.shape.rank or item.dtype.is_bool))


def _is_basic(key: Any) -> bool:
    """Only ints, None, Ellipsis and slices of ints: NumPy's own views."""
    for item in key if type(key) is tuple else (key,):
        if type(item) not in _BASIC:
            return False
        if type(item) is slice and not all(
            type(b) in (int, type(None)) for b in (item.start, item.stop, item.step)
        ):
            return False
    return True


def expand(items: list[Any], x: Tensor) -> list[Any]:
    """The key with Ellipsis written out: one entry per axis of `x`, and None for new axes."""
    used = sum(1 for i in items if i is not None and i is not Ellipsis)
    if used > x.ndim:
        raise errors.InvalidArgumentError(
            None, None,
            f"too many indices: {used} for shape {x.shape}{at(user_origin())}",
        )  # fmt: skip
    ellipses = [n for n, i in enumerate(items) if i is Ellipsis]
    if len(ellipses) > 1:
        raise errors.InvalidArgumentError(
            None, None, f"an index may have one Ellipsis{at(user_origin())}"
        )
    place = ellipses[0] if ellipses else len(items)
    rest = items[place + 1 :] if ellipses else []
    return [*items[:place], *[slice(None)] * (x.ndim - used), *rest]


class _Cut(NamedTuple):
    begin: Dim
    size: Dim
    stride: int


def select(x: Tensor, items: list[Any], key: Any) -> Tensor:
    """Static parts in one slice; then scalar tensors, open slices and new axes one by one."""
    cuts: list[_Cut] = []
    later: list[tuple[Any, ...]] = []  # what becomes of each axis after the slice
    for item in items:
        if item is None:
            later.append(("new",))
            continue
        axis = len(cuts)
        cut, action = _one_axis(item, x, axis, key)
        cuts.append(cut)
        later.append(action)
    y = slice_known(x, [c.begin for c in cuts], [c.size for c in cuts], [c.stride for c in cuts])
    return _finish(y, later)


def _one_axis(item: Any, x: Tensor, axis: int, key: Any) -> tuple[_Cut, tuple[Any, ...]]:
    dim = x.dims[axis]
    whole = _Cut(0, dim, 1)
    if is_symbolic_number(item):
        return whole, ("index", _number_index(item, dim))
    if isinstance(item, slice) and any(map(is_symbolic_number, _parts(item))):
        return whole, ("slice", *_number_slice(item, dim))
    if isinstance(item, slice):
        cut = _static_slice(item, dim)
        return (cut, ("keep",)) if cut is not None else (whole, ("slice", item))
    if isinstance(item, bool) or (not hasattr(item, "__index__") and not has_dtype(item)):
        raise TypeError(
            f"{type(item).__name__} {item!r} is not an index of a tensor: use integers, slices, "
            f"None, Ellipsis, integer tensors or arrays, or bool masks{at(user_origin())}"
        )
    position = _static_index(item)
    if position is None:
        return whole, ("index", convert_to_tensor(item))
    return _Cut(_in_dim(position, dim, axis, x), 1, 1), ("drop",)


def _parts(item: slice) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step


def _number_index(number: Any, dim: Dim) -> Tensor:
    """A position that is a Python int which only the running program knows."""
    if number.kind not in (int, bool) or number.kind is bool:
        raise TypeError(f"a {number.kind.__name__} is no index of a tensor{at(user_origin())}")
    if isinstance(dim, int) and number.interval is not None:
        low, high = number.interval
        if low < -dim or high >= dim:
            number.leave_open("a position that may lie outside")
    return number.tensor()  # type: ignore[no-any-return]


def _number_slice(item: slice, dim: Dim) -> tuple[slice, int | None]:
    """A slice with bounds that only the running program knows, as one of tensors; and its size,
    where the bounds lie inside the axis and are always equally far apart."""
    bounds = [_inside(b, dim) for b in (item.start, item.stop)]
    step = 1 if item.step is None else operator.index(item.step)
    size: int | None = None
    start, stop = 0 if item.start is None else bounds[0], dim if item.stop is None else bounds[1]
    if step == 1 and start is not None and stop is not None:
        size = stop - start if isinstance(stop, int) else None
        size = max(0, size) if type(size) is int else None
    given = [b if known is None else known
             for b, known in zip((item.start, item.stop), bounds, strict=True)]  # fmt: skip
    parts = [b.tensor() if is_symbolic_number(b) else b for b in given]
    return slice(parts[0], parts[1], None if item.step is None else step), size


def _inside(bound: Any, dim: Dim) -> Any:
    """A slice's bound that is shown to lie on the axis, counted from its start; None for others."""
    interval = interval_of(bound)
    if not isinstance(dim, int) or interval is None:
        return None
    low, high = interval
    if low >= 0 and high <= dim:
        return bound
    if low == high and high > dim:
        return dim
    return bound + dim if -dim <= low and high < 0 else None


def _static_index(item: Any) -> Dim | None:
    if has_dtype(item) or isinstance(item, np.ndarray):
        tensor = convert_to_tensor(item)
        if not tensor.dtype.is_integer or tensor.ndim:
            raise TypeError(
                f"only scalar integer tensors are indices, got {tensor.dtype.name} of shape "
                f"{tensor.shape}; use td.gather{at(user_origin())}"
            )
        return as_dim_value(tensor, "index")
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(f"{item!r} is no index of a tensor{at(user_origin())}") from None


def _in_dim(position: Dim, dim: Dim, axis: int, x: Tensor) -> Dim:
    if isinstance(position, int):
        most = dim if isinstance(dim, int) else MOST_ELEMENTS
        if not -most <= position < most:
            raise errors.InvalidArgumentError(
                None, None,
                f"index {position} is out of range for axis {axis} of shape {x.shape}"
                f"{at(user_origin())}",
            )  # fmt: skip
        return position if position >= 0 else dim + position
    return position


def _static_slice(item: slice, dim: Dim) -> _Cut | None:
    """The bounds of a slice as dims; None where they are tensors that only a run can tell."""
    bounds = [None if b is None else as_dim_value(b, "slice") for b in (item.start, item.stop)]
    step = 1 if item.step is None else as_dim_value(item.step, "slice")
    unknown = any(
        b is None and given is not None
        for b, given in zip(bounds, (item.start, item.stop), strict=True)
    )
    if unknown or not isinstance(step, int):
        return None
    if step == 0:
        raise errors.InvalidArgumentError(
            None, None, f"a slice's step cannot be 0{at(user_origin())}"
        )
    start, stop = (_bounded(b) for b in bounds)
    step = min(max(step, -MOST_ELEMENTS), MOST_ELEMENTS)
    if (
        isinstance(dim, int)
        and not isinstance(start, SymbolicDim)
        and not isinstance(stop, SymbolicDim)
    ):
        found = range(*slice(start, stop, step).indices(dim))
        return _Cut(found.start if len(found) else 0, len(found), step)
    return _symbolic_slice(start, stop, step, dim)


def _bounded(bound: Dim | None) -> Dim | None:
    """A bound of a slice moved to where sizes end: the slice is the same."""
    if not isinstance(bound, int):
        return bound
    return min(max(bound, -MOST_ELEMENTS), MOST_ELEMENTS)


def _symbolic_slice(start: Dim | None, stop: Dim | None, step: int, dim: Dim) -> _Cut:
    """Python's rules with symbolic bounds."""
    if step > 0:
        first, span = _forward(start, stop, dim)
        return _Cut(first, span if step == 1 else (span + (step - 1)) // step, step)
    first = dim - 1 if start is None else _clamp(start, dim, -1)
    last = -1 if stop is None else _clamp(stop, dim, -1)
    span = _non_negative(first - last)
    return _Cut(first, span if step == -1 else (span + (-step - 1)) // -step, step)


def _forward(start: Dim | None, stop: Dim | None, dim: Dim) -> tuple[Dim, Dim]:
    """First position and length of ``start:stop``. A start past the end selects nothing, so it
    need not be clamped itself."""
    if stop is None and isinstance(start, int) and start >= 0:
        return start, _non_negative(dim - start)
    first = 0 if start is None else _clamp(start, dim)
    last = dim if stop is None else _clamp(stop, dim)
    return first, _non_negative(last - first)


def _clamp(bound: Dim, dim: Dim, shift: int = 0) -> Dim:
    """A slice bound moved into [0, dim] (shift -1: into [-1, dim - 1])."""
    if bound == dim and not shift:
        return dim
    if isinstance(bound, int) and bound < 0:
        return compound("max", dim + bound, shift)
    if bound == 0 and (not shift or is_at_least(dim, 1)):
        return 0
    return compound("min", bound, dim + shift)


def _non_negative(dim: Dim) -> Dim:
    if isinstance(dim, SymbolicDim) and all(c > 0 for _, c in dim.terms):
        return dim
    return compound("max", dim, 0)


def _finish(y: Tensor, later: list[tuple[Any, ...]]) -> Tensor:
    axis = 0
    for action in later:
        match action:
            case ("index", position):
                y = run(INDEX, y, position, axis=axis)
            case ("slice", item, *size):
                y = _dynamic_slice(y, axis, item, *size)
                axis += 1
            case ("drop",):
                y = reshape_to(y, (*y.dims[:axis], *y.dims[axis + 1 :]))
            case ("new",):
                y = reshape_to(y, (*y.dims[:axis], 1, *y.dims[axis:]))
                axis += 1
            case _:
                axis += 1
    return y


# -- slices whose bounds are tensors -------------------------------------------------------------


def _infer_dynamic(
    x: TensorSpec, *bounds: TensorSpec, axis: int, given: tuple[bool, ...], size: int = -1
) -> TensorSpec:
    """`size`: where it is known, and the bounds are known to lie inside; else -1."""
    dim = fresh_symbol("slice") if size < 0 else size
    return TensorSpec((*x.dims[:axis], dim, *x.dims[axis + 1 :]), x.dtype)


def part_key(bounds: Sequence[NDArray], axis: int, given: tuple[bool, ...]) -> tuple[Any, ...]:
    """The key of the part that a dynamic slice names; `given`: which of start, stop and step are
    among the bounds."""
    numbers = map(int, bounds)
    parts = [next(numbers) if is_given else None for is_given in given]
    return (slice(None),) * axis + (slice(*parts),)


def _grad_dynamic(call: OpCall, dy: Tensor) -> list[Any]:
    x, *bounds = call.inputs
    axis = call.attrs["axis"]
    grad = run(
        DYNAMIC_SLICE_GRAD, dy, *bounds, axis=axis, given=call.attrs["given"], size=x.dims[axis]
    )
    return [grad, *(None for _ in bounds)]


DYNAMIC_SLICE = register(
    Op(
        "dynamic_slice",
        _infer_dynamic,
        lambda x, *bounds, axis, given, size=-1: x[part_key(bounds, axis, given)],
        _grad_dynamic,
        SLICE,
        tags=frozenset({"any_elements", "dynamic", "numpy_view"}),
        part=Part(PartKind.DYNAMIC_SLICE, PartUse.READ),
    )
)


def _eager_dynamic_grad(
    dy: NDArray, *bounds: NDArray, axis: int, given: tuple[bool, ...], size: int
) -> NDArray:
    result = np.zeros((*dy.shape[:axis], size, *dy.shape[axis + 1 :]), dy.dtype)
    result[part_key(bounds, axis, given)] = dy
    return result


DYNAMIC_SLICE_GRAD = register(
    Op(
        "dynamic_slice_grad",
        lambda dy, *bounds, axis, given, size: TensorSpec(
            (*dy.dims[:axis], size, *dy.dims[axis + 1 :]), dy.dtype
        ),
        _eager_dynamic_grad,
        lambda call, dz: [
            run(
                DYNAMIC_SLICE,
                dz,
                *call.inputs[1:],
                axis=call.attrs["axis"],
                given=call.attrs["given"],
                **_size_of(call.inputs[0].dims[call.attrs["axis"]]),
            ),
            *(None for _ in call.inputs[1:]),
        ],
        SLICE,
        part=Part(PartKind.DYNAMIC_SLICE, PartUse.PLACE, 0),
    )
)


def _size_of(dim: Dim | None) -> dict[str, int]:
    """The attribute of a part whose size is known."""
    return {"size": dim} if isinstance(dim, int) else {}


def _dynamic_slice(x: Tensor, axis: int, item: slice, size: int | None = None) -> Tensor:
    bounds, given = bounds_of(item)
    return run(DYNAMIC_SLICE, x, *bounds, axis=axis, given=given, **_size_of(size))  # type: ignore[no-any-return]


def bounds_of(item: slice) -> tuple[list[Tensor], tuple[bool, ...]]:
    """The bounds of a slice as numbers, and which of start, stop and step they are."""
    parts = (item.start, item.stop, item.step)
    return [number_tensor(p) for p in parts if p is not None], tuple(p is not None for p in parts)
