"""`keras.ops`: products of vectors, matrices and arrays.

Integers are multiplied in floats where Keras does so, and the results are integers again.
"""

from __future__ import annotations

import functools
import string
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.config import floatx
from treadle.keras.ops.arrays import moved
from treadle.keras.ops.conversion import by_numpy, tensor, tensors
from treadle.keras.ops.operations import operation
from treadle.keras.promotion import result_type
from treadle.keras.sparse import taking_sparse

_operation = functools.partial(operation, "numpy")


def _computed(function: Any, x1: Any, x2: Any) -> Any:
    """What a function gives of two tensors in floats, in their common dtype."""
    a, b = tensors(x1, x2)
    kind = result_type(a.dtype, float)
    return td.cast(function(td.cast(a, kind), td.cast(b, kind)), a.dtype)


@functools.partial(taking_sparse, "matmul")
def _matmul(a: td.Tensor, b: td.Tensor) -> td.Tensor:
    if len(a.shape) == 1 or len(b.shape) == 1:
        return td.tensordot(a, b, [[-1], [-2 if len(b.shape) > 1 else 0]])
    return td.matmul(a, b)


@_operation("x1", "x2")
def matmul(x1: Any, x2: Any) -> Any:
    """The product of matrices, or of vectors and matrices; of int8 matrices as int32."""
    a, b = tensor(x1), tensor(x2)
    if a.dtype == b.dtype == td.int8 and len(a.shape) > 1 and len(b.shape) > 1:
        return td.matmul(a, b, output_type=td.int32)
    if not len(a.shape) or not len(b.shape):
        raise ValueError(f"matmul: vectors or matrices are needed, got {a.shape} and {b.shape}")
    return _computed(_matmul, a, b)


def _dot(a: td.Tensor, b: td.Tensor) -> td.Tensor:
    if not len(a.shape) or not len(b.shape):
        return a * b
    return td.tensordot(a, b, [[-1], [-1 if len(b.shape) == 1 else -2]])


@_operation("x1", "x2")
def dot(x1: Any, x2: Any) -> Any:
    """The product over the last axis of x1 and the last but one, or only, axis of x2."""
    return _computed(_dot, x1, x2)


@_operation("x1", "x2")
def vdot(x1: Any, x2: Any) -> Any:
    """The sum of the products of all elements."""
    return _computed(lambda a, b: _dot(td.reshape(a, [-1]), td.reshape(b, [-1])), x1, x2)


@_operation("x1", "x2")
def inner(x1: Any, x2: Any) -> Any:
    """The product over the last axes."""
    return _computed(
        lambda a, b: td.tensordot(a, b, [[-1], [-1]]) if len(a.shape) and len(b.shape) else a * b,
        x1, x2,
    )  # fmt: skip


@_operation("x1", "x2")
def outer(x1: Any, x2: Any) -> Any:
    """The products of each element of x1 with each of x2."""
    a, b = tensors(x1, x2)
    a, b = td.reshape(a, [-1, 1]), td.reshape(b, [1, -1])
    return td.logical_and(a, b) if a.dtype == td.bool else a * b


@_operation("x1", "x2")
def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    """The product over axes: so many of the last and the first, or pairs of them."""
    a, b = tensors(x1, x2)
    small = a.dtype.size < 4 and not a.dtype.is_floating
    if small or a.dtype.is_unsigned:
        return _computed(lambda c, d: td.tensordot(c, d, axes), a, b)
    return td.tensordot(a, b, axes)


@_operation("x1", "x2")
def kron(x1: Any, x2: Any) -> Any:
    """The product of each element of x1 with the whole of x2, as blocks."""
    a, b = tensors(x1, x2)
    if a.dtype == td.bool:
        return td.cast(by_numpy(np.kron, td.cast(a, td.int8), td.cast(b, td.int8)), td.bool)
    return by_numpy(np.kron, a, b)


@_operation("x1", "x2")
def cross(
    x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """The vectors at right angles to two others, of two or three components."""
    a, b = tensors(x1, x2)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moved(a, axisa, -1), moved(b, axisb, -1)
    flat = a.shape[-1] == b.shape[-1] == 2
    a, b = (_three(x) for x in (a, b))
    if flat:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    parts = [
        a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))
    ]  # fmt: skip
    return moved(td.stack(parts, -1), -1, axisc)


def _three(x: td.Tensor) -> td.Tensor:
    """Vectors of three components, the last one 0 where there are two."""
    if x.shape[-1] != 2:
        return x
    return td.concat([x, td.zeros_like(x[..., :1])], -1)


@_operation("x1", "x2")
def correlate(x1: Any, x2: Any, mode: str = "valid") -> Any:
    """The sums of products of a vector and another one at each place along it.

    Args:
        mode: the places: where they overlap wholly ("valid") or at all ("full"), or as many as the
            longer one has elements ("same").
    """
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"Invalid mode: '{mode}'. Mode must be one of: 'full', 'same', 'valid'.")
    a, b = tensors(x1, x2)
    if a.dtype not in (td.bfloat16, td.float16, td.float64):
        kind = td.float64 if a.dtype == td.int64 else td.float32
        a, b = td.cast(a, kind), td.cast(b, kind)
    count, more = a.shape[0], b.shape[0]
    edge = 0 if mode == "valid" else more - 1
    rows = td.pad(a, [[edge, edge]])
    found = td.nn.conv1d(rows[None, :, None], b[:, None, None], 1, "VALID")[0, :, 0]
    if mode != "same":
        return found
    length = max(count, more)
    start = (count + more - 1 - length) // 2
    return found[start : start + length]


@_operation("operands")
def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    """The sums of products that the subscripts describe, as ``"ij,jk->ik"``."""
    xs = [tensor(x) for x in operands]
    kinds = {x.dtype.name for x in xs}
    if kinds == {"int8"}:  # the only integers that are added up as such
        return td.einsum(_lettered(subscripts), *(td.cast(x, td.int32) for x in xs))
    result = result_type(*kinds)
    inner = result if td.as_dtype(result).is_floating or "complex" in result else floatx()
    found = td.einsum(_lettered(subscripts), *(td.cast(x, inner) for x in xs))
    return td.cast(found, result)


def _lettered(subscripts: str) -> str:
    return "".join(c for c in subscripts if c in string.ascii_letters + "->.,")


@_operation("x")
def slogdet(x: Any) -> Any:
    """The sign of the determinant and the logarithm of its absolute value."""
    return tuple(td.linalg.slogdet(tensor(x)))
