"""Strings found in sorted strings."""

from __future__ import annotations

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.strings.texts import STRINGS


def _search(rows: NDArray, values: NDArray) -> NDArray:
    return np.searchsorted(rows, values).astype(np.int64)


def _infer_search(rows: Spec, values: Spec) -> TensorSpec:
    if len(rows.dims) != 1:
        raise ValueError(f"sorted strings are a vector, not a tensor of rank {len(rows.dims)}")
    return TensorSpec(values.dims, dtypes.int64)


STRING_SEARCH = register(Op("string_searchsorted", _infer_search, _search, tags=STRINGS))


def search(sorted_strings: Tensor, strings: Tensor) -> Tensor:
    """How many of the sorted strings [n] are smaller than each of the strings, int64."""
    return run(STRING_SEARCH, sorted_strings, strings)  # type: ignore[no-any-return]
