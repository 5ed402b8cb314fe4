"""Cross-entropies of logits, numerically stable, each with a gradient of one row kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.shapes import TensorShape, broadcast
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Affine, Expr, Index, Iota, Reduce, apply, as_index, cast, const
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast as cast_to
from treadle.ops.elementwise.unary import sigmoid, square
from treadle.ops.indexing.transposing import transpose
from treadle.ops.lowering import Compute, LowerCall, elementwise_rule, index_expr
from treadle.ops.nn.softmax import (
    Row,
    log_softmax,
    normal_axis,
    probabilities,
    probability,
    read_row,
    row_axis,
    shifted_exp,
    softmax,
    wide,
)  # fmt: skip
from treadle.ops.op_makers import needs, require_kinds
from treadle.ops.properties import Refusal
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import Pairs

# -- sparse labels: one class number a row ---------------------------------------------------------


def _infer_sparse(logits: TensorSpec, labels: TensorSpec, *, axis: int) -> TensorSpec:
    require_kinds("f", logits)
    require_kinds("iu", labels)
    if logits.rank < 1 or not TensorShape(logits.dims[:-1]).is_compatible_with(labels.shape):
        raise ValueError(
            f"labels must have the shape of logits without its last axis: labels {labels.shape}, "
            f"logits {logits.shape}"
        )
    return TensorSpec(logits.dims[:-1], logits.dtype)


def _infer_sparse_grad(logits: TensorSpec, labels: TensorSpec, dloss: TensorSpec) -> TensorSpec:
    _infer_sparse(logits, labels, axis=logits.rank - 1)
    return logits


def _check_labels(labels: NDArray, classes: int) -> None:
    if labels.dtype.kind not in "iu":
        raise TypeError("labels must be integers")
    bad = labels[(labels < 0) | (labels >= classes)]
    if bad.size:
        raise errors.InvalidArgumentError(
            None, None, f"label {bad[0]} is outside the valid range [0, {classes})"
        )


def _eager_sparse(logits: NDArray, labels: NDArray, *, axis: int) -> NDArray:
    if logits.ndim < 1 or logits.shape[:-1] != labels.shape:
        raise ValueError("logits and labels do not fit together")
    _check_labels(labels, logits.shape[-1])
    shifted, _, total = shifted_exp(wide(logits), -1)
    picked = np.take_along_axis(shifted, labels[..., None].astype(np.int64), axis=-1)
    loss: NDArray = (np.log(total) - picked)[..., 0]
    return loss.astype(logits.dtype, copy=False)


def _eager_sparse_grad(logits: NDArray, labels: NDArray, dloss: NDArray) -> NDArray:
    _check_labels(labels, logits.shape[-1])
    p = probabilities(wide(logits), -1)
    where = labels[..., None].astype(np.int64)
    np.put_along_axis(p, where, np.take_along_axis(p, where, -1) - 1, -1)
    return (p * dloss[..., None]).astype(logits.dtype, copy=False)


def _last_row(call: LowerCall, index: Sequence[Index], place: int) -> Row:
    return read_row(
        call.inputs[0], index, place, row_axis(call, index, place, call.specs[0].dims[-1])
    )


def _open_row(call: LowerCall, index: Sequence[Index]) -> tuple[Row, list[Index]]:
    """The logits row that belongs to one loss, whose index lacks the class axis."""
    axis = call.axis(call.specs[0].dims[-1])
    full = [*index, as_index(axis)]
    return read_row(call.inputs[0], full, len(full) - 1, axis), full


def _checked(label: Expr, classes: Expr, value: Expr) -> Expr:
    """`value`, or NaN where the label is out of range."""
    inside = apply("and", apply("ge", label, const(0, dtypes.int64)), apply("lt", label, classes))
    return apply("select", inside, value, const(float("nan"), value.dtype))


def _classes(call: LowerCall) -> Expr:
    return index_expr(as_index(call.specs[0].dims[-1]))


def _lower_sparse(call: LowerCall, index: Sequence[Index]) -> Expr:
    row, _ = _open_row(call, index)
    label = cast(call.inputs[1](index), dtypes.int64)
    chosen = apply("eq", Iota(row.axis, dtypes.int32), cast(label, dtypes.int32))
    shifted = apply("sub", row.value, row.highest)
    none = const(0, shifted.dtype)
    picked = Reduce("sum", (row.axis,), apply("select", chosen, shifted, none))
    return _checked(label, _classes(call), apply("sub", apply("log", row.total), picked))


def _int32(index: Index) -> Expr:
    if isinstance(index, Affine) and len(index.terms) == 1 and index.offset == 0:
        axis, coefficient = index.terms[0]
        if coefficient == 1:
            return Iota(axis, dtypes.int32)
    return cast(index_expr(index), dtypes.int32)


def _lower_sparse_grad(call: LowerCall, index: Sequence[Index]) -> Expr:
    row, outer = _last_row(call, index, len(index) - 1), index[:-1]
    x = call.inputs[0](index)
    label = cast(call.inputs[1](outer), dtypes.int64)
    p = probability(x, row)
    # 32-bit comparisons fill vectors as float32 does; _checked looks at the whole label.
    hit = apply("eq", _int32(index[-1]), cast(label, dtypes.int32))
    slope = apply("sub", p, apply("select", hit, const(1, p.dtype), const(0, p.dtype)))
    return _checked(label, _classes(call), apply("mul", slope, call.inputs[2](outer)))


def _grad_sparse(call: OpCall, dloss: Tensor) -> list[Any]:
    logits, labels = call.inputs
    return [run(SPARSE_GRAD, logits, labels, dloss), None]


def _softmax_bend(p: Tensor, g: Tensor) -> Tensor:
    """The product of softmax's Jacobian at `p` with `g`."""
    return p * (g - reduce_sum(p * g, -1, keepdims=True))


