"""Jacobians: one backward pass for each element of the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.autodiff.tape import GradientTape, UnconnectedGradients
from treadle.autodiff.values import zeros_for
from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.ops.conversion import constant, convert_to_tensor


def jacobian(
    tape: GradientTape, target: Any, sources: Any, unconnected: UnconnectedGradients
) -> Any:
    """See `GradientTape.jacobian`."""
    from treadle.ops.joining import stack
    from treadle.ops.shaping import reshape

    target = convert_to_tensor(target)
    flat = nest.flatten(sources)
    size = _static_size(target.dims, "jacobian")
    with tape.used_once():
        rows = [tape.vector_jacobian([target], [_unit(target, k)], flat) for k in range(size)]
    results: list[Any] = []
    for number, source in enumerate(flat):
        parts = _column(rows, number, source, unconnected)
        shape = (*target.dims, *source.spec.dims)
        results.append(None if parts is None else reshape(stack(parts), shape))
    return nest.pack(sources, results)


def batch_jacobian(
    tape: GradientTape, target: Any, source: Any, unconnected: UnconnectedGradients
) -> Any:
    """See `GradientTape.batch_jacobian`."""
    from treadle.ops.joining import stack
    from treadle.ops.shaping import reshape

    rank, dims = target.ndim, target.dims
    if rank < 2 or source.spec.rank < 2 or dims[0] != source.spec.dims[0]:
        raise ValueError(
            f"Need first dimension of target shape ({target.shape}) and source shape "
            f"({source.shape}) to match.{at(user_origin())}"
        )
    size = _static_size(dims[1:], "batch_jacobian")
    with tape.used_once():
        rows = [
            tape.vector_jacobian([target], [_unit_of_rows(target, k, size)], [source])
            for k in range(size)
        ]
    parts = _column(rows, 0, source, unconnected)
    if parts is None:
        return None
    # Row k holds the derivatives of element k of every example.
    return reshape(stack(parts, axis=1), (*dims, *source.spec.dims[1:]))


def _static_size(dims: Sequence[Any], what: str) -> int:
    size = product(dims)
    if not isinstance(size, int):
        raise ValueError(
            f"GradientTape.{what} needs a target of known shape, got {dims}{at(user_origin())}"
        )
    return size


def _unit(target: Tensor, k: int) -> Tensor:
    """The gradient that picks element k of the target."""
    unit = np.zeros(target.shape.as_list(), target.dtype.np_dtype)  # type: ignore[arg-type]
    unit.reshape(-1)[k] = 1
    return constant(unit)


def _unit_of_rows(target: Tensor, k: int, size: int) -> Tensor:
    """The gradient that picks element k of every example."""
    from treadle.ops.broadcasting import broadcast_dims
    from treadle.ops.shaping import reshape

    unit = np.zeros((1, size), target.dtype.np_dtype)
    unit[0, k] = 1
    dims = target.dims
    return broadcast_dims(reshape(constant(unit), (1, *dims[1:])), dims)


def _column(
    rows: Sequence[Sequence[Tensor | None]], number: int, source: Any, mode: UnconnectedGradients
) -> list[Tensor] | None:
    """The gradients of all rows for one source; None where no row depends on it."""
    parts = [row[number] for row in rows]
    if all(p is None for p in parts) and mode is UnconnectedGradients.NONE:
        return None
    return [zeros_for(source) if p is None else p for p in parts]
