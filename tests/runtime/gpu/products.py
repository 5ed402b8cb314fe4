"""What drivers compute of matrices by libraries, by NumPy."""

import ctypes
from typing import Any

import numpy as np

from treadle.runtime.gpu.product import Factor, Product


def strided(address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Memory as an array; strides count elements."""
    kind = np.dtype(dtype)
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = (ctypes.c_uint8 * (extent * kind.itemsize)).from_address(address)
    flat = np.frombuffer(memory, kind)
    return np.lib.stride_tricks.as_strided(flat, shape, [s * kind.itemsize for s in strides])


def product(p: Product) -> None:
    """See `treadle.runtime.gpu.driver.Driver.product`."""
    left, right = _matrices(p, p.a, p.m, p.k), _matrices(p, p.b, p.k, p.n)
    out = strided(p.out, p.dtype.np_dtype, (p.batch, p.m, p.n), (p.step, p.n, 1))
    if p.dtype.size == 2:
        left, right = left.astype(np.float32), right.astype(np.float32)
    out[...] = np.matmul(left, right).astype(out.dtype)


def _matrices(p: Product, factor: Factor, rows: int, columns: int) -> Any:
    stored = (columns, rows) if factor.turned else (rows, columns)
    assert factor.lead >= stored[1], f"rows of {stored[1]} elements are {factor.lead} apart"
    strides = (factor.step, factor.lead, 1)
    found = strided(factor.address, p.dtype.np_dtype, (p.batch, *stored), strides)
    return found.swapaxes(1, 2) if factor.turned else found




def triangles(matrix: Any) -> tuple[Any, Any, Any]:
    """See `treadle.runtime.gpu.driver.Driver.triangles`."""
    n, upper = len(matrix), matrix.copy()
    lower, rows = np.zeros_like(matrix), np.arange(n)
    with np.errstate(all="ignore"):
        for k in range(n):
            best = k + int(np.argmax(np.abs(upper[k:, k])))
            for array in (lower, upper, rows):
                array[[k, best]] = array[[best, k]]
            lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
            upper[k + 1 :] -= np.outer(lower[k + 1 :, k], upper[k])
    order = np.zeros((n, n), matrix.real.dtype)
    order[rows, np.arange(n)] = 1
    return order, lower + np.eye(n, dtype=matrix.dtype), np.triu(upper)
