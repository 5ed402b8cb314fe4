"""Products of matrices and of vectors: matmul, matvec, tensordot, outer, cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, SymbolicDim, broadcast_and_told, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.axes import known_axis, listed_axes
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import common_dtype, convert_to_tensor, has_dtype, is_symbolic
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.indexing.transposing import transpose
from treadle.ops.known_values import known_value
from treadle.ops.lowering import Library
from treadle.ops.op_makers import guard, needs, require_kinds
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import swap_last
from treadle.ops.shaping.reshaping import reshape_to, with_dims
from treadle.ops.shaping.slicing import slice_known
from treadle.ops.sizes import Pairs, may_be

# -- matmul --------------------------------------------------------------------------------------


def _infer_matmul(
    a: TensorSpec, b: TensorSpec, *, transpose_a: bool, transpose_b: bool
) -> TensorSpec:
    require_kinds("fciu", a, b)
    if a.rank < 2 or b.rank < 2:
        raise errors.InvalidArgumentError(
            None, None,
            f"shapes {a.shape} and {b.shape}: matmul needs at least two axes; use linalg.matvec "
            "or tensordot for vectors",
        )  # fmt: skip
    m, k = (a.dims[-1], a.dims[-2]) if transpose_a else (a.dims[-2], a.dims[-1])
    k2, n = (b.dims[-1], b.dims[-2]) if transpose_b else (b.dims[-2], b.dims[-1])
    if not may_be(k, k2):
        raise errors.InvalidArgumentError(
            None, None, f"shapes {a.shape} and {b.shape}: the inner dims {k} and {k2} differ"
        )
    return TensorSpec((*broadcast_and_told(a.dims[:-2], b.dims[:-2]), m, n), a.dtype)


def _inner_sizes(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    a, b = specs
    yield (
        a.dims[-2] if attrs["transpose_a"] else a.dims[-1],
        b.dims[-1] if attrs["transpose_b"] else b.dims[-2],
    )


def _eager_matmul(a: NDArray, b: NDArray, *, transpose_a: bool, transpose_b: bool) -> NDArray:
    if a.ndim < 2 or b.ndim < 2:
        raise errors.InvalidArgumentError(None, None, "matmul needs at least two axes")
    x = a.swapaxes(-1, -2) if transpose_a else a
    y = b.swapaxes(-1, -2) if transpose_b else b
    if x.shape[-1] != y.shape[-2]:
        raise errors.InvalidArgumentError(
            None, None,
            f"shapes {a.shape} and {b.shape}: the inner dims {x.shape[-1]} and {y.shape[-2]} "
            "differ",
        )  # fmt: skip
    if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":  # accumulate 16-bit floats in float32
        wide: NDArray = np.matmul(x.astype(np.float32), y.astype(np.float32))
        return wide.astype(a.dtype)
    return np.matmul(x, y)  # type: ignore[no-any-return]


def _grad_matmul(call: OpCall, dz: Tensor) -> list[Any]:
    a, b = call.inputs
    ta, tb = call.attrs["transpose_a"], call.attrs["transpose_b"]
    da = db = None
    if needs(call, 0):
        other = conj(b)
        da = _multiply(other, dz, tb, True) if ta else _multiply(dz, other, False, not tb)
        da = unbroadcast_batch(da, a)
    if needs(call, 1):
        other = conj(a)
        if not ta and a.ndim > 2 and b.ndim == 2:  # the batch is rows: they are added up as well
            other, dz = (reshape_to(x, (product(x.dims[:-1]), x.dims[-1])) for x in (other, dz))
        db = _multiply(dz, other, True, ta) if tb else _multiply(other, dz, not ta, False)
        db = unbroadcast_batch(db, b)
    return [da, db]


def unbroadcast_batch(grad: Tensor, x: Tensor) -> Tensor:
    """`unbroadcast` of batch dims; the matrix dims are x's own."""
    dims = (*grad.dims[:-2], *x.dims[-2:])
    return unbroadcast(reshape_to(grad, dims) if dims != grad.dims else grad, x)


