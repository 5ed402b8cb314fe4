"""The lower and upper triangles of matrices."""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import selection
from treadle.ops.shaping import ranges


def tril(x: Tensor, k: int = 0) -> Tensor:
    """`x` with zeros above the diagonal `k` of its matrices, of shape [..., m, n]."""
    return _triangle(x, k, upper=False)


def triu(x: Tensor, k: int = 0) -> Tensor:
    """`x` with zeros below the diagonal `k` of its matrices, of shape [..., m, n]."""
    return _triangle(x, k, upper=True)


def _triangle(x: Tensor, k: int, upper: bool) -> Tensor:
    rows = ranges.range(dims_tensor(x.dims[-2], dtypes.int64))[:, None]
    distance = ranges.range(dims_tensor(x.dims[-1], dtypes.int64)) - rows
    kept = distance >= k if upper else distance <= k
    return selection.where(kept, x, convert_to_tensor(0, x.dtype))
