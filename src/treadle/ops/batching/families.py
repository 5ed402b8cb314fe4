"""Batching rules that whole families of ops share."""

from __future__ import annotations

from typing import Any

from treadle.core.shapes import broadcast, product
from treadle.core.spec import TensorSpec
from treadle.ops.batching.call import BatchedCall, Same
from treadle.ops.broadcasting import BROADCAST_TO, SUM_TO, broadcast_dims
from treadle.ops.control.io import ASSERT
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import SHAPE
from treadle.ops.elementwise.arithmetic import ADD_N
from treadle.ops.elementwise.bitcast import BITCAST
from treadle.ops.elementwise.complex_numbers import ANGLE, CONJ
from treadle.ops.elementwise.selection import where
from treadle.ops.linalg.correlation import SLIDING
from treadle.ops.linalg.decompositions import (
    CHOLESKY,
    DETERMINANT,
    EIGH,
    INVERSE,
    QR,
    SLOGDET,
    SOLVE,
    SVD,
    TRIANGULAR_SOLVE,
)
from treadle.ops.linalg.eigenvalues import EIG
from treadle.ops.linalg.fourier import FOURIER, OF_REAL, TO_REAL
from treadle.ops.linalg.lu import LU
from treadle.ops.linalg.matrices import BYTE_MATMUL, MATMUL
from treadle.ops.linalg.matrix_functions import PSEUDO_INVERSE
from treadle.ops.linalg.spectral_functions import EXPONENTIAL, LOGARITHM, SQUARE_ROOT
from treadle.ops.linalg.tridiagonal import TRIDIAGONAL_SOLVE
from treadle.ops.nn.isotonic import ISOTONIC
from treadle.ops.nn.losses import DENSE, DENSE_GRAD, SPARSE, SPARSE_GRAD
from treadle.ops.nn.softmax import LOG_SOFTMAX, SOFTMAX
from treadle.ops.random.permutations import SHUFFLED
from treadle.ops.reductions.reduction import ARGMAX, ARGMIN, reduce_all
from treadle.ops.reductions.scan import CUMPROD, CUMSUM, CUMULATIVE_LOGSUMEXP
from treadle.ops.registry import Batch, Op, run, set_batching
from treadle.ops.requirements import REQUIRE
from treadle.ops.shaping.creation import FILL, ONE_HOT
from treadle.ops.shaping.joining import CONCAT, STACK
from treadle.ops.shaping.padding import PAD
from treadle.ops.shaping.permuting import REVERSE, TRANSPOSE
from treadle.ops.shaping.reshaping import ENSURE_SHAPE, RESHAPE, reshape_to
from treadle.ops.shaping.slicing import SLICE_GRAD, STRIDED_SLICE
from treadle.ops.special.gamma import (
    BETAINC,
    IGAMMA,
    IGAMMAC,
    POLYGAMMA,
    SAMPLE_SLOPE,
    SLOPE,
    ZETA,
)
from treadle.ops.special.neighbours import NEXTAFTER
from treadle.ops.statistics.running_extremes import CUMMAX, CUMMIN
from treadle.ops.statistics.sorting import ARGSORT, SEARCHSORTED, SORT, TOP_K


def rule_of(op: Op) -> Batch | None:
    """An op's batching rule: its own, or that of the family which its record tells."""
    if op.batch is not None:
        return op.batch
    if op.effect is not None:
        return None
    if "reduces" in op.tags:
        return along_axes
    return elementwise if op.is_elementwise else None


def elementwise(call: BatchedCall) -> Any:
    """Axes of size 1 behind that of the examples let inputs of different ranks broadcast."""
    ranks = [call.rank(k) for k in range(len(call.inputs))]
    inputs = [call.aligned(k, max(ranks)) for k in range(len(ranks))]
    dims = (call.count, *broadcast(*(call.dims(k) for k in range(len(ranks)))))
    try:
        found = call.op.infer(*(x.spec for x in inputs), **call.attrs)
        broadcasts = isinstance(found, TensorSpec) and found.dims == dims
    except (TypeError, ValueError):
        broadcasts = False
    if not broadcasts:  # the op wants inputs of one shape
        inputs = [broadcast_dims(x, dims) for x in inputs]
    return call.run(*inputs)


def along_axes(call: BatchedCall) -> Any:
    """``attrs["axis"]`` counts one axis more."""
    axis = call.attrs["axis"]
    inputs = [call.whole(k) for k in range(len(call.inputs))]
    rank = inputs[0].ndim - 1

    def shifted(a: int) -> int:
        return a + 1 if a >= 0 else a + rank + 1

    new = tuple(map(shifted, axis)) if isinstance(axis, tuple) else shifted(axis)
    return call.run(*inputs, axis=new)


def stacked(call: BatchedCall) -> Any:
    """Like `along_axes`; the axis is one of the result."""
    inputs = [call.whole(k) for k in range(len(call.inputs))]
    axis = call.attrs["axis"]
    return call.run(*inputs, axis=axis + 1 if axis >= 0 else axis)


def by_rows(call: BatchedCall) -> Any:
    """The op works on the last axes and does the others one by one."""
    return call.run(*(call.whole(k) for k in range(len(call.inputs))))


