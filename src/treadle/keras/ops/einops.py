"""`keras.ops.rearrange`: axes split, moved and joined as a pattern says."""

from __future__ import annotations

import math
import re
from typing import Any

import treadle as td
from treadle.keras.ops.conversion import tensor
from treadle.keras.ops.core import shape
from treadle.keras.ops.operations import operation


def _groups(side: str) -> list[list[str]]:
    """The axes of one side of a pattern; those in parentheses belong together."""
    return [re.findall(r"\w+", group) for group in re.findall(r"\(.*?\)|\w+", side)]


@operation("einops", "tensor", "pattern", "axes_lengths")
def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """The axes in another order, as ``"b h w c -> b (h w) c"``: axes in parentheses are split or
    joined.

    Args:
        axes_lengths: sizes of axes that are split.

    Raises:
        ValueError: the pattern does not fit the tensor, or the sides name different axes.
    """
    left, arrow, right = pattern.partition("->")
    given, wanted = _groups(left), _groups(right)
    names, order = (
        [name for group in side for name in group] for side in (given, wanted)
    )  # fmt: skip
    x = _tensor(tensor)
    if not arrow or sorted(names) != sorted(order) or len({*names}) != len(names):
        raise ValueError(f"rearrange: the sides of {pattern!r} must name the same axes, each once")
    if len(given) != len(x.shape):
        raise ValueError(f"rearrange: {pattern!r} does not fit a tensor of shape {x.shape}")
    sizes: dict[str, Any] = dict(axes_lengths)
    for group, size in zip(given, shape(x), strict=True):
        unknown = [name for name in group if name not in sizes]
        if len(unknown) > 1:
            raise ValueError(f"rearrange: give the sizes of {unknown[1:]} in {pattern!r}")
        if unknown:
            sizes[unknown[0]] = size // math.prod(sizes[n] for n in group if n in sizes)
    x = td.transpose(td.reshape(x, [sizes[n] for n in names]), [names.index(n) for n in order])
    return td.reshape(x, [math.prod(sizes[n] for n in group) for group in wanted])


_tensor = tensor
