"""Norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.axes import normalize_axes
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.elementwise.arithmetic import divide
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.unary import abs as magnitude
from treadle.ops.elementwise.unary import sqrt
from treadle.ops.linalg.decompositions import svd
from treadle.ops.reductions.reduction import reduce_max, reduce_sum
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The norms of vectors or matrices along axes of a tensor.

    Args:
        ord: for vectors "euclidean" (or 2), 1, np.inf, or any positive number; for matrices
            "euclidean" (or "fro"), 1 (the greatest sum of a column), np.inf (of a row), or 2 (the
            greatest singular value).
        axis: an int: the axis of the vectors; two of them: those of the rows and the columns of
            matrices; None: all elements are one vector.
        keepdims: keep these axes, of size 1.

    Returns:
        The norms; complex with "euclidean" for complex tensors, else real.

    Raises:
        ValueError: another `ord` or `axis`.
    """
    x, keepdims = convert_to_tensor(tensor), bool(keepdims)
    of_matrices = isinstance(axis, list | tuple) and len(axis) == 2
    named = ord in ("euclidean", 1, 2, np.inf)
    if of_matrices:
        good = (named or ord == "fro") and len({*normalize_axes(axis, x.ndim)}) == 2
    else:
        positive = isinstance(ord, int | float) and ord > 0
        single = isinstance(axis, int | np.integer) or (has_dtype(axis) and not axis.shape.rank)
        good = (named or positive) and (axis is None or single)
    if not good:
        raise ValueError(f"norm: no ord={ord!r} over axis={axis!r}{at(user_origin())}")
    if of_matrices and ord == 2:
        return _greatest_singular_value(x, normalize_axes(axis, x.ndim), keepdims)
    if ord in ("euclidean", "fro", 2):
        return sqrt(reduce_sum(x * conj(x), axis, keepdims))
    sizes = magnitude(x)
    if of_matrices:
        row, column = normalize_axes(axis, x.ndim)
        inner, outer = (row, column) if ord == 1 else (column, row)
        found = reduce_max(reduce_sum(sizes, inner, keepdims=True), outer, keepdims=True)
        return found if keepdims else _without(found, (row, column))
    if ord == 1:
        return reduce_sum(sizes, axis, keepdims)
    if ord == np.inf:
        return reduce_max(sizes, axis, keepdims)
    return reduce_sum(sizes**ord, axis, keepdims) ** (1.0 / ord)  # type: ignore[no-any-return]


def _greatest_singular_value(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    rest = [k for k in range(x.ndim) if k not in axes]
    values = reduce_max(svd(permute(x, [*rest, *axes]))[1], -1)
    kept = tuple(1 if k in axes else d for k, d in enumerate(x.dims))
    return reshape_to(values, kept) if keepdims else values


def _without(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return reshape_to(x, tuple(d for k, d in enumerate(x.dims) if k not in axes))


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(the tensor divided by its norms, the norms with axes of size 1 where they were taken).

    Args:
        ord, axis: as in `norm`.

    Raises:
        ValueError: another `ord` or `axis`.
    """
    x = convert_to_tensor(tensor)
    length = cast(norm(x, ord, axis, keepdims=True), x.dtype)
    return divide(x, length), length