def _grad_sparse_grad(call: OpCall, g: Tensor) -> list[Any]:
    logits, labels, dloss = call.inputs
    to_logits = _softmax_bend(softmax(logits), g) * dloss[..., None]
    slope = run(SPARSE_GRAD, logits, labels, dloss * 0 + 1)
    return [to_logits, None, reduce_sum(g * slope, -1)]


def _labelled(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """Labels have the dims of the logits, all of them or all but the classes; so have the
    gradients of the losses."""
    logits, *others = specs
    for spec in others:
        yield from zip(spec.dims, logits.dims, strict=False)


SPARSE = register(
    Op(
        "sparse_softmax_cross_entropy", _infer_sparse, _eager_sparse, _grad_sparse,
        Compute(_lower_sparse, "reduce"), refuses=Refusal.POSITION, sizes=_labelled,
    )
)  # fmt: skip
SPARSE_GRAD = register(
    Op(
        "sparse_softmax_cross_entropy_grad", _infer_sparse_grad, _eager_sparse_grad,
        _grad_sparse_grad, Compute(_lower_sparse_grad, "reduce"), sizes=_labelled,
    )
)  # fmt: skip


def sparse_softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """``-log(softmax(logits)[label])`` for each row.

    Args:
        labels: int classes in [0, C), shape [...].
        logits: floats, shape [..., C].
        name: accepted for TensorFlow programs.

    Returns:
        The losses, of labels' shape and logits' dtype.

    Raises:
        ValueError: the shapes do not fit together.
        InvalidArgumentError: a label is outside [0, C).
    """
    x, y = convert_to_tensor(logits), convert_to_tensor(labels)
    return run(SPARSE, x, y, axis=x.ndim - 1)  # type: ignore[no-any-return]


# -- dense labels: a distribution a row ------------------------------------------------------------


def _infer_dense(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    require_kinds("f", logits, labels)
    if logits.rank < 1 or not logits.shape.is_compatible_with(labels.shape):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"logits and labels must have one shape: logits {logits.shape}, labels {labels.shape}",
        )
    return TensorSpec(logits.dims[:-1], logits.dtype)


def _infer_dense_grad(logits: TensorSpec, labels: TensorSpec, dloss: TensorSpec) -> TensorSpec:
    _infer_dense(logits, labels)
    return logits


def _check_labels_fit(logits: NDArray, labels: NDArray) -> None:
    """ValueError, which the shape rule explains, where NumPy would broadcast."""
    if not logits.ndim or logits.shape != labels.shape:
        raise ValueError("logits and labels do not fit together")


def _eager_dense(logits: NDArray, labels: NDArray) -> NDArray:
    _check_labels_fit(logits, labels)
    shifted, _, total = shifted_exp(wide(logits), -1)
    loss: NDArray = np.sum(wide(labels, logits) * (np.log(total) - shifted), axis=-1)
    return loss.astype(logits.dtype, copy=False)


def _eager_dense_grad(logits: NDArray, labels: NDArray, dloss: NDArray) -> NDArray:
    p = probabilities(wide(logits), -1)
    return ((p - labels) * dloss[..., None]).astype(logits.dtype, copy=False)


def _lower_dense(call: LowerCall, index: Sequence[Index]) -> Expr:
    row, full = _open_row(call, index)
    shifted = apply("sub", row.value, row.highest)
    terms = apply("mul", call.inputs[1](full), apply("sub", apply("log", row.total), shifted))
    return Reduce("sum", (row.axis,), terms)


def _lower_dense_grad(call: LowerCall, index: Sequence[Index]) -> Expr:
    row = _last_row(call, index, len(index) - 1)
    x = call.inputs[0](index)
    p = probability(x, row)
    return apply("mul", apply("sub", p, call.inputs[1](index)), call.inputs[2](index[:-1]))


def _grad_dense(call: OpCall, dloss: Tensor) -> list[Any]:
    logits, labels = call.inputs
    to_logits = run(DENSE_GRAD, logits, labels, dloss) if needs(call, 0) else None
    to_labels = -log_softmax(logits) * dloss[..., None] if needs(call, 1) else None
    return [to_logits, to_labels]


def _grad_dense_grad(call: OpCall, g: Tensor) -> list[Any]:
    logits, labels, dloss = call.inputs
    p = softmax(logits)
    scale = dloss[..., None]
    return [_softmax_bend(p, g) * scale, -g * scale, reduce_sum(g * (p - labels), -1)]


DENSE = register(
    Op(
        "softmax_cross_entropy", _infer_dense, _eager_dense, _grad_dense,
        Compute(_lower_dense, "reduce"), sizes=_labelled,
    )
)  # fmt: skip
DENSE_GRAD = register(
    Op(
        "softmax_cross_entropy_grad", _infer_dense_grad, _eager_dense_grad, _grad_dense_grad,
        Compute(_lower_dense_grad, "reduce"), sizes=_labelled,
    )
)  # fmt: skip


def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: int = -1, name: str | None = None
) -> Tensor:
    """``-sum(labels * log(softmax(logits)), axis)``; gradients flow to both.

    Args:
        labels: distributions along `axis`, cast to logits' dtype, of logits' shape, or both
            broadcast; as many of them in axes of another number.
        logits: floats.
        axis: the class axis.
        name: accepted for TensorFlow programs.
    """
    x = convert_to_tensor(logits)
    y = cast_to(convert_to_tensor(labels, dtype_hint=x.dtype), x.dtype)
    if y.ndim == x.ndim and all(1 in d or d[0] == d[1] for d in zip(y.dims, x.dims, strict=True)):
        both = broadcast(y.dims, x.dims)
        x, y = broadcast_dims(x, both), broadcast_dims(y, both)
    place = normal_axis(axis, x.ndim)
    if place != x.ndim - 1:
        x, y = _class_axis_last(x, place), _class_axis_last(y, place)
    if y.ndim > 1 < x.ndim != y.ndim and y.dims[-1] == x.dims[-1]:
        y = reshape_to(y, x.dims)  # both are rows of classes, as TensorFlow takes them
    return run(DENSE, x, y)  # type: ignore[no-any-return]


