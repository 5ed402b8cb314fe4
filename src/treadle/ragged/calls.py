"""What public functions do with ragged tensors: ``td.concat``, ``td.reduce_sum``, ``td.add`` ...

A ragged tensor is no tensor, so the conversion that all functions begin with hands their call over
to `call`, which knows the form of the function for ragged tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from treadle.core import dtypes
from treadle.core.errors import DtypeError
from treadle.core.origin import at, user_origin
from treadle.core.refusals import Claimed
from treadle.core.tensor import Tensor
from treadle.ops import dims
from treadle.ops.control import io
from treadle.ops.conversion import convert_to_tensor, register_converter
from treadle.ops.elementwise import arithmetic, bitcast, selection, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.function_names import BINARY, UNARY
from treadle.ops.indexing import common_shapes, gather, scatter, segments
from treadle.ops.indexing.bad_positions import is_ignored
from treadle.ops.linalg import matrices
from treadle.ops.nn import compositions, softmax
from treadle.ops.reductions import reduction, scan
from treadle.ops.shaping import creation, joining, permuting, reshaping, splitting
from treadle.ops.statistics import histograms, partitions, sequences
from treadle.ops.strings import parts, pieces, texts, unicode
from treadle.ragged import (
    dynamic_shape,
    gathering,
    products,
    reductions,
    rows,
    shaping,
    strings,
)
from treadle.ragged import segments as ragged_segments
from treadle.ragged.creation import stack_dynamic_partitions
from treadle.ragged.dynamic_shape import DynamicRaggedShape
from treadle.ragged.elementwise import binary, broadcast_like, map_flat_values
from treadle.ragged.tensor import RaggedTensor
from treadle.sparse.counts import bincount as sparse_bincount
from treadle.sparse.counts import dense_counts

_UNARY, _BINARY = frozenset(UNARY.split()), frozenset(BINARY.split())
_FORMS: dict[Any, Callable[..., Any]] = {
    joining.concat: shaping.concat,
    joining.stack: shaping.stack,
    reshaping.expand_dims: shaping.expand_dims,
    reshaping.squeeze: shaping.squeeze,
    reshaping.tile: shaping.tile,
    permuting.reverse: shaping.reverse,
    splitting.split: shaping.split,
    matrices.matmul: products.matmul,
    reduction.reduce_sum: reductions.reduce_sum,
    reduction.reduce_prod: reductions.reduce_prod,
    reduction.reduce_max: reductions.reduce_max,
    reduction.reduce_min: reductions.reduce_min,
    reduction.reduce_mean: reductions.reduce_mean,
    reduction.reduce_all: reductions.reduce_all,
    reduction.reduce_any: reductions.reduce_any,
    reduction.reduce_variance: reductions.reduce_variance,
    reduction.reduce_std: reductions.reduce_std,
    reduction.reduce_logsumexp: reductions.reduce_logsumexp,
    scan.cumsum: reductions.cumsum,
    parts.reduce_join: strings.reduce_join,
    pieces.ngrams: strings.ngrams,
    unicode.unicode_encode: strings.unicode_encode,
}


def form_of(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: calls of a public function with a ragged tensor are calls of the decorated one."""

    def decorate(form: Callable[..., Any]) -> Callable[..., Any]:
        _FORMS[function] = form
        return form

    return decorate


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public function's call with a ragged tensor among its arguments.

    Raises:
        DtypeError: the function has no form for ragged tensors.
    """
    own = inspect.unwrap(function)
    form = _FORMS.get(own)
    if form is not None:
        return form(*args, **kwargs)
    if own.__name__ in _UNARY:
        return map_flat_values(function, *args, **kwargs)
    if own.__name__ in _BINARY:
        given = inspect.signature(own).bind(*args, **kwargs).arguments
        (_, x), (_, y), *rest = given.items()
        return binary(function, x, y, **dict(rest))
    raise DtypeError(
        None, None,
        f"{own.__name__} does not take ragged tensors: use x.to_tensor(), or "
        f"td.ragged.map_flat_values for a function of elements{at(user_origin())}",
    )  # fmt: skip


def _claim(value: RaggedTensor, dtype: Any) -> Any:
    raise Claimed(
        "A ragged tensor is no tensor: use x.to_tensor(), x.flat_values, or "
        f"td.ragged.map_flat_values{at(user_origin())}",
        call,
    )


register_converter(RaggedTensor, _claim)


# -- functions with forms of their own -------------------------------------------------------------


@form_of(gather.gather)
def _gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0,
    name: str | None = None,
) -> Any:  # fmt: skip
    return gathering.gather(params, indices, None if axis is None else int(axis), batch_dims)


@form_of(scatter.gather_nd)
def _gather_nd(
    params: Any, indices: Any, batch_dims: int = 0, name: str | None = None,
    bad_indices_policy: str = "",
) -> Any:  # fmt: skip
    if batch_dims:
        raise ValueError(f"gather_nd of ragged tensors has no batch_dims{at(user_origin())}")
    if is_ignored(bad_indices_policy):
        raise ValueError(
            f"gather_nd of ragged tensors has no bad_indices_policy {bad_indices_policy!r}"
            f"{at(user_origin())}"
        )
    numbers = indices if isinstance(indices, RaggedTensor) else convert_to_tensor(indices)
    rank, depth = len(numbers.shape), numbers.shape[-1] if len(numbers.shape) else None
    if depth is None:
        raise ValueError(
            f"gather_nd: the last axis of the indices has a known size, not {numbers.shape}"
            f"{at(user_origin())}"
        )
    if rank > 2:
        return _gather_nd_of_axes(params, numbers)
    if isinstance(numbers, RaggedTensor) or not isinstance(params, RaggedTensor):
        return scatter.gather_nd(params, numbers)
    if depth == 0:  # no position: all of `params`
        if rank == 1:
            return params
        count = dims.dims_tensor(numbers.dims[0], dtypes.int64)
        once = [1] * len(params.shape)
        return shaping.tile(shaping.expand_dims(params, 0), [count, *once])
    outer = reshaping.reshape(numbers, [-1, depth])
    found: Any = params
    place = outer[:, 0]
    for axis in range(1, depth):
        if isinstance(found, RaggedTensor):
            splits = cast(found.row_splits, place.dtype)
            place, found = gather.gather(splits, place) + outer[:, axis], found.values
        else:
            rest = [dims.dims_tensor(d, dtypes.int64) for d in found.dims[2:]]
            width = dims.dims_tensor(found.dims[1], place.dtype)
            place, found = place * width + outer[:, axis], reshaping.reshape(found, [-1, *rest])
    chosen = rows.gather_rows(found, place)
    return chosen if rank == 2 else chosen[0]


def _gather_nd_of_axes(params: Any, indices: Any) -> Any:
    """Positions of more than one axis: ragged ones, or a tensor of them."""
    dense = isinstance(indices, Tensor)
    rank = len(indices.shape)
    if dense:
        indices = RaggedTensor.from_tensor(indices, ragged_rank=rank - 2)
    chosen = _gather_nd(params, indices.flat_values)
    whole = indices.with_flat_values(chosen)
    return whole.to_tensor() if dense and whole.ragged_rank == rank - 2 else whole


def _takes_segments(function: Callable[..., Any]) -> None:
    def of_rows(
        data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
    ) -> RaggedTensor:
        return ragged_segments.of_segments(function, data, segment_ids, num_segments)  # type: ignore[no-any-return]

    _FORMS[function] = of_rows


for _reduction in (
    gather.unsorted_segment_sum, segments.unsorted_segment_prod, segments.unsorted_segment_max,
    segments.unsorted_segment_min, segments.unsorted_segment_mean,
    segments.unsorted_segment_sqrt_n,
):  # fmt: skip
    _takes_segments(_reduction)


@form_of(selection.where)
def _where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    if x is None and y is None:
        return _places(condition)
    like = next(v for v in (condition, x, y) if isinstance(v, RaggedTensor))
    given = [_spread(v, like) for v in (condition, x, y)]
    return like.with_flat_values(selection.where(*given))


def _spread(value: Any, like: RaggedTensor) -> Any:
    if isinstance(value, RaggedTensor):
        return broadcast_like(value, like)
    tensor = convert_to_tensor(value)
    return value if not tensor.ndim else broadcast_like(tensor, like)


def _places(condition: RaggedTensor) -> Tensor:
    """The indices of the True elements."""
    flat = selection.where(condition.flat_values)
    columns = [flat[:, 0]]
    values: list[RaggedTensor] = [condition]
    while isinstance(values[-1].values, RaggedTensor):
        values.append(values[-1].values)
    for part in reversed(values):
        place = columns[0]
        row = gather.gather(part.value_rowids(), place)
        start = gather.gather(part.row_splits, row)
        columns[:1] = [cast(row, dtypes.int64), place - cast(start, dtypes.int64)]
    rest = [flat[:, i] for i in range(1, flat.shape[1] or 1)]
    return joining.stack([*columns, *rest], 1)


@form_of(dims.rank)
def _rank(input: RaggedTensor, name: str | None = None) -> Tensor:
    return convert_to_tensor(len(input.shape))


@form_of(dims.size)
def _size(input: RaggedTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    return dims.size(input.flat_values, dtypes.int32 if out_type is None else out_type)


@form_of(dims.shape)
def _shape(
    input: RaggedTensor, out_type: Any = dtypes.int32, name: str | None = None
) -> DynamicRaggedShape:
    return DynamicRaggedShape.from_tensor(input, out_type)


_SHAPE_FORMS: dict[Any, Callable[..., Any]] = {}


def _takes_shapes(function: Callable[..., Any], form: Callable[..., Any]) -> None:
    """Let a function take a `DynamicRaggedShape` among its arguments."""

    def given(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(v, DynamicRaggedShape) for v in (*args, *kwargs.values())):
            raise DtypeError(
                None, None,
                f"{function.__name__} of a ragged tensor takes a td.experimental."
                f"DynamicRaggedShape, such as td.shape of another one{at(user_origin())}",
            )  # fmt: skip
        return form(*args, **kwargs)

    _FORMS[function] = _SHAPE_FORMS[function] = given


_takes_shapes(reshaping.reshape, dynamic_shape.reshape)
_takes_shapes(reshaping.broadcast_to, dynamic_shape.broadcast_to)
_takes_shapes(creation.zeros, dynamic_shape.zeros)
_takes_shapes(creation.ones, dynamic_shape.ones)
_takes_shapes(creation.fill, dynamic_shape.fill)
_takes_shapes(common_shapes.broadcast_dynamic_shape, dynamic_shape.broadcast_dynamic_shape)


_NO_TENSOR = (
    "The shape of a ragged tensor is no tensor: use shape[axis] for sizes, x.bounding_shape() or "
    "x.row_lengths()"
)


def _call_with_shape(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public function's call with the shape of a ragged tensor among its arguments."""
    form = _SHAPE_FORMS.get(inspect.unwrap(function))
    if form is None:
        raise DtypeError(None, None, f"{function.__name__}: {_NO_TENSOR}{at(user_origin())}")
    return form(*args, **kwargs)