def _multiply(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Tensor:
    return run(MATMUL, a, b, transpose_a=transpose_a, transpose_b=transpose_b)  # type: ignore[no-any-return]


MATMUL = register(
    Op(
        "matmul", _infer_matmul, guard("fciu", _eager_matmul), _grad_matmul, Library("matmul"),
        sizes=_inner_sizes, sizes_differ="the inner dims {} and {} differ",
        tags=frozenset({"blas"}),
    )
)


_OF_8_BITS = (dtypes.int8, dtypes.uint8)


def _infer_bytes(
    a: TensorSpec, b: TensorSpec, *, transpose_a: bool, transpose_b: bool
) -> TensorSpec:
    if a.dtype not in _OF_8_BITS or b.dtype not in _OF_8_BITS:
        raise errors.InvalidArgumentError(
            None, None, f"byte_matmul: {a.dtype.name} and {b.dtype.name} have not 8 bits each"
        )
    wide = (TensorSpec(x.dims, dtypes.int32) for x in (a, b))
    return _infer_matmul(*wide, transpose_a=transpose_a, transpose_b=transpose_b)


def _eager_bytes(a: NDArray, b: NDArray, *, transpose_a: bool, transpose_b: bool) -> NDArray:
    x, y = a.astype(np.int32), b.astype(np.int32)
    return _eager_matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


# The product of integers of 8 bits, with signs or without, in int32. Passes see products of int32
# (`graph.passes.products`) until a processor has instructions for these (`narrow_products`).
BYTE_MATMUL = register(
    Op(
        "byte_matmul", _infer_bytes, _eager_bytes, lower=Library("byte_matmul"),
        sizes=_inner_sizes, sizes_differ="the inner dims {} and {} differ",
    )
)


def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
    adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, output_type: Any = None, grad_a: bool = False,
    grad_b: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The matrix product over the last two axes; leading axes broadcast.

    Args:
        transpose_a, transpose_b: use the transpose of a matrix.
        adjoint_a, adjoint_b: use the conjugate transpose.
        a_is_sparse, b_is_sparse, grad_a, grad_b: ignored; they choose among TensorFlow's kernels.
        output_type: the dtype of the result, in which it is computed: int32 for operands of
            8 bits, whose products and sums these cannot hold. The operands may then differ in
            dtype.

    Raises:
        InvalidArgumentError: the shapes do not fit, or `output_type` holds no products of the
            operands.
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError(f"matmul: give transpose or adjoint, not both{at(user_origin())}")
    if output_type is None:
        x, y = common_dtype("matmul", a, b)
    else:
        x, y = _widened(a, b, dtypes.as_dtype(output_type))
    x, y = conj(x) if adjoint_a else x, conj(y) if adjoint_b else y
    turned = bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b)
    if output_type is not None and x.dtype in _OF_8_BITS and y.dtype in _OF_8_BITS:
        found: Tensor = run(BYTE_MATMUL, x, y, transpose_a=turned[0], transpose_b=turned[1])
        return found
    return _multiply(x, y, *turned)


def _widened(a: Any, b: Any, dtype: DType) -> tuple[Tensor, Tensor]:
    """Both operands in the dtype of their product, but integers of 8 bits whose product is int32.

    Raises:
        InvalidArgumentError: it has no place for numbers of an operand.
    """
    operands = common_dtype("matmul", a, b) if not (has_dtype(a) and has_dtype(b)) else (a, b)
    x, y = map(convert_to_tensor, operands)
    for operand in (x, y):
        if not _holds(dtype, operand.dtype):
            raise errors.InvalidArgumentError(
                None, None,
                f"matmul: output_type {dtype.name} holds no products of {operand.dtype.name}; cast "
                f"the result with td.cast{at(user_origin())}",
            )  # fmt: skip
    if dtype is dtypes.int32 and x.dtype in _OF_8_BITS and y.dtype in _OF_8_BITS:
        return x, y
    return cast(x, dtype), cast(y, dtype)


def _holds(dtype: DType, other: DType) -> bool:
    """Whether a dtype has a wider range than another one, or is the same."""
    if dtype is other or dtype.is_complex:
        return dtype is other or not other.is_complex or other.size < dtype.size
    if dtype.is_floating:
        return other.is_integer or (other.is_floating and other.size < dtype.size)
    signs = other.is_unsigned or not dtype.is_unsigned
    return dtype.is_integer and other.is_integer and other.size < dtype.size and signs


def array_product(a: Any, b: Any) -> Tensor:
    """``a @ b``, as NumPy has it: a vector is a row on the left and a column on the right.

    Raises:
        InvalidArgumentError: the shapes do not fit, or one operand is a scalar.
    """
    x, y = common_dtype("matmul", a, b)
    if x.ndim == 0 or y.ndim == 0:
        raise errors.InvalidArgumentError(
            None, None, f"matmul: shapes {x.shape} and {y.shape}: a scalar has no axis to multiply "
            f"over; use *{at(user_origin())}",
        )  # fmt: skip
    rows = reshape_to(x, (1, *x.dims)) if x.ndim == 1 else x
    columns = reshape_to(y, (*y.dims, 1)) if y.ndim == 1 else y
    product = _multiply(rows, columns, False, False)
    dims = product.dims[:-1] if y.ndim == 1 else product.dims
    at_row = len(product.dims) - 2
    return reshape_to(product, (*dims[:at_row], *dims[at_row + 1 :]) if x.ndim == 1 else dims)


