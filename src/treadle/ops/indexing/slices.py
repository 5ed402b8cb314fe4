"""TensorFlow's ways to take a part of a tensor: slice and strided_slice."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors
from treadle.core.inequalities import is_at_least
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, elements_of, partial_dims, size_of
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.subscripts import getitem
from treadle.ops.requirements import require
from treadle.ops.shaping.slicing import slice_known
from treadle.ops.sizes import at_most


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The part of `input_` that starts at `begin` and has shape `size` (-1: to the end).

    Raises:
        InvalidArgumentError: the part does not lie inside `input_`.
    """
    x = convert_to_tensor(input_)
    starts, sizes = _numbers(begin, "slice: begin"), _numbers(size, "slice: size")
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise errors.InvalidArgumentError(
            None, None,
            f"slice: begin and size must have {x.ndim} entries for shape {x.shape}"
            f"{at(user_origin())}",
        )  # fmt: skip
    parts = zip(starts, sizes, x.dims, strict=True)
    begins, dims = [], []
    for axis, (start, count, dim) in enumerate(parts):
        begins.append(size_of(start, f"slice: begin[{axis}]", most=dim))
        if isinstance(start, int) and not is_at_least(dim, start):
            text = f"slice: begin[{axis}] = {start} is beyond the dim in this call"
            x = require(x, [at_most(start, dim)], text)
        dims.append(_length(count, axis, dim - begins[-1]))
    return slice_known(x, begins, dims)


def _numbers(value: Any, what: str) -> list[Any]:
    """The entries of `begin` or `size`: ints, dims, or tensors where only a run can tell."""
    known = partial_dims(value, what)
    if not any(d is None for d in known):
        return list(known)
    parts = value if isinstance(value, list | tuple) else elements_of(value)
    return [p if d is None else d for p, d in zip(parts, known, strict=True)]


def _length(count: Any, axis: int, room: Dim) -> Dim:
    """The size of one axis of the part; -1 stands for all that is there."""
    if isinstance(count, int) and count == -1:
        return room
    if isinstance(count, Tensor):
        count = where(count == -1, dims_tensor(room, count.dtype), count)
    return size_of(count, f"slice: size[{axis}]", most=room)


def strided_slice(
    input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
    var: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """``input_[begin[0]:end[0]:strides[0], ...]`` with Python's rules for every slice.

    Args:
        begin_mask, end_mask: a bit for every slice whose bound is left out.
        ellipsis_mask, new_axis_mask: the bit of an entry that stands for ``...`` or ``None``.
        shrink_axis_mask: a bit for every entry that is an index, given by `begin`.
        var: the variable that `input_` is the value of; slices of variables assign without it.
    """
    starts, ends = _numbers(begin, "strided_slice: begin"), _numbers(end, "strided_slice: end")
    steps = [1] * len(starts) if strides is None else _numbers(strides, "strided_slice: strides")
    if not len(starts) == len(ends) == len(steps):
        raise errors.InvalidArgumentError(
            None, None,
            f"strided_slice: begin, end and strides have {len(starts)}, {len(ends)} and "
            f"{len(steps)} entries{at(user_origin())}",
        )  # fmt: skip

    def entry(k: int) -> Any:
        bit = 1 << k
        if ellipsis_mask & bit:
            return Ellipsis
        if new_axis_mask & bit:
            return None
        if shrink_axis_mask & bit:
            return _index(starts[k])
        start = None if begin_mask & bit else starts[k]
        return slice(start, None if end_mask & bit else ends[k], steps[k])

    return getitem(convert_to_tensor(input_), tuple(entry(k) for k in range(len(starts))))


def _index(number: Any) -> Any:
    return number if isinstance(number, int | Tensor) else dims_tensor(number, dtypes.int64)


__all__ = ["slice_", "strided_slice"]
