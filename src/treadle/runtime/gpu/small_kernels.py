"""Kernels that runs themselves need, beside those of the schedule."""

from __future__ import annotations

import functools

from treadle.core.dtypes import DType
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import Axis, Buffer, Kernel, apply, load, store


@functools.cache
def put(dtype: DType) -> Kernel:
    """Stores a number that the host has: (number, target)."""
    number, target = Buffer("number", dtype, ()), Buffer("target", dtype, ())
    return Kernel((), (number, target), (store(target, value=load(number)),))


@functools.cache
def add(dtype: DType) -> Kernel:
    """The sum of two arrays of `n` elements: (array, array, sum)."""
    n = SymbolicDim.symbol("n")
    axis = Axis("i", n)
    a, b, total = (Buffer(name, dtype, (n,)) for name in ("a", "b", "total"))
    value = apply("add", load(a, axis), load(b, axis))
    return Kernel((axis,), (a, b, total), (store(total, axis, value=value),))
