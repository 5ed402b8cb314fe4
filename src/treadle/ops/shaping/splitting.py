"""Cutting a tensor into parts along an axis: split."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import Dim, shape_text
from treadle.core.tensor import Tensor
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.dims import (
    as_dim_value,
    dims_tensor,
    elements_of,
    partial_dims,
    shape_tensor,
    size_of,
)
from treadle.ops.elementwise.selection import where
from treadle.ops.shaping.reshaping import with_dim, with_dims
from treadle.ops.shaping.slicing import part_of


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None,
    name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """`value` cut along an axis into equal parts (an int) or parts of given sizes (a list).

    Raises:
        InvalidArgumentError: the sizes do not add up to the axis.
    """
    x = convert_to_tensor(value)
    position = normalize_axis(axis, x.ndim)
    dim = x.dims[position]
    if isinstance(num_or_size_splits, list | tuple | np.ndarray) or _rank(num_or_size_splits):
        sizes = _split_sizes(num_or_size_splits, dim, num)
    else:
        count = _part_count(num_or_size_splits)
        if isinstance(dim, int) and dim % count:
            raise errors.InvalidArgumentError(
                None, None, f"split: {dim} does not divide into {count} parts{at(user_origin())}"
            )
        sizes = [dim // count] * count
    x = with_dim(x, position, sum(sizes[1:], sizes[0]) if sizes else 0)
    parts, start = [], 0
    for size in sizes:
        parts.append(part_of(x, position, start, size))
        start = start + size  # type: ignore[assignment]
    return parts


def _rank(value: Any) -> int:
    return convert_to_tensor(value).ndim if has_dtype(value) else 0


def _part_count(value: Any) -> int:
    """The number of parts, which is the number of results."""
    count = as_dim_value(value, "split: num_or_size_splits")
    if not isinstance(count, int):
        raise NotYetKnown(
            f"split: the number of parts must be known while tracing, because it is the number of "
            f"results: {value!r} is not{at(user_origin())}"
        )
    if count < 1:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"split: the number of parts must be at least 1, not {count}{at(user_origin())}",
        )
    return count


def _split_sizes(given: Any, dim: Dim, num: int | None) -> list[Dim]:
    """The sizes of the parts; -1 for one stands for what the others leave."""
    if has_dtype(given) and num is not None:
        given = with_dims(convert_to_tensor(given), (num,))
    sizes = list(partial_dims(given, "split: num_or_size_splits"))
    numbers: list[Any] = list(sizes)
    if any(s is None for s in sizes) and -1 not in sizes:
        parts = elements_of(shape_tensor(given))
        zero = convert_to_tensor(0, dtypes.int64)
        others = sum((where(part == -1, zero, part) for part in parts), start=zero)
        rest = dims_tensor(dim, dtypes.int64) - others
        numbers = [where(part == -1, rest, part) for part in parts]
    elif any(s is None for s in sizes):
        numbers = list(given if isinstance(given, list | tuple) else elements_of(given))
    known = [
        s if s is not None else size_of(n, "split: a size")
        for s, n in zip(sizes, numbers, strict=True)
    ]
    if sum(1 for s in known if s == -1) > 1 or any(isinstance(s, int) and s < -1 for s in known):
        raise errors.InvalidArgumentError(
            None, None,
            f"split: sizes {shape_text(known)} may have one -1 and no other number below 0"
            f"{at(user_origin())}",
        )  # fmt: skip
    total: Dim = 0
    for size in known:
        total = total + (0 if size == -1 else size)
    if (
        isinstance(dim, int)
        and isinstance(total, int)
        and not (total == dim or (-1 in known and total < dim))
    ):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"split: sizes {shape_text(known)} do not add up to {dim}{at(user_origin())}",
        )
    return [dim - total if s == -1 else s for s in known]
