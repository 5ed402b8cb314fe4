"""The elements of sparse tensors: to and from tensors, arithmetic, sums, products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.composed import composed
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum as maximum_of
from treadle.ops.elementwise.arithmetic import minimum as minimum_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import abs as abs_of
from treadle.ops.elementwise.unary import exp
from treadle.ops.indexing.gather import gather, gathered, unsorted_segment_sum
from treadle.ops.indexing.scatter import gather_nd, tensor_scatter_nd_add, tensor_scatter_nd_update
from treadle.ops.indexing.segments import unsorted_segment_max
from treadle.ops.indexing.transposing import transpose as transpose_tensor
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.reductions.reduction import reduce_sum as reduce_sum_of
from treadle.ops.shaping.creation import fill, ones_like, zeros
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.permuting import swap_last
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import broadcast_to, reshape
from treadle.sparse.places import (
    as_sparse,
    axis_of,
    checked,
    invalid,
    numbered,
    places_of,
    rank_of,
    retain,
    sizes_of,
    summed,
)
from treadle.sparse.tensor import SparseTensor


def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The whole tensor.

    Args:
        default_value: the element everywhere else; zero, or the empty string, without it.
        validate_indices: whether the places must be in order, each once.

    Raises:
        InvalidArgumentError: they are not, or one is outside.
    """
    x = as_sparse(sp_input)
    if default_value is None:
        default_value = "" if x.dtype is dtypes.string else False if x.dtype.is_bool else 0
    sizes = sizes_of(x)
    if validate_indices:
        numbers = numbered(x.indices, sizes)
        checked(reduce_all(numbers[1:] > numbers[:-1]), "to_dense: the indices are out of order, "
                "or one is there twice: use td.sparse.reorder")  # fmt: skip
        inside = (x.indices >= 0) & (x.indices < x.dense_shape)
        checked(reduce_all(inside), "to_dense: an index is outside of the dense_shape")
    whole = fill(sizes, convert_to_tensor(default_value, x.dtype))
    return tensor_scatter_nd_update(whole, x.indices, x.values)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a tensor that are not zero, or not empty."""
    x = convert_to_tensor(tensor)
    empty = "" if x.dtype is dtypes.string else False if x.dtype.is_bool else 0
    indices = where(not_equal(x, convert_to_tensor(empty, x.dtype)))
    sizes = [dims_tensor(d, dtypes.int64) for d in x.dims]
    shape = stack(sizes) if sizes else zeros([0], dtypes.int64)
    found = SparseTensor(indices, gather_nd(x, indices), shape)
    found.set_shape(x.shape)
    return found


def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Bools that say which numbers the rows of the last axis hold."""
    x = as_sparse(sp_input)
    number = cast(x.values, dtypes.int64)[:, None]
    indices = concat([x.indices[:, :-1], number], 1)
    size = cast(convert_to_tensor(vocab_size), dtypes.int64)
    count = zeros([*sizes_of(x)[:-1], size], dtypes.int32)
    return tensor_scatter_nd_add(count, indices, ones_like(x.values, dtypes.int32)) > 0


def eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """The matrix with ones on its diagonal."""
    rows = cast(convert_to_tensor(num_rows), dtypes.int64)
    columns = rows if num_columns is None else cast(convert_to_tensor(num_columns), dtypes.int64)
    numbers = range_(minimum_of(rows, columns))
    ones = fill(reshape(minimum_of(rows, columns), [1]), cast(1, dtype))
    return SparseTensor(stack([numbers, numbers], 1), ones, stack([rows, columns]))


