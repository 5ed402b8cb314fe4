"""Confusion matrices, and whether a sequence rises."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.scatter import scatter_nd
from treadle.ops.reductions.reduction import reduce_all, reduce_max
from treadle.ops.shaping.creation import ones
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.reshaping import reshape, squeeze
from treadle.ops.statistics.histograms import count_dtype


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None, weights: Any = None,
    dtype: Any = dtypes.int32, name: str | None = None,
) -> Tensor:  # fmt: skip
    """How often each label (row) was predicted as each class (column).

    Args:
        labels, predictions: [n] class numbers from 0 on; one of them may be [n, 1].
        num_classes: the size of the result; one more than the greatest number by default.
        weights: [n], what each prediction counts, instead of 1.
        dtype: of the result, [num_classes, num_classes].

    Raises:
        InvalidArgumentError: a number is negative or not below `num_classes`.
    """
    kind = count_dtype("confusion_matrix", dtype)
    wanted, given = _vectors(labels, predictions)
    counted = ones(wanted.dims, kind) if weights is None else cast(weights, kind)
    length = None if num_classes is None else cast(num_classes, dtypes.int64)
    if length is not None and length.ndim:
        text = f"confusion_matrix: num_classes is a number, not of shape {length.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    for numbers, what in ((wanted, "labels"), (given, "predictions")):
        Assert(reduce_all(numbers >= 0), [f"confusion_matrix: negative {what}:", numbers])
    if length is None:
        length = maximum(reduce_max(wanted), reduce_max(given)) + 1
    else:
        for numbers, what in ((wanted, "labels"), (given, "predictions")):
            text = f"confusion_matrix: {what} beyond the classes:"
            Assert(reduce_all(numbers < length), [text, numbers])
    count = size_of(length, "confusion_matrix: num_classes")
    places = stack([wanted, given], axis=1)
    return scatter_nd(places, counted, [dims_tensor(count, dtypes.int64)] * 2)


def _vectors(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Both as vectors; one of them may have a second axis of size 1."""
    a, b = cast(labels, dtypes.int64), cast(predictions, dtypes.int64)
    if a.ndim - b.ndim == 1:
        a = squeeze(a, -1)
    elif b.ndim - a.ndim == 1:
        b = squeeze(b, -1)
    if a.ndim != 1 or b.ndim != 1:
        text = f"confusion_matrix: vectors are expected, not shapes {a.shape} and {b.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    return a, b


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element is less than the one before it, in order; true for fewer than two."""
    flat = reshape(convert_to_tensor(x), [-1])
    return reduce_all(flat[1:] >= flat[:-1])


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether each element is greater than the one before it, in order; true for fewer than two."""
    flat = reshape(convert_to_tensor(x), [-1])
    return reduce_all(flat[1:] > flat[:-1])