def _claim_shape(value: DynamicRaggedShape, dtype: Any) -> Any:
    raise Claimed(f"{_NO_TENSOR}{at(user_origin())}", _call_with_shape)


register_converter(DynamicRaggedShape, _claim_shape)


@form_of(unary.identity)
def _identity(input: RaggedTensor, name: str | None = None) -> RaggedTensor:
    return input


@form_of(compositions.embedding_lookup)
def _embedding_lookup(
    params: Any, ids: RaggedTensor, max_norm: Any = None, name: str | None = None
) -> RaggedTensor:
    found = compositions.embedding_lookup(params, ids.flat_values, max_norm)
    return ids.with_flat_values(found)


@form_of(compositions.dropout)
def _dropout(x: RaggedTensor, *args: Any, **kwargs: Any) -> RaggedTensor:
    return map_flat_values(compositions.dropout, x, *args, **kwargs)  # type: ignore[no-any-return]


@form_of(creation.one_hot)
def _one_hot(
    indices: RaggedTensor, depth: Any, on_value: Any = None, off_value: Any = None,
    axis: Any = None, dtype: Any = None, name: str | None = None,
) -> RaggedTensor:  # fmt: skip
    if isinstance(axis, int) and axis >= 0:
        if axis <= indices.ragged_rank:
            raise ValueError(
                f"one_hot: axis {axis} is not behind the {indices.ragged_rank + 1} axes of the "
                f"ragged rows{at(user_origin())}"
            )
        axis -= indices.ragged_rank
    found = creation.one_hot(indices.flat_values, depth, on_value, off_value, axis, dtype)
    return indices.with_flat_values(found)


