"""Broadcasting, and undoing it in gradients."""

from __future__ import annotations

import numpy as np

from treadle.core import errors
from treadle.core.shapes import Dim, SymbolicDim, shape_text
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.lowering import Compute, broadcast_inputs
from treadle.ops.registry import Op, register, run


def unbroadcast(grad: Tensor, x: Tensor) -> Tensor:
    """`grad` summed over the axes along which `x` was broadcast, giving x's shape.

    A dim that is unknown while tracing counts as not broadcast; the program checks that.
    """
    dims = x.dims
    if grad.dims == dims:
        return grad
    from treadle.ops.reduction import reduce_sum
    from treadle.ops.shaping import reshape_to, with_dims

    lead = grad.ndim - len(dims)
    axes = [i for i, d in enumerate(grad.dims) if i < lead or (dims[i - lead] == 1 and d != 1)]
    if not axes:
        return with_dims(grad, dims)
    total = reduce_sum(grad, axes)
    return total if len(axes) == lead else reshape_to(total, dims)


def _infer_broadcast_to(x: TensorSpec, *, shape: tuple[Dim, ...]) -> TensorSpec:
    lead = len(shape) - x.rank
    fits = lead >= 0 and all(
        d in (1, s) or isinstance(d, SymbolicDim) or isinstance(s, SymbolicDim)
        for d, s in zip(x.dims, shape[max(lead, 0) :], strict=True)
    )
    if not fits:
        raise errors.InvalidArgumentError(
            None, None, f"shape {x.shape} does not broadcast to {shape_text(shape)}"
        )
    return TensorSpec(shape, x.dtype)


def _eager_broadcast_to(x: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    return np.broadcast_to(x, shape)


BROADCAST_TO = register(
    Op(
        "broadcast_to",
        _infer_broadcast_to,
        _eager_broadcast_to,
        lambda call, grad: [unbroadcast(grad, call.inputs[0])],
        Compute(lambda call, index: broadcast_inputs(call, index)[0], "view"),
    )
)


def broadcast_dims(x: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """`x` broadcast to known or symbolic dims; x itself where it has them already."""
    return x if x.dims == dims else run(BROADCAST_TO, x, shape=dims)
