"""What drivers compute of matrices by libraries, by NumPy."""

import ctypes
from typing import Any

import numpy as np

from treadle.runtime.gpu.finish import Ends
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
    left, right = _factors(p)
    if p.dtype.size == 2:
        left, right = left.astype(np.float32), right.astype(np.float32)
    _results(p, p.out)[...] = np.matmul(left, right).astype(p.dtype.np_dtype)


def finished_product(p: Product, ends: Ends) -> None:
    """See `treadle.runtime.gpu.driver.Driver.finished_product`."""
    assert p.out == ends.out
    made = np.matmul(*(factor.astype(np.float64) for factor in _factors(p)))
    finish = ends.finish
    assert finish.bias == bool(ends.bias) and finish.keeps == bool(ends.kept)
    if finish.bias:
        made = made + strided(ends.bias, p.dtype.np_dtype, (p.n,), (1,)).astype(np.float64)
    if finish.keeps:
        _results(p, ends.kept)[...] = made.astype(p.dtype.np_dtype)
    _results(p, ends.out)[...] = ACTIVATIONS[finish.activation](made).astype(p.dtype.np_dtype)


def _gelu(x: Any) -> Any:
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"": lambda x: x, "relu": lambda x: np.maximum(x, 0), "gelu": _gelu}


def _results(p: Product, address: int) -> Any:
    return strided(address, p.dtype.np_dtype, (p.batch, p.m, p.n), (p.step, p.n, 1))


def _factors(p: Product) -> tuple[Any, Any]:
    return _matrices(p, p.a, p.m, p.k), _matrices(p, p.b, p.k, p.n)


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
