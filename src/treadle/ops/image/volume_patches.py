"""Patches of volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.image.windows import span
from treadle.ops.registry import run
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.padding import PAD
from treadle.ops.shaping.slicing import slice_known


def extract_volume_patches(
    input: Any, ksizes: Sequence[int], strides: Sequence[int], padding: str,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The blocks of a volume, each as one row of channels.

    Args:
        input: [batch, planes, rows, columns, channels].
        ksizes, strides: the sizes of blocks and the steps between them, ``[1, p, r, c, 1]``.
        padding: "VALID" or "SAME" (with zeros).

    Returns:
        [batch, planes, rows, columns, p * r * c * channels]

    Raises:
        InvalidArgumentError: another rank, padding, or sizes of another length.
        UnimplementedError: sizes or steps over the batch or the channels.
    """
    x = convert_to_tensor(input)
    sizes, steps = [int(k) for k in ksizes], [int(s) for s in strides]
    where = at(user_origin())
    if x.ndim != 5 or len(sizes) != 5 or len(steps) != 5 or min(*sizes, *steps) < 1:
        raise errors.InvalidArgumentError(
            None, None, f"extract_volume_patches: sizes {sizes} and strides {steps} for an input "
            f"of shape {x.shape}; five axes are expected{where}",
        )  # fmt: skip
    if padding not in ("VALID", "SAME"):
        raise errors.InvalidArgumentError(
            None, None, f"extract_volume_patches: padding {padding!r} is not VALID or SAME{where}"
        )
    if any(numbers[k] != 1 for numbers in (sizes, steps) for k in (0, 4)):
        raise errors.UnimplementedError(
            None, None, f"extract_volume_patches: sizes {sizes} and strides {steps}: the first and "
            f"the last must be 1{where}",
        )  # fmt: skip
    spans = [span(x.dims[k], sizes[k], steps[k], 1, padding) for k in (1, 2, 3)]
    if not all(each.fits for each in spans):
        text = f"extract_volume_patches: blocks of {sizes[1:4]} in {x.shape}{where}"
        raise errors.InvalidArgumentError(None, None, text)
    frame = ((0, 0), *((each.before, each.after) for each in spans), (0, 0))
    if any(width != 0 for pair in frame for width in pair):
        x = run(PAD, x, paddings=frame, mode="constant", value=0)
    counts = [each.count for each in spans]
    parts = []
    for plane in range(sizes[1]):
        for row in range(sizes[2]):
            for column in range(sizes[3]):
                begin = (0, plane, row, column, 0)
                parts.append(slice_known(x, begin, (x.dims[0], *counts, x.dims[4]), steps))
    return concat(parts, 4)
