"""Selections between an element and a new value, which go to the element's place."""

import re

import numpy as np
import pytest

from tests.runtime.cpu.machines import MACHINES
from tests.runtime.cpu.native_kernels import JITS, check
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
