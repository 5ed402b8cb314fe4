"""Batches of sequences of different lengths: masks and reversal."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.axes import normalize_axis
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather
from treadle.ops.reductions.reduction import reduce_all, reduce_max
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None
) -> Tensor:
    """True for the first positions of each sequence: ``mask[..., j]`` is ``j < lengths[...]``.

    Args:
        lengths: integers of any shape.
        maxlen: the size of the last axis of the result; the greatest length by default.
        dtype: of the result.

    Raises:
        InvalidArgumentError: `maxlen` is not a scalar.
    """
    x, kind = convert_to_tensor(lengths), dtypes.as_dtype(dtype)
    if kind is dtypes.string:
        text = f"sequence_mask: bool is not cast to {kind.name}{at(user_origin())}"
        raise errors.UnimplementedError(None, None, text)
    if maxlen is None:
        size = maximum(reduce_max(x), convert_to_tensor(0, x.dtype))
    else:
        size = convert_to_tensor(maxlen)
        if size.ndim:
            text = f"sequence_mask: maxlen must be a scalar, not of shape {size.shape}"
            raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
        x = cast(x, size.dtype)
    mask = number_range(size, dtype=x.dtype) < expand_dims(x, -1)
    return cast(mask, kind)


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The first ``seq_lengths[i]`` elements of sequence i in reverse order, the others as they are.

    Args:
        seq_lengths: [input.shape[batch_axis]] integers.
        seq_axis: the axis to reverse along.
        batch_axis: the axis of the sequences, 0 by default.

    Raises:
        InvalidArgumentError: a length is negative or greater than the size of `seq_axis`, or both
            axes are the same.
        TypeError: `seq_axis` is None.
    """
    x, lengths = convert_to_tensor(input), cast(seq_lengths, dtypes.int64)
    if seq_axis is None:
        raise TypeError(f"reverse_sequence: seq_axis must be given{at(user_origin())}")
    along, batch = normalize_axis(seq_axis, x.ndim), normalize_axis(batch_axis or 0, x.ndim)
    if along == batch or lengths.ndim != 1:
        text = "seq_axis and batch_axis are the same" if along == batch else (
            f"seq_lengths must be a vector, not of shape {lengths.shape}"
        )  # fmt: skip
        text = f"reverse_sequence: {text}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    count = dims_tensor(x.dims[along], dtypes.int64)
    fits = reduce_all((lengths >= 0) & (lengths <= count))
    Assert(fits, [f"reverse_sequence: a length does not fit shape {x.shape}:", lengths])
    positions = number_range(count)
    ends = expand_dims(lengths, 1)
    order = where(positions < ends, ends - 1 - positions, positions)
    front = [batch, along]
    axes = [*front, *(a for a in range(x.ndim) if a not in front)]
    back = [axes.index(a) for a in range(x.ndim)]
    return permute(gather(permute(x, axes), order, axis=1, batch_dims=1), back)