@form_of(arithmetic.add_n)
def _add_n(inputs: Any, name: str | None = None) -> Any:
    return map_flat_values(arithmetic.add_n, inputs)


@form_of(parts.join)
def _join(inputs: Any, separator: Any = "", name: str | None = None) -> Any:
    return map_flat_values(parts.join, inputs, separator)


@form_of(texts.as_string)
def _as_string(input: Any, *args: Any, **kwargs: Any) -> Any:
    return map_flat_values(texts.as_string, input, *args, **kwargs)


@form_of(softmax.softmax)
def _softmax(logits: RaggedTensor, axis: Any = None, name: str | None = None) -> RaggedTensor:
    rank = len(logits.shape)
    number = (-1 if axis is None else int(axis)) % rank
    if number > logits.ragged_rank:
        found = softmax.softmax(logits.flat_values, number - logits.ragged_rank)
        return logits.with_flat_values(found)
    largest = reductions.reduce_max(logits, number, keepdims=True)
    powers = binary(lambda a, b: unary.exp(a - b), logits, largest)
    total = reductions.reduce_sum(powers, number, keepdims=True)
    return binary(arithmetic.divide, powers, total)  # type: ignore[no-any-return]


@form_of(sequences.sequence_mask)
def _sequence_mask(lengths: Any, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(f"sequence_mask takes x.row_lengths(){at(user_origin())}")


@form_of(io.print)
def _print(*inputs: Any, **kwargs: Any) -> None:
    shown = [str(v) if isinstance(v, RaggedTensor) and not v.is_symbolic else v for v in inputs]
    io.print(*(v.flat_values if isinstance(v, RaggedTensor) else v for v in shown), **kwargs)


@form_of(partitions.dynamic_partition)
def _partitioned(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> Any:
    rows_of = stack_dynamic_partitions(data, partitions, num_partitions)
    return [rows_of[i] for i in range(num_partitions)]


@form_of(bitcast.bitcast)
def _bitcast(input: RaggedTensor, type: Any, name: str | None = None) -> Any:
    found = bitcast.bitcast(input.flat_values, type)
    if found.ndim < input.flat_values.ndim and input.flat_values.ndim == 1:
        raise ValueError(f"bitcast: the rows of ragged axes are no bytes{at(user_origin())}")
    return input.with_flat_values(found)


@form_of(histograms.bincount)
def _counts(arr: Any, weights: Any = None, *args: Any, **kwargs: Any) -> Any:
    return dense_counts(_as_sparse(arr), _as_sparse(weights), *args, **kwargs)


@form_of(inspect.unwrap(sparse_bincount))
def _sparse_counts(values: Any, weights: Any = None, *args: Any, **kwargs: Any) -> Any:
    return sparse_bincount(_as_sparse(values), _as_sparse(weights), *args, **kwargs)


def _as_sparse(value: Any) -> Any:
    return value.to_sparse() if isinstance(value, RaggedTensor) else value
