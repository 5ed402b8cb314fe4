"""Gradients of operands that were broadcast: summed over the axes along which they were."""

from __future__ import annotations

from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.broadcasting import SUM_TO, register_undo
from treadle.ops.reductions.reduction import REDUCE_SUM
from treadle.ops.registry import run
from treadle.ops.shaping.reshaping import reshape_to


def _summed(grad: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    lead = grad.ndim - len(dims)
    axes = [i for i, d in enumerate(grad.dims) if i < lead or (dims[i - lead] == 1 and d != 1)]
    total = run(REDUCE_SUM, grad, axis=tuple(axes), keepdims=False) if axes else grad
    if len(axes) > lead:
        kept = iter(total.dims)
        ones = [i for i, d in enumerate(dims) if i + lead in axes]
        total = reshape_to(total, tuple(1 if i in ones else next(kept) for i in range(len(dims))))
    return total if total.dims == dims else run(SUM_TO, total, shape=dims)


register_undo(_summed)