def by_matrices(call: BatchedCall) -> Any:
    """`by_rows` for inputs whose first axes broadcast."""
    rank = max(call.rank(k) for k in range(len(call.inputs)))
    return call.run(*(call.aligned(k, rank) for k in range(len(call.inputs))))


def _matmul(call: BatchedCall) -> Any:
    """Rows of all examples times one matrix are one product."""
    a, b = call.inputs
    flat = call.rank(0) == call.rank(1) == 2 and not call.attrs["transpose_a"]
    if not flat or call.batched[1]:
        return by_matrices(call)
    rows = call.run(reshape_to(a, (product(a.dims[:2]), a.dims[2])), b)
    return reshape_to(rows, (*a.dims[:2], rows.dims[1]))


def _reshape(call: BatchedCall) -> Any:
    return call.run(call.inputs[0], shape=(call.count, *call.attrs["shape"]))


def _broadcast_to(call: BatchedCall) -> Any:
    shape = tuple(call.attrs["shape"])
    return call.run(call.aligned(0, len(shape)), shape=(call.count, *shape))


def _fill(call: BatchedCall) -> Any:
    shape = tuple(call.attrs["shape"])
    return broadcast_dims(call.aligned(0, len(shape)), (call.count, *shape))


def _require(call: BatchedCall) -> Any:
    return call.run(call.inputs[0])


def _transpose(call: BatchedCall) -> Any:
    return call.run(call.inputs[0], perm=(0, *(p + 1 for p in call.attrs["perm"])))


def _strided_slice(call: BatchedCall) -> Any:
    begin, size, strides = (call.attrs[k] for k in ("begin", "size", "strides"))
    return call.run(
        call.inputs[0], begin=(0, *begin), size=(call.count, *size), strides=(1, *strides)
    )


def _strided_slice_grad(call: BatchedCall) -> Any:
    shape, begin, strides = (call.attrs[k] for k in ("shape", "begin", "strides"))
    return call.run(
        call.inputs[0], shape=(call.count, *shape), begin=(0, *begin), strides=(1, *strides)
    )


def _pad(call: BatchedCall) -> Any:
    return call.run(call.inputs[0], paddings=((0, 0), *call.attrs["paddings"]))


def _one_hot(call: BatchedCall) -> Any:
    indices, on, off = call.inputs
    axis = call.attrs["axis"]
    if not (call.batched[1] or call.batched[2]):
        return call.run(indices, on, off, axis=axis + 1)
    place = axis + 1 if call.batched[0] else axis
    hit = call.run(indices, convert_to_tensor(True), convert_to_tensor(False), axis=place)
    rank = call.rank(0) + 1
    return where(hit, call.aligned(1, rank), call.aligned(2, rank))


def _shape(call: BatchedCall) -> Any:
    """The dims of one example are known without their elements."""
    all_dims = call.run(call.inputs[0])
    return Same(run(STRIDED_SLICE, all_dims, begin=(1,), size=(call.rank(0),), strides=(1,)))


def _assert(call: BatchedCall) -> Any:
    """The condition must hold for every example."""
    condition, *data = call.inputs
    call.run(reduce_all(condition), *data)
    return ()


set_batching(along_axes, ARGMAX, ARGMIN, CUMPROD, CUMSUM, CUMULATIVE_LOGSUMEXP, CUMMAX, CUMMIN)
set_batching(along_axes, SOFTMAX, LOG_SOFTMAX, FOURIER, OF_REAL, TO_REAL, REVERSE, CONCAT)
set_batching(elementwise, ZETA, POLYGAMMA, SLOPE, SAMPLE_SLOPE, IGAMMA, IGAMMAC, BETAINC, NEXTAFTER)
set_batching(stacked, STACK)
set_batching(elementwise, ANGLE, CONJ, ADD_N)
set_batching(along_axes, SPARSE)
set_batching(by_rows, SPARSE_GRAD, ARGSORT, SORT, TOP_K, SEARCHSORTED, DENSE, DENSE_GRAD)
set_batching(by_rows, BITCAST, ISOTONIC, SHUFFLED, SLIDING)
set_batching(by_rows, CHOLESKY, DETERMINANT, EIGH, INVERSE, QR, SLOGDET, SVD)
set_batching(by_rows, EIG, LU, EXPONENTIAL, LOGARITHM, SQUARE_ROOT, PSEUDO_INVERSE)
set_batching(by_matrices, SOLVE, TRIANGULAR_SOLVE, TRIDIAGONAL_SOLVE)
set_batching(_matmul, MATMUL, BYTE_MATMUL)
set_batching(_reshape, RESHAPE, ENSURE_SHAPE, SUM_TO)
set_batching(_broadcast_to, BROADCAST_TO)
set_batching(_fill, FILL)
set_batching(_require, REQUIRE)
set_batching(_transpose, TRANSPOSE)
set_batching(_strided_slice, STRIDED_SLICE)
set_batching(_strided_slice_grad, SLICE_GRAD)
set_batching(_pad, PAD)
set_batching(_one_hot, ONE_HOT)
set_batching(_shape, SHAPE)
set_batching(_assert, ASSERT)
