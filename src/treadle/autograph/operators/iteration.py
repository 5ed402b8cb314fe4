"""What a `for` statement can iterate in the graph."""

from __future__ import annotations

from typing import Any

from treadle.autograph.operators.values import Staged
from treadle.core.errors import OperatorNotAllowedInGraphError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.ops.dims import shape


def as_staged(iterable: Any) -> Staged | None:
    """`iterable` for a loop in the graph, or None where Python should iterate it."""
    if isinstance(iterable, Staged):
        return iterable
    if not isinstance(iterable, SymbolicTensor):
        return None
    tensor: Tensor = iterable
    if tensor.ndim == 0:
        raise OperatorNotAllowedInGraphError(
            f"A scalar tensor cannot be iterated over: {tensor!r}. Use td.range(n) to count"
            f"{at(user_origin())}"
        )
    return Staged(shape(tensor)[0], lambda i: tensor[i])


def staged_range(start: Any, limit: Any, delta: Any) -> Staged:
    """``range`` of symbolic tensors, without making an array."""
    from treadle.ops.conversion import convert_to_tensor

    numbers = [convert_to_tensor(v) for v in (start, limit, delta) if not isinstance(v, int)]
    dtype = numbers[0].dtype
    first, last, step = (convert_to_tensor(v, dtype) for v in (start, limit, delta))
    if isinstance(delta, int) and delta == 1:
        length = last - first if not (isinstance(start, int) and start == 0) else last
    else:
        sign = 1 if not isinstance(delta, int) or delta > 0 else -1
        length = (last - first + step - sign) // step
    simple = isinstance(start, int) and start == 0 and isinstance(delta, int) and delta == 1
    return Staged(length, (lambda i: i) if simple else (lambda i: first + i * step))
