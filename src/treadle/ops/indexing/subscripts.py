"""``tensor[key]``: integers, slices, None, Ellipsis, scalar tensors and masks, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.indexing.basic import eager_part, expand, is_array, select
from treadle.ops.indexing.index_arrays import getitem_arrays
from treadle.ops.indexing.masks import boolean_mask


def getitem(x: Tensor, key: Any) -> Tensor:
    """``x[key]``. A key that only a run can tell (a tensor) may appear in any position.

    Raises:
        InvalidArgumentError: an index out of range.
        TypeError: a key of another type.
    """
    part = eager_part(x, key)
    if part is not None:
        return part
    items = list(key) if isinstance(key, tuple) or _is_list_of_keys(key) else [key]
    items = [list(item) if type(item) is tuple else item for item in items]
    mask = _only_mask(items)
    if mask is not None:
        return boolean_mask(x, mask)
    if any(map(is_array, items)):
        return getitem_arrays(x, items)
    return select(x, expand(items, x), key)


def _is_list_of_keys(key: Any) -> bool:
    """Whether a list stands for a tuple: it has a slice, which no array of indices has."""
    return isinstance(key, list) and any(
        part is None or part is Ellipsis or isinstance(part, slice) for part in key
    )


def _only_mask(items: list[Any]) -> Tensor | None:
    if len(items) != 1 or isinstance(items[0], slice | int) or items[0] is None:
        return None
    item = items[0]
    if isinstance(item, list) and item and isinstance(item[0], bool | list):
        item = convert_to_tensor(item)
    is_array = isinstance(item, np.ndarray) or has_dtype(item)
    if not is_array:
        return None
    mask = convert_to_tensor(item)
    return mask if mask.dtype.is_bool and mask.ndim else None
