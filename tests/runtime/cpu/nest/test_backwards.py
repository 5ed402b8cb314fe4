"""Lanes that lie backwards are moved as whole vectors, between guard zones, on every target."""

import pytest

from tests.runtime.cpu.native_kernels import JITS, check
from tests.runtime.cpu.test_nest import BOOL, F32, F64, I32, I64, B, numbers
from treadle.core import dtypes
from treadle.kernel.ir import (
    Axis,
    Buffer,
    Extent,
    Iota,
    Kernel,
    Reduce,
    affine,
    apply,
    const,
    load,
    store,
)  # fmt: skip
from treadle.runtime.cpu.nest import emit_kernel

ZERO = const(0, I64)
TYPES = [F32, F64, I32, I64, BOOL, dtypes.int8, dtypes.float16, dtypes.bfloat16]


def reversed_load(x, i, n):
    return load(x, affine([(i, -1)], n - 1))


def extents(size, known):
    """The size as it is, or as a symbol that a run gives its value."""
    return (size, {}) if known else (B, {"B": size})


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.name)
def test_loads(dtype, known):
    for size in (3, 16, 33) if known else (1, 2, 7, 8, 15, 16, 17, 31, 64, 100, 257):
        n, symbols = extents(size, known)
        i = Axis("i", n)
        x, out = Buffer("x", dtype, (n,)), Buffer("out", dtype, (n,))
        kernel = Kernel((i,), (x, out), (store(out, i, value=reversed_load(x, i, n)),))
        check(kernel, {x: numbers((size,), dtype)}, symbols, targets=JITS)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", [F32, F64, dtypes.int8], ids=lambda d: d.name)
def test_stores(dtype, known):
    """Rows, so that vectors go along the axis that the stores go backwards along."""
    for size in (3, 16) if known else (1, 3, 8, 16, 21, 65):
        n, symbols = extents(size, known)
        i, j = Axis("i", 3), Axis("j", n)
        x, y = Buffer("x", dtype, (3, n)), Buffer("y", dtype, (n,))
        out = Buffer("out", dtype, (3, n))
        value = apply("max", load(x, i, j), load(y, j))
        place = affine([(j, -1)], n - 1)
        kernel = Kernel((i, j), (x, y, out), (store(out, i, place, value=value),))
        arrays = {x: numbers((3, size), dtype), y: numbers((size,), dtype, 1)}
        check(kernel, arrays, symbols, targets=JITS)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("op", ["sum", "max", "argmax"])
def test_reductions(op, known):
    for size in (5, 33) if known else (1, 5, 8, 24, 33, 300):
        n, symbols = extents(size, known)
        i = Axis("i", n)
        x, y = Buffer("x", F64, (n,)), Buffer("y", F64, (n,))
        value = apply("mul", reversed_load(x, i, n), load(y, i))
        out = Buffer("out", I64 if op == "argmax" else F64, ())
        kernel = Kernel((i,), (x, y, out), (store(out, value=Reduce(op, (i,), value)),))
        arrays = {x: numbers((size,), F64), y: numbers((size,), F64, 1)}
        check(kernel, arrays, symbols, rtol=1e-12, targets=JITS)


@pytest.mark.parametrize("shape", [(6, 5), (40, 33), (33, 64)], ids=str)
def test_both_axes_backwards(shape):
    rows, columns = shape
    i, j = Axis("i", rows), Axis("j", columns)
    x, out = Buffer("x", F32, shape), Buffer("out", F32, shape)
    value = load(x, affine([(i, -1)], rows - 1), affine([(j, -1)], columns - 1))
    check(Kernel((i, j), (x, out), (store(out, i, j, value=value),)), {x: numbers(shape)},
          targets=JITS)  # fmt: skip


@pytest.mark.parametrize("known", [True, False])
def test_masks(known):
    """Elements that do not exist are not read: the array begins and ends between guards."""
    for size in (9,) if known else (2, 9, 16, 40):
        n, symbols = extents(size, known)
        i = Axis("i", n + 5)
        x, out = Buffer("x", F64, (n,)), Buffer("out", F64, (n + 5,))
        place = apply("sub", const(0, I64), Iota(i))
        inside = apply("ge", apply("add", place, apply("add", const(2, I64), Extent(n, I64))), ZERO)
        below = apply("lt", apply("add", place, const(2, I64)), ZERO)
        valid = apply("and", inside, below)
        value = load(x, affine([(i, -1)], n + 2), valid=valid, fill=-1.5)
        kernel = Kernel((i,), (x, out), (store(out, i, value=value),))
        check(kernel, {x: numbers((size,), F64)}, symbols, targets=JITS)


def test_nothing_is_gathered():
    i = Axis("i", B)
    x, y, out = (Buffer(name, F64, (B,)) for name in ("x", "y", "out"))
    value = apply("add", reversed_load(x, i, B), load(y, i))
    kernel = Kernel((i,), (x, y, out), (store(out, i, value=value),))
    for compiler in JITS.values():
        assert "gather" not in emit_kernel(kernel, compiler.target).text
