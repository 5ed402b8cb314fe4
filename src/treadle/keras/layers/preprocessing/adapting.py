"""The data that layers adapt themselves to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import treadle as td


def batches_of(data: Any, steps: int | None = None) -> Iterator[Any]:
    """The batches that `adapt` is given, as arrays: an array or a list of numbers and strings is
    one; a Dataset and other iterables have several. Of (inputs, ...) the inputs are taken."""
    if isinstance(data, np.ndarray | td.Tensor | td.Variable | list | tuple):
        several = isinstance(data, list | tuple) and all(map(_is_batch, data))
        given: Any = data if several else [data]
    else:
        given = data
    for number, batch in enumerate(given):
        if number == steps:
            return
        part = batch[0] if isinstance(batch, tuple) else batch
        if isinstance(part, int | float):
            raise TypeError(
                f"adapt: each batch of an iterable must have a `.shape`, got {part!r} of type "
                f"{type(part).__name__}"
            )
        yield part.numpy() if isinstance(part, td.Tensor | td.Variable) else np.asarray(part)


def _is_batch(value: Any) -> bool:
    """Whether an element of a list is an array, or (inputs, ...)."""
    return hasattr(value[0] if isinstance(value, tuple) and value else value, "shape")
