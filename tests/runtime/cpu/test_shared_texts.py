"""Kernels with the same text have one code."""

import numpy as np

import treadle as td
from treadle.runtime.cpu.compiled_kernels import forget_kernels
from treadle.runtime.cpu.jit import jit


def test_kernels_that_differ_in_units_only_are_compiled_once():
    """Each of them does as many rows as its caller says."""
    x = {n: np.random.default_rng(n).normal(size=(n, 48)).astype("f") for n in (640, 704, 768)}
    factor = float(np.random.default_rng().normal())  # a text that no other test has

    @td.function
    def f(*arrays):
        return [td.reduce_max(a * factor, 1) for a in arrays]

    forget_kernels()
    before = jit().counters.compiled
    found = f(*x.values())
    for array, result in zip(x.values(), found, strict=True):
        np.testing.assert_array_equal(result, (array * np.float32(factor)).max(1))
    kernels = td.inspect.stages(f, *x.values())["kernels"].splitlines()
    assert len({line for line in kernels if line.startswith(";")}) == 3
    # The kernel, and the program where no other run has left it on disk.
    assert 1 <= jit().counters.compiled - before <= 2
