"""Isotonic regression: the nearest numbers that only fall, or only rise."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gathered, unsorted_segment_sum
from treadle.ops.nn.softmax import wide
from treadle.ops.op_makers import require_kinds
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import reshape_to


def _infer(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    require_kinds("f", x)
    if not x.rank:
        raise ValueError("a scalar has no axis")
    return x, TensorSpec(x.dims, dtypes.int32)


def _eager(x: NDArray) -> tuple[NDArray, NDArray]:
    """Neighbouring runs of numbers are one run with their mean as long as the later one is
    greater."""
    if x.dtype.kind not in "fV":  # NumPy's kind of bfloat16 is V
        raise TypeError("the numbers must be floats")
    rows = wide(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
    values, segments = np.empty_like(rows), np.empty(rows.shape, np.int32)
    for row, value, segment in zip(rows, values, segments, strict=True):
        sums: list[float] = []
        counts: list[int] = []
        for number in row.tolist():
            total, count = number, 1
            while sums and sums[-1] * count < total * counts[-1]:
                total, count = total + sums.pop(), count + counts.pop()
            sums.append(total)
            counts.append(count)
        value[:] = np.repeat(np.divide(sums, counts), counts)
        segment[:] = np.repeat(np.arange(len(counts)), counts)
    return values.astype(x.dtype).reshape(x.shape), segments.reshape(x.shape)


def _grad(call: OpCall, dy: Tensor, _: Any) -> list[Any]:
    """A run's number is the mean of its elements."""
    segments = call.outputs[1]
    *outer, size = segments.dims
    rows = product(outer)
    starts = number_range(dims_tensor(rows, dtypes.int64)) * dims_tensor(size, dtypes.int64)
    numbers = cast(reshape_to(segments, (rows, size)), dtypes.int64) + reshape_to(starts, (rows, 1))
    ids = reshape_to(numbers, (rows * size,))
    total = dims_tensor(rows * size, dtypes.int64)
    slopes = reshape_to(dy, (rows * size,))
    sums = unsorted_segment_sum(slopes, ids, total)
    counts = unsorted_segment_sum(ones_like(slopes), ids, total)
    return [reshape_to(gathered(sums / maximum(counts, 1.0), ids), segments.dims)]


ISOTONIC = register(
    Op(
        "isotonic_regression", _infer, _eager, _grad,
        callback="which runs join depends on all numbers before",
    )
)  # fmt: skip


class IsotonicRegression(NamedTuple):
    """The numbers, and which run each belongs to."""

    output: Tensor
    segments: Tensor


def isotonic_regression(
    inputs: Any, decreasing: bool = True, axis: int = -1
) -> IsotonicRegression:
    """The numbers nearest to the inputs, by the sum of squares, that do not rise along an axis.

    Args:
        inputs: int8 and int16 give float32 numbers, other integers float64.
        decreasing: False for numbers that do not fall.

    Returns:
        The numbers, each the mean of a run of inputs, whose gradient is the mean over the run; and
        the int32 numbers of the runs, which begin at 0. Both have the shape of the inputs.

    Raises:
        InvalidArgumentError: a scalar.
        TypeError: complex numbers, bools or strings.
    """
    x = convert_to_tensor(inputs)
    if x.dtype.is_integer:
        narrow = x.dtype in (dtypes.int8, dtypes.int16)
        x = cast(x, dtypes.float32 if narrow else dtypes.float64)
    place = normalize_axis(axis, x.ndim)
    order = [k for k in range(x.ndim) if k != place] + [place]
    back = [order.index(k) for k in range(x.ndim)]
    moved = permute(x, order)
    numbers, segments = run(ISOTONIC, moved if decreasing else -moved)
    numbers = numbers if decreasing else -numbers
    return IsotonicRegression(permute(numbers, back), permute(segments, back))