def _class_axis_last(x: Tensor, axis: int) -> Tensor:
    return transpose(x, [i for i in range(x.ndim) if i != axis] + [axis])


# -- independent binary labels ---------------------------------------------------------------------


def _infer_sigmoid(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    require_kinds("f", logits, labels)
    if not logits.shape.is_compatible_with(labels.shape):
        raise ValueError(
            f"logits and labels must have one shape: logits {logits.shape}, labels {labels.shape}"
        )
    return logits


def _eager_sigmoid(logits: NDArray, labels: NDArray) -> NDArray:
    if logits.shape != labels.shape:
        raise ValueError("logits and labels do not fit together")
    x = wide(logits, labels)
    loss: NDArray = np.maximum(x, 0) - x * wide(labels) + np.log1p(np.exp(-np.abs(x)))
    return loss.astype(logits.dtype, copy=False)


def _lower_sigmoid(call: LowerCall, x: Expr, z: Expr) -> Expr:
    linear = apply("sub", apply("max", x, const(0, x.dtype)), apply("mul", x, z))
    return apply("add", linear, apply("log1p", apply("exp", apply("neg", apply("abs", x)))))


def _grad_sigmoid(call: OpCall, dloss: Tensor) -> list[Any]:
    x, z = call.inputs
    to_logits = dloss * (sigmoid(x) - z) if needs(call, 0) else None
    return [to_logits, -x * dloss if needs(call, 1) else None]


SIGMOID = register(
    Op(
        "sigmoid_cross_entropy", _infer_sigmoid, _eager_sigmoid, _grad_sigmoid,
        elementwise_rule(_lower_sigmoid),
    )
)  # fmt: skip


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """``-labels*log(sigmoid(logits)) - (1-labels)*log(1-sigmoid(logits))``, elementwise."""
    x = convert_to_tensor(logits)
    return run(SIGMOID, x, convert_to_tensor(labels, dtype_hint=x.dtype))  # type: ignore[no-any-return]


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """``sum(t ** 2) / 2``, without the square root of a norm."""
    return reduce_sum(square(convert_to_tensor(t))) * 0.5