def mask(a: Any, mask_indices: Any, name: str | None = None) -> Any:
    """IndexedSlices without the rows of some numbers."""
    numbers = convert_to_tensor(mask_indices)
    kept = reduce_all(not_equal(a.indices[:, None], cast(numbers, a.indices.dtype)[None, :]), 1)
    chosen = where(kept)[:, 0]
    return a.with_rows(gather(a.values, chosen), gather(a.indices, chosen))


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the elements: sparse arguments, which have the same places, are replaced by values.

    Raises:
        ValueError: no argument is sparse.
        InvalidArgumentError: the places or the shapes differ.
    """
    found = [a for a in (*args, *kwargs.values()) if isinstance(a, SparseTensor)]
    if not found:
        raise ValueError(f"No SparseTensor in argument list of map_values{at(user_origin())}")
    for other in found[1:]:
        same = (found[0].indices.shape[0], other.indices.shape[0])
        if None not in same and same[0] != same[1]:
            checked(convert_to_tensor(False), "map_values: the places of the elements differ")
        checked(reduce_all(found[0].indices == other.indices), "map_values: the places differ")
        shapes = reduce_all(found[0].dense_shape == other.dense_shape)
        checked(shapes, "map_values: the shapes differ")
    values = op(*map(_values_of, args), **{k: _values_of(v) for k, v in kwargs.items()})
    return found[0].with_values(values)


def _values_of(x: Any) -> Any:
    return x.values if isinstance(x, SparseTensor) else x


# -- arithmetic ----------------------------------------------------------------------------------


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum of sparse tensors, which is one, or of a sparse tensor and a tensor, which is none.

    Args:
        threshold: sums of two elements that are nearer to zero are left out.
    """
    a, b = (as_sparse(v) if hasattr(v, "dense_shape") else v for v in (a, b))
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError(f"At least one input should be SparseTensor{at(user_origin())}")
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
        whole = convert_to_tensor(dense, sparse.dtype)
        return tensor_scatter_nd_add(whole, sparse.indices, sparse.values)
    both = _both(a, b)
    total = summed(both)
    limit = convert_to_tensor(threshold)
    if limit.is_symbolic or float(limit) > 0:
        counts = summed(both.with_values(ones_like(both.values, dtypes.int32))).values
        large = abs_of(total.values) >= cast(limit, total.dtype.real_dtype)
        total = retain(total, large | (counts < 2))
    return total


