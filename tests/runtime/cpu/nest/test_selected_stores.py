"""Selections between an element and a new value, which go to the element's place."""

import re

import numpy as np
import pytest

from tests.runtime.cpu.machines import MACHINES
from tests.runtime.cpu.native_kernels import JITS, check, run
from treadle.core import dtypes
from treadle.kernel.ir import Axis, Buffer, Kernel, apply, const, load, store
from treadle.runtime.cpu.emission import assembly_text
from treadle.runtime.cpu.nest import emit_kernel

UNDER_A_MASK = re.compile(r"maskmov\w+\s+%ymm\d+, %ymm\d+, .*\(")
i = Axis("i", 1024)
DTYPES = [dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64]


def kernel(dtype, name):
    x, y = Buffer("x", dtype, (1024,)), Buffer("y", dtype, (1024,))
    old, new = load(x, i), load(y, i)
    if name == "where":
        value = apply("select", apply("lt", new, const(0, dtype)), const(3, dtype), old)
    else:
        value = apply(name, old, new)
    return Kernel((i,), (x, y), (store(x, i, value=value),)), x, y


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["where", "min", "max"])
def test_no_store_has_a_mask(dtype, name):
    """LLVM would write only where the new value is taken, which is slow without mask registers."""
    in_place, x, y = kernel(dtype, name)
    text = emit_kernel(in_place, MACHINES["avx2"]).text
    lines = assembly_text(text, MACHINES["avx2"]).splitlines()
    assert sum(bool(UNDER_A_MASK.search(line)) for line in lines) == 1  # the last elements
    random = np.random.default_rng(2)
    arrays = {b: random.integers(-9, 9, 1024).astype(dtype.np_dtype) for b in (x, y)}
    check(in_place, arrays, targets=JITS)


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["tanh", "expm1", "log", "log1p", "sign", "sinh", "atanh"])
def test_functions_that_end_with_a_selection(dtype, name):
    """expm1 of a tiny element is the element itself, which must not become a store under a mask."""
    x = Buffer("x", dtype, (1024,))
    in_place = Kernel((i,), (x,), (store(x, i, value=apply(name, load(x, i))),))
    lines = assembly_text(emit_kernel(in_place, MACHINES["avx2"]).text, MACHINES["avx2"])
    assert sum(bool(UNDER_A_MASK.search(line)) for line in lines.splitlines()) == 1


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda d: d.name)
def test_tanh_of_tiny_numbers_is_exact(dtype):
    x = Buffer("x", dtype, (1024,))
    in_place = Kernel((i,), (x,), (store(x, i, value=apply("tanh", load(x, i))),))
    tiny = np.finfo(dtype.np_dtype).smallest_subnormal
    numbers = np.ldexp(np.arange(1024), -np.arange(1024) % 60 - 70).astype(dtype.np_dtype)
    numbers[:8] = [0.0, -0.0, tiny, -tiny, 3 * tiny, -(2.0**-60), 2.0**-40, -(2.0**-27)]
    for target in JITS:
        found = run(in_place, {x: numbers}, target=target)[x]
        assert np.array_equal(np.signbit(found), np.signbit(numbers))
        assert np.array_equal(found[:8], numbers[:8])
        bound = 2 * np.finfo(dtype.np_dtype).eps
        np.testing.assert_allclose(found, np.tanh(numbers), rtol=bound)
