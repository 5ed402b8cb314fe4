"""Broadcasting, and undoing it in gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treadle.core import errors
from treadle.core.shapes import Dim, SymbolicDim, shape_text
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.lowering import Compute, broadcast_inputs
from treadle.ops.registry import Op, register, run
from treadle.ops.sizes import Pair, same_dims

_undo: Callable[[Tensor, tuple[Dim, ...]], Tensor]


def register_undo(fn: Callable[[Tensor, tuple[Dim, ...]], Tensor]) -> None:
    """`unbroadcast` sums with ``fn(grad, dims)``."""
    global _undo
    _undo = fn


def unbroadcast(grad: Tensor, x: Tensor) -> Tensor:
    """`grad` summed over the axes along which `x` was broadcast, giving x's shape."""
    return grad if grad.dims == x.dims else _undo(grad, x.dims)


def _eager_sum_to(grad: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    fits = all(wanted in (1, dim) for wanted, dim in zip(shape, grad.shape, strict=True))
    if not fits:
        raise errors.InvalidArgumentError(
            None, None, f"a gradient of shape {grad.shape} is not one of an operand of {shape}"
        )
    axes = tuple(i for i, dim in enumerate(grad.shape) if shape[i] != dim)
    return grad.sum(axes, grad.dtype, keepdims=True)  # type: ignore[no-any-return]


# Dims that are unknown while tracing count as not broadcast in a program. Where a call's sizes say
# otherwise NumPy runs the graph, and this sums.
SUM_TO = register(
    Op(
        "sum_to",
        lambda grad, *, shape: TensorSpec(shape, grad.dtype),
        _eager_sum_to,
        lambda call, dz: [broadcast_dims(dz, call.inputs[0].dims)],
        Compute(lambda call, index: call.inputs[0](index), "view"),
        tags=frozenset({"alias"}),
        sizes=same_dims,
    )
)


def _eager_of_size(x: NDArray, *, shape: tuple[int, ...], of: str) -> NDArray:
    if x.shape != shape:
        text = f"{of}: an operand has shape {x.shape}, not {shape}"
        raise errors.InvalidArgumentError(None, None, text)
    return x


# An operand of the op `of` that a program takes to have the size of another operand.
OF_SIZE = register(
    Op(
        "of_size",
        lambda x, *, shape, of: TensorSpec(shape, x.dtype),
        _eager_of_size,
        lambda call, dy: [broadcast_dims(dy, call.inputs[0].dims)],
        Compute(lambda call, index: call.inputs[0](index), "view"),
        tags=frozenset({"alias", "any_elements"}),
        sizes=same_dims,
    )
)


def _eager_one_size(number: NDArray, *, pairs: tuple[Pair, ...], of: str) -> NDArray:
    if any(a != b for a, b in pairs):
        text = f"{of}: sizes of the operands differ: {pairs}"
        raise errors.InvalidArgumentError(None, None, text)
    return number


# A size that operands of the op `of` are taken to have: a number that is known once they are
# compared.
ONE_SIZE = register(
    Op(
        "one_size",
        lambda number, *, pairs, of: number,
        _eager_one_size,
        lower=Compute(lambda call, index: call.inputs[0](index), "view"),
        sizes=lambda specs, outs, attrs: iter(attrs["pairs"]),
    )
)


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
    if x.ndim > len(shape):  # an assignment drops leading axes of size 1
        np.broadcast_to(x, shape)  # its error tells both shapes
    result = np.empty(shape, x.dtype)  # a view by NumPy's function takes longer, and is copied then
    try:
        result[...] = x
    except ValueError:
        np.broadcast_to(x, shape)
        raise
    return result


BROADCAST_TO = register(
    Op(
        "broadcast_to",
        _infer_broadcast_to,
        _eager_broadcast_to,
        lambda call, grad: [unbroadcast(grad, call.inputs[0])],
        Compute(lambda call, index: broadcast_inputs(call, index)[0], "view"),
        tags=frozenset({"any_elements", "moves"}),
        same_elements=lambda dims, attrs: dims if tuple(attrs["shape"]) == dims else None,
    )
)


def broadcast_dims(x: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """`x` broadcast to known or symbolic dims; x itself where it has them already."""
    return x if x.dims == dims else run(BROADCAST_TO, x, shape=dims)
