"""Parts of batches: ``operator[1, :, None]`` is made of parts of the tensors of an operator."""

from __future__ import annotations

import copy
from typing import Any

from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.shaping.creation import zeros


def batch_part(operator: Any, index: Any) -> Any:
    """The operator of some matrices of a batch.

    Args:
        operator: an operator that knows how many axes of its tensors are one matrix's.
        index: for the axes of the batch: numbers, slices, an ellipsis and None.

    Raises:
        InvalidArgumentError: there are more numbers and slices than axes of the batch, or a number
            is no position.
    """
    keys = _spread(operator, index if isinstance(index, tuple) else (index,))
    made = copy.copy(operator)
    for name, axes in zip(operator.parts, operator.event_axes, strict=True):
        value = getattr(operator, name)

        def part(x: Any, axes: int = axes) -> Any:
            if hasattr(x, "parts"):
                return batch_part(x, _fitting(keys, x.batch_shape, operator.batch_shape))
            shape = TensorShape(x.shape)[: len(x.shape) - axes]
            tensor = convert_to_tensor(x)
            return tensor[(*_fitting(keys, shape, operator.batch_shape), ...)]

        setattr(made, name, _mapped(part, value))
    if hasattr(operator, "with_batch"):
        made = made.with_batch(zeros(operator.batch_shape.exact, "bool")[tuple(keys)].dims)
    return made


def _mapped(part: Any, value: Any) -> Any:
    """The parts of an operator, of a tensor, or of lists of them."""
    if isinstance(value, list | tuple):
        return type(value)(_mapped(part, v) for v in value)
    return None if value is None else part(value)


def _spread(operator: Any, keys: tuple[Any, ...]) -> list[Any]:
    """The keys for all axes of the batch, without an ellipsis."""
    rank = len(operator.batch_shape.exact)
    count = sum(key is not None and key is not ... for key in keys)
    if count > rank:
        text = f"{operator.name}: {count} indices for a batch of {rank} axes{at(user_origin())}"
        raise InvalidArgumentError(None, None, text)
    filler = [slice(None)] * (rank - count)
    place = next((i for i, key in enumerate(keys) if key is ...), len(keys))
    return [*keys[:place], *filler, *keys[place + 1 :]]


def _fitting(keys: list[Any], own: TensorShape, whole: TensorShape) -> tuple[Any, ...]:
    """The keys for a tensor whose batch, of the shape `own`, is broadcast to `whole`: it lacks
    leading axes, and has one row where others have many."""
    missing = len(whole.exact) - len(own.exact)
    found: list[Any] = []
    axis = 0
    for key in keys:
        if key is None:
            if axis > missing or not missing:
                found.append(None)
            continue
        if axis >= missing:
            alone = own.exact[axis - missing] == 1 != whole.exact[axis]
            found.append((slice(None) if isinstance(key, slice) else 0) if alone else key)
        axis += 1
    return tuple(found)
