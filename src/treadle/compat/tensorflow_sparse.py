"""Operations of TensorFlow's on sparse tensors, which they take and give in three parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.compat.tensorflow_ops import Attrs, constant, rule


def _parts(sparse: Any) -> tuple[Any, Any, Any]:
    return sparse.indices, sparse.values, sparse.dense_shape


@rule("SparseToDense")
def _to_dense(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The places may be one number, or a vector of them, of a vector's elements."""
    places, shape, values, default = inputs
    places = td.cast(td.reshape(places, [-1, td.size(shape)]), td.int64)
    values = td.broadcast_to(values, [td.shape(places)[0]])
    sparse = td.SparseTensor(places, values, td.cast(shape, td.int64))
    return td.sparse.to_dense(sparse, default, attrs.get("validate_indices", True))


@rule("SparseReorder", results="output_indices output_values")
def _reorder(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _parts(td.sparse.reorder(td.SparseTensor(*inputs)))[:2]


@rule("SparseSlice", results="output_indices output_values output_shape")
def _sparse_slice(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _parts(td.sparse.slice(td.SparseTensor(*inputs[:3]), *inputs[3:]))


@rule("SparseAdd", results="sum_indices sum_values sum_shape")
def _sparse_add(inputs: Sequence[Any], attrs: Attrs) -> Any:
    a, b = td.SparseTensor(*inputs[:3]), td.SparseTensor(*inputs[3:6])
    return _parts(td.sparse.add(a, b, inputs[6]))


@rule("SparseSoftmax")
def _sparse_softmax(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.sparse.softmax(td.SparseTensor(*inputs)).values


@rule("SparseSparseMaximum", results="output_indices output_values")
def _sparse_maximum(inputs: Sequence[Any], attrs: Attrs) -> Any:
    a, b = td.SparseTensor(*inputs[:3]), td.SparseTensor(*inputs[3:])
    return _parts(td.sparse.maximum(a, b))[:2]


@rule("SparseSparseMinimum", results="output_indices output_values")
def _sparse_minimum(inputs: Sequence[Any], attrs: Attrs) -> Any:
    a, b = td.SparseTensor(*inputs[:3]), td.SparseTensor(*inputs[3:])
    return _parts(td.sparse.minimum(a, b))[:2]


@rule("SparseTensorDenseMatMul")
def _sparse_product(inputs: Sequence[Any], attrs: Attrs) -> Any:
    indices, values, shape, b = inputs
    sparse = td.SparseTensor(td.cast(indices, td.int64), values, shape)
    given = {key: attrs[key] for key in ("adjoint_a", "adjoint_b") if key in attrs}
    return td.sparse.sparse_dense_matmul(sparse, b, **given)


@rule("SetSize")
def _set_size(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.sets.size(td.SparseTensor(*inputs), attrs.get("validate_indices", True))


@rule("EditDistance")
def _edit_distance(inputs: Sequence[Any], attrs: Attrs) -> Any:
    hypothesis, truth = td.SparseTensor(*inputs[:3]), td.SparseTensor(*inputs[3:])
    return td.edit_distance(hypothesis, truth, attrs.get("normalize", True))


def _reducing(function: Callable[..., Any], is_sparse: bool) -> Callable[..., Any]:
    def reduced(inputs: Sequence[Any], attrs: Attrs) -> Any:
        *parts, axes = inputs
        numbers = constant(axes, "the axes of a reduction")
        keep = attrs.get("keep_dims", False)
        found = function(td.SparseTensor(*parts), numbers, keep, output_is_sparse=is_sparse)
        return _parts(found) if is_sparse else found

    return reduced


_SPARSE = "output_indices output_values output_shape"
rule("SparseReduceMax")(_reducing(td.sparse.reduce_max, False))
rule("SparseReduceSum")(_reducing(td.sparse.reduce_sum, False))
rule("SparseReduceMaxSparse", results=_SPARSE)(_reducing(td.sparse.reduce_max, True))
rule("SparseReduceSumSparse", results=_SPARSE)(_reducing(td.sparse.reduce_sum, True))


@rule(
    "SparseFillEmptyRows",
    results="output_indices output_values empty_row_indicator reverse_index_map",
)
def _fill_empty_rows(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """With where each element goes: behind the elements and defaults of earlier rows, and those
    before it in its own row."""
    indices, values, shape, default = inputs
    filled, empty = td.sparse.fill_empty_rows(td.SparseTensor(indices, values, shape), default)
    rows = indices[:, 0]
    before = td.cumsum(td.cast(empty, td.int64), exclusive=True)
    place = td.math.invert_permutation(td.argsort(rows, stable=True))
    return *_parts(filled)[:2], empty, td.cast(place, td.int64) + td.gather(before, rows)


@rule("SparseFillEmptyRowsGrad", results="d_values d_default_value")
def _fill_empty_rows_gradient(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The values' gradients are where they went, the default's all others."""
    places, gradients = inputs
    of_values = td.gather(gradients, places)
    kept = td.tensor_scatter_nd_update(gradients, places[:, None], td.zeros_like(of_values))
    return of_values, td.reduce_sum(kept)