def _both(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The elements of two sparse tensors of one shape."""
    if a.dtype is not b.dtype or rank_of(a) != rank_of(b):
        raise invalid(
            f"Sparse tensors of {a.dtype.name} {a.shape} and {b.dtype.name} {b.shape} do not fit"
        )
    checked(reduce_all(a.dense_shape == b.dense_shape), "The shapes of two sparse tensors differ")
    joined = SparseTensor(
        concat([a.indices, b.indices], 0), concat([a.values, b.values], 0), a.dense_shape
    )
    return joined._shaped_like(a)


def _paired(function: Callable[[Tensor, Tensor], Tensor], a: Any, b: Any) -> SparseTensor:
    """`function` where one of two sparse tensors has an element, the other being zero there."""
    x, y = as_sparse(a), as_sparse(b)
    mine = summed(_both(x, y.with_values(y.values * 0)))
    theirs = summed(_both(x.with_values(x.values * 0), y))
    return mine.with_values(function(mine.values, theirs.values))


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger elements of two sparse tensors, zero counted where one of them has none."""
    return _paired(maximum_of, sp_a, sp_b)


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller elements of two sparse tensors, zero counted where one of them has none."""
    return _paired(minimum_of, sp_a, sp_b)


def with_dense(function: Callable[[Any, Any], Any], x: SparseTensor, y: Any) -> SparseTensor:
    """`function` of the elements and those of a tensor at their places, which broadcasts."""
    other = convert_to_tensor(y, x.dtype)
    if other.ndim:
        other = gather_nd(broadcast_to(other, sizes_of(x)), x.indices)
    return x.with_values(function(x.values, other))


def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of the elements of each row of the last axis; absent ones do not count."""
    x = as_sparse(sp_input)
    ids, count = _groups(x, [rank_of(x) - 1])
    largest = gather(unsorted_segment_max(x.values, ids, count), ids)
    powers = exp(x.values - largest)
    return x.with_values(powers / gather(unsorted_segment_sum(powers, ids, count), ids))


# -- sums ----------------------------------------------------------------------------------------


def _groups(x: SparseTensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The number of each element's place without some axes, and how many such places there are."""
    sizes = sizes_of(x)
    kept = [a for a in range(len(sizes)) if a not in axes]
    count = cast(1, dtypes.int64)
    ids = zeros([dims_tensor(x.indices.dims[0], dtypes.int64)], dtypes.int64)
    for a in kept:
        ids, count = ids * sizes[a] + x.indices[:, a], count * sizes[a]
    return ids, count


def _reduced(
    segments: Callable[..., Tensor], sp_input: Any, axis: Any, keepdims: Any,
    output_is_sparse: bool,
) -> Any:  # fmt: skip
    x = as_sparse(sp_input)
    rank = rank_of(x)
    if axis is None:
        given = list(range(rank))
    elif isinstance(axis, list | tuple):
        given = [axis_of(a, rank) for a in axis]
    else:
        given = [axis_of(axis, rank)]
    ids, count = _groups(x, given)
    sizes = sizes_of(x)
    kept = [a for a in range(rank) if a not in given]
    shape = [sizes[a] for a in kept]
    if keepdims:
        shape = [cast(1, dtypes.int64) if a in given else sizes[a] for a in range(rank)]
    present = unsorted_segment_sum(cast(ids * 0 + 1, dtypes.int64), ids, count) > 0
    values = segments(x.values, ids, count)
    values = where(present, values, zeros([], x.dtype))
    if output_is_sparse:
        numbers = where(present)[:, 0]
        whole = stack(shape) if shape else zeros([0], dtypes.int64)
        return SparseTensor(places_of(numbers, shape), gather(values, numbers), whole)
    return reshape(values, shape)


def reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: Any = None, output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The sum of the elements along axes, all without `axis`: a tensor, or a sparse one."""
    return _reduced(unsorted_segment_sum, sp_input, axis, keepdims, output_is_sparse)


def reduce_max(
    sp_input: Any, axis: Any = None, keepdims: Any = None, output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The largest of the elements that are there, along axes; 0 where there is none."""
    return _reduced(unsorted_segment_max, sp_input, axis, keepdims, output_is_sparse)


# -- products of matrices ------------------------------------------------------------------------


@composed
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of two matrices of which one is sparse.

    Args:
        sp_a: a sparse matrix, or a tensor where `b` is sparse.
        b: a tensor, or a sparse matrix.
        adjoint_a, adjoint_b: take a factor transposed and conjugated.
    """
    if isinstance(b, SparseTensor) and not isinstance(sp_a, SparseTensor):
        product = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return transpose_tensor(conj(product) if product.dtype.is_complex else product)
    x = as_sparse(sp_a)
    dense = convert_to_tensor(b, x.dtype)
    if dense.ndim != 2 or rank_of(x) != 2:
        raise ValueError(
            f"sparse_dense_matmul takes matrices, not {x.shape} and {dense.shape}"
            f"{at(user_origin())}"
        )
    values = x.values
    if adjoint_b:
        dense = transpose_tensor(conj(dense) if dense.dtype.is_complex else dense)
    if adjoint_a and values.dtype.is_complex:
        values = conj(values)
    sizes = sizes_of(x)
    row, column = (1, 0) if adjoint_a else (0, 1)
    fits = sizes[column] == dims_tensor(dense.dims[0], dtypes.int64)
    checked(fits, "sparse_dense_matmul: the sizes of the matrices do not fit")
    terms = values[:, None] * gathered(dense, x.indices[:, column], axis=0)
    return unsorted_segment_sum(terms, x.indices[:, row], sizes[row])


def sampled_addmm(
    indices: Any, values: Any, dense_shape: Any, mat1: Any, mat2: Any, beta: float = 1.0,
    alpha: float = 1.0, output_type: Any = dtypes.float32,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Some elements of a product of dense matrices, scaled, plus others.

    Args:
        indices: integers [..., n, 2]: the row and column of each element.
        values: what is added, [..., n].
        dense_shape: the number of rows and columns of the product.
        mat1, mat2: [..., rows, k] and [..., k, columns].
        beta, alpha: factors of `values` and of the product.
        output_type: the dtype of the values and matrices.

    Returns:
        The indices, the elements ``alpha * (mat1 @ mat2) + beta * values`` there, and the shape.

    Raises:
        ValueError: `dense_shape` is not the product's.
    """
    places, added = convert_to_tensor(indices), convert_to_tensor(values, output_type)
    left, right = convert_to_tensor(mat1, output_type), convert_to_tensor(mat2, output_type)
    sizes: Tensor = convert_to_tensor(dense_shape, dtypes.int32)
    text = f"sampled_addmm: the product of {left.shape} and {right.shape} has another dense_shape"
    wanted = stack([dims_tensor(d, dtypes.int32) for d in (left.dims[-2], right.dims[-1])])
    if not (sizes.is_symbolic or wanted.is_symbolic) and (sizes.numpy() != wanted.numpy()).any():
        raise ValueError(f"{text} than {sizes.numpy().tolist()}{at(user_origin())}")
    checked(reduce_all(sizes == wanted), text)
    batches = left.ndim - 2
    rows = gathered(left, places[..., 0], axis=batches, batch_dims=batches)
    columns = gathered(swap_last(right), places[..., 1], axis=batches, batch_dims=batches)
    return places, reduce_sum_of(rows * columns, -1) * alpha + added * beta, sizes
