"""Pieces of strings: those of all strings one after another, and how many each string has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray


def listed_pieces(
    rows: Sequence[Sequence[Any]], shape: tuple[int, ...], like: Any
) -> tuple[NDArray, NDArray]:
    """The pieces, of the dtype of `like`, and their numbers (int64), of the strings' shape."""
    items = [item for row in rows for item in row]
    dtype = object if isinstance(like, bytes) else np.asarray(like).dtype
    pieces = np.empty(len(items), dtype)
    pieces[:] = items
    return pieces, np.fromiter(map(len, rows), np.int64, len(rows)).reshape(shape)


def with_pieces(x: Spec, dtype: dtypes.DType = dtypes.string) -> tuple[TensorSpec, TensorSpec]:
    """The specs of `listed_pieces` for the strings of a tensor."""
    return TensorSpec([fresh_symbol("pieces")], dtype), TensorSpec(x.dims, dtypes.int64)
