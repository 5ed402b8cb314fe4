"""NumPy's functions that join and split, on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array, promoted
from treadle.numpy_staging.reductions import flat
from treadle.numpy_staging.shapes import atleast_1d, atleast_2d, atleast_3d
from treadle.ops.axes import normalize_axis
from treadle.ops.elementwise.casting import cast
from treadle.ops.shaping import joining, splitting
from treadle.ops.shaping.reshaping import reshape_to


def concatenate(arrays: Any, axis: Any = 0, *, dtype: Any = None) -> Tensor:
    parts = _together(arrays, dtype)
    if axis is None:
        return joining.concat([flat(p) for p in parts], 0)
    return joining.concat(parts, axis)


def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Tensor:
    return joining.stack(_together(arrays, dtype), axis)


def _together(arrays: Any, dtype: Any = None) -> list[Tensor]:
    parts = [as_array(a) for a in arrays]
    return promoted(parts) if dtype is None else [cast(p, dtype) for p in parts]


def vstack(tup: Any, *, dtype: Any = None) -> Tensor:
    return joining.concat([atleast_2d(a) for a in _together(tup, dtype)], 0)


def hstack(tup: Any, *, dtype: Any = None) -> Tensor:
    parts = [atleast_1d(a) for a in _together(tup, dtype)]
    return joining.concat(parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tup: Any) -> Tensor:
    return joining.concat([atleast_3d(a) for a in _together(tup)], 2)


def column_stack(tup: Any) -> Tensor:
    parts = [reshape_to(a, (*a.dims, 1)) if a.ndim == 1 else a for a in _together(tup)]
    return joining.concat(parts, 1)


def append(arr: Any, values: Any, axis: Any = None) -> Tensor:
    return concatenate([arr, values], axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x = as_array(ary)
    if isinstance(indices_or_sections, int | np.integer):
        return splitting.split(x, int(indices_or_sections), axis)
    return _cut_at(x, list(indices_or_sections), axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x = as_array(ary)
    if not isinstance(indices_or_sections, int | np.integer):
        return _cut_at(x, list(indices_or_sections), axis)
    count, length = int(indices_or_sections), x.dims[normalize_axis(axis, x.ndim)]
    if not isinstance(length, int):
        raise ValueError(f"np.array_split needs an axis of known size{at(user_origin())}")
    each, extra = divmod(length, count)
    return splitting.split(x, [each + 1] * extra + [each] * (count - extra), axis)


def _cut_at(x: Tensor, places: list[Any], axis: int) -> list[Tensor]:
    before = (slice(None),) * normalize_axis(axis, x.ndim)
    return [
        x[(*before, slice(a, b))] for a, b in zip([None, *places], [*places, None], strict=True)
    ]


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    return split(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    return split(ary, indices_or_sections, 1 if as_array(ary).ndim > 1 else 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    return split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return tuple(joining.unstack(as_array(x), axis=axis))


def block(arrays: Any) -> Tensor:
    """Nested lists: the innermost are joined along the last axis, and so on outwards."""
    depth, rank = _depth(arrays), _largest_rank(arrays)
    return _blocks(arrays, depth, max(depth, rank))


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _largest_rank(arrays: Any) -> int:
    if isinstance(arrays, list):
        return max(_largest_rank(a) for a in arrays)
    return as_array(arrays).ndim


def _blocks(arrays: Any, depth: int, rank: int) -> Tensor:
    if depth:
        return concatenate([_blocks(a, depth - 1, rank) for a in arrays], -depth)
    x = as_array(arrays)
    return reshape_to(x, (1,) * (rank - x.ndim) + x.dims)
