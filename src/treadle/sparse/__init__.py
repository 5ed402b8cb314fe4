"""``td.sparse``: tensors of which only the elements that are not zero are kept."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.sparse import calls  # noqa: F401  (completes SparseTensor)
from treadle.sparse.counts import bincount
from treadle.sparse.crosses import cross, cross_hashed
from treadle.sparse.places import (
    concat,
    expand_dims,
    fill_empty_rows,
    reorder,
    reset_shape,
    reshape,
    retain,
    slice,
    split,
    transpose,
)
from treadle.sparse.segments import (
    segment_mean,
    segment_sqrt_n,
    segment_sum,
)
from treadle.sparse.tensor import (
    SparseTensor,
)
from treadle.sparse.tensor import (
    SparseTensorSpec as SparseTensorSpec,
)
from treadle.sparse.values import (
    add,
    eye,
    from_dense,
    map_values,
    mask,
    maximum,
    minimum,
    reduce_max,
    reduce_sum,
    sampled_addmm,
    softmax,
    sparse_dense_matmul,
    to_dense,
    to_indicator,
)

__all__ = [
    "SparseTensor",
    "add",
    "bincount",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "mask",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "sampled_addmm",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