def matvec(
    a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The product of a matrix (or a batch) and a vector (or a batch)."""
    x, y = common_dtype("matvec", a, b)
    if y.ndim < 1:
        raise errors.InvalidArgumentError(None, None, f"matvec: b has no axis{at(user_origin())}")
    columns = matmul(x, reshape_to(y, (*y.dims, 1)), transpose_a, adjoint_a=adjoint_a)
    return reshape_to(columns, columns.dims[:-1])


def matrix_transpose(a: Any, name: str | None = None, conjugate: bool = False) -> Tensor:
    """`a` with its last two axes exchanged."""
    x = convert_to_tensor(a)
    if x.ndim < 2:
        raise errors.InvalidArgumentError(
            None, None, f"matrix_transpose: {x.shape} has fewer than two axes{at(user_origin())}"
        )
    x = swap_last(x)
    return conj(x) if conjugate else x


# -- tensordot -----------------------------------------------------------------------------------


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over pairs of axes.

    Args:
        axes: an int n (the last n axes of a with the first n of b), or two lists of axes.
    """
    x, y = common_dtype("tensordot", a, b)
    over_x, over_y = _contracted(axes, x, y)
    free_x = [i for i in range(x.ndim) if i not in over_x]
    free_y = [i for i in range(y.ndim) if i not in over_y]
    for i, j in zip(over_x, over_y, strict=True):
        if not _may_equal(x.dims[i], y.dims[j]):
            raise errors.InvalidArgumentError(
                None, None,
                f"tensordot: axis {i} of {x.shape} and axis {j} of {y.shape} differ"
                f"{at(user_origin())}",
            )  # fmt: skip
    inner = product(x.dims[i] for i in over_x)
    rows, columns = [x.dims[i] for i in free_x], [y.dims[j] for j in free_y]
    left = reshape_to(transpose(x, free_x + over_x), (product(rows), inner))
    wanted = dict(zip(over_y, (x.dims[i] for i in over_x), strict=True))
    y = with_dims(y, tuple(wanted.get(j, d) for j, d in enumerate(y.dims)))
    inner_y = product(y.dims[j] for j in over_y)
    right = reshape_to(transpose(y, over_y + free_y), (inner_y, product(columns)))
    return reshape_to(matmul(left, right), (*rows, *columns))


def _may_equal(a: Dim, b: Dim) -> bool:
    return a == b or isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim)


def _contracted(axes: Any, x: Tensor, y: Tensor) -> tuple[list[int], list[int]]:
    if has_dtype(axes):
        axes = convert_to_tensor(axes)
        known = known_value(axes.value, {}) if is_symbolic(axes) else axes.numpy()
        if known is not None:
            axes = known.tolist()
        else:
            axes = _rows(axes) if axes.ndim else known_axis(axes)
    if isinstance(axes, int | np.integer):
        count = int(axes)
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: axes {count} exceeds a rank{at(user_origin())}")
        return list(range(x.ndim - count, x.ndim)), list(range(count))
    first, second = axes
    over_x, over_y = listed_axes(first, x.ndim), listed_axes(second, y.ndim)
    if len(over_x) != len(over_y):
        raise ValueError(f"tensordot: {axes} names different numbers of axes{at(user_origin())}")
    return over_x, over_y


def _rows(axes: Tensor) -> list[Tensor]:
    """The parts along the first axis, of known size."""
    count, *inner = axes.dims
    if not isinstance(count, int):
        text = f"tensordot: axes {axes.spec} are not those of two tensors{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    zeros = [0] * len(inner)
    parts = (slice_known(axes, [i, *zeros], (1, *inner)) for i in range(count))
    return [reshape_to(part, tuple(inner)) for part in parts]


# -- products of vectors -------------------------------------------------------------------------


def outer(a: Any, b: Any) -> Tensor:
    """All products of an element of a with one of b."""
    return tensordot(a, b, 0)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross products of vectors of three elements, which are along the last axis.

    Args:
        a, b: tensors [..., 3] of one shape.

    Raises:
        InvalidArgumentError: the shapes differ, or the last axis has not three elements.
    """
    x, y = common_dtype("cross", a, b)
    if not (x.ndim and x.shape.is_compatible_with(y.shape) and _may_equal(x.dims[-1], 3)):
        raise errors.InvalidArgumentError(
            None, None,
            f"cross: {x.spec} and {y.spec} are not vectors of three elements in tensors of one "
            f"shape{at(user_origin())}",
        )  # fmt: skip
    x, y = (with_dims(v, (*x.dims[:-1], 3)) for v in (x, y))
    first, second = (
        [slice_known(v, [0] * (v.ndim - 1) + [k], (*v.dims[:-1], 1)) for k in range(3)]
        for v in (x, y)
    )
    pairs = ((1, 2), (2, 0), (0, 1))
    return concat([first[i] * second[j] - first[j] * second[i] for i, j in pairs], -1)
