"""NumPy's products, on tensors."""

from __future__ import annotations

from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array, promoted
from treadle.numpy_staging.reductions import flat
from treadle.numpy_staging.shapes import moveaxis
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.linalg import matrices
from treadle.ops.linalg.einsum import einsum as contract
from treadle.ops.linalg.matrices import array_product
from treadle.ops.reductions import reduction
from treadle.ops.shaping import joining
from treadle.ops.shaping.reshaping import reshape_to


def dot(a: Any, b: Any) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    if not x.ndim or not y.ndim:
        return x * y
    if y.ndim <= 2:
        return array_product(x, y)
    return matrices.tensordot(x, y, [[-1], [-2]])


def inner(a: Any, b: Any) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    return matrices.tensordot(x, y, [[-1], [-1]]) if x.ndim and y.ndim else x * y


def vdot(a: Any, b: Any) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    return reduction.reduce_sum(conj(flat(x)) * flat(y))


def outer(a: Any, b: Any) -> Tensor:
    x, y = (flat(t) for t in promoted([as_array(a), as_array(b)]))
    return reshape_to(x, (*x.dims, 1)) * y


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    return matrices.tensordot(x, y, axes)


def einsum(*operands: Any, optimize: Any = None) -> Tensor:
    if not isinstance(operands[0], str):
        raise TypeError(f"np.einsum takes its equation as a string{at(user_origin())}")
    return contract(operands[0], *promoted([as_array(x) for x in operands[1:]]))


def kron(a: Any, b: Any) -> Tensor:
    x, y = promoted([as_array(a), as_array(b)])
    rank = max(x.ndim, y.ndim)
    first = (1,) * (rank - x.ndim) + x.dims
    second = (1,) * (rank - y.ndim) + y.dims
    left = reshape_to(x, tuple(d for n in first for d in (n, 1)))
    right = reshape_to(y, tuple(d for n in second for d in (1, n)))
    return reshape_to(left * right, tuple(m * n for m, n in zip(first, second, strict=True)))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Tensor:
    """Of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promoted([moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)])
    if x.dims[-1] != 3 or y.dims[-1] != 3:
        raise ValueError(
            f"np.cross needs vectors of 3 elements, got {x.shape} and {y.shape}{at(user_origin())}"
        )
    (x0, x1, x2), (y0, y1, y2) = ([t[..., i] for i in range(3)] for t in (x, y))
    parts = [x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0]
    return moveaxis(joining.stack(parts, -1), -1, axisc)
