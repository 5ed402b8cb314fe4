"""Floats that become integers in loops of single elements: a guess, and what it does not hold for.

The same casts of whole arrays, which saturate without a branch, are the reference; the ops' tests
compare these with NumPy.
"""

import functools

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import RUNNABLE
from treadle.runtime.cpu.target import host, using

LIMITS = [float(2**n) for n in (7, 8, 15, 16, 31, 32, 63, 64)]
NUMBERS = [0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, 100.0, -100.0, 1e30, -1e30, 1e300, -1e300]
NUMBERS += [float("nan"), float("inf"), -float("inf")]
NUMBERS += [s * (x + d) for x in LIMITS for s in (1, -1) for d in (0.0, -1.0, 1.0, -0.5, 0.5)]
NUMBERS += [float(np.nextafter(np.float32(s * x), 0)) for x in LIMITS for s in (1, -1)]
INTEGERS = [
    td.int8, td.int16, td.int32, td.int64, td.uint8, td.uint16, td.uint32, td.uint64
]  # fmt: skip


@functools.cache
def numbers(dtype):
    with np.errstate(over="ignore"):
        return np.array(NUMBERS).astype(dtype.as_numpy_dtype)


def one_by_one(target):
    """Casts in a loop whose iterations need the one before, so that it stays a loop of scalars."""

    def run(x):
        y = td.zeros(x.shape, target)
        last = td.zeros([], target)
        for i in td.range(x.shape[0]):
            y[i] = td.cast(x[i], target) + (last - y[td.maximum(i - 1, 0)])
            last = y[i]
        return y

    return td.function(run)


@pytest.mark.parametrize("source", [td.float32, td.float64, td.float16])
@pytest.mark.parametrize("target", INTEGERS, ids=lambda dtype: dtype.name)
def test_the_same_as_casts_of_arrays(source, target):
    x = numbers(source)
    step = one_by_one(target)
    wanted = td.function(lambda x: td.cast(x, target))(td.constant(x))
    np.testing.assert_array_equal(step(td.constant(x)), wanted)
    if host().is_x86 and target is not td.uint64:
        text = step.get_concrete_function(td.constant(x)).executable.stages["llvm"]
        assert "llvm.x86.sse" in text


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_same_on_other_machines(name):
    x = numbers(td.float64)
    wanted = td.function(lambda x: td.cast(x, td.int32))(td.constant(x))
    with using(RUNNABLE[name]):
        np.testing.assert_array_equal(one_by_one(td.int32)(td.constant(x)), wanted)


def count(x, size):
    """How many numbers fall into each bin; negative ones count from the last bin."""
    h = td.zeros(size, td.int32)
    for i in td.range(td.shape(x)[0]):
        k = td.cast(x[i] * 2.0, td.int32)
        h[k] = h[k] + 1
    return h


def counted(x, n):
    h = np.zeros(n, np.int32)
    for v in x:
        h[int(v * 2.0)] += 1
    return h


@pytest.mark.parametrize("size", [64, None])
def test_positions(size):
    """The guess is that a position lies inside; `size` is None where only the run knows it."""
    x = np.random.default_rng(0).uniform(-32.4, 31.9, 500)
    given = td.TensorSpec([None], td.float64)
    if size is None:
        program = td.function(lambda x, h: count(x, td.shape(h)))
        f = program.get_concrete_function(given, td.TensorSpec([None], td.int32))
        call = functools.partial(lambda x, n: f(x, td.zeros([n], td.int32)), n=64)
    else:
        f = td.function(lambda x: count(x, [size])).get_concrete_function(given)
        call = f
    np.testing.assert_array_equal(call(td.constant(x)), counted(x, 64))
    zero = call(td.constant(np.array([np.nan])))  # NaN is the integer 0
    np.testing.assert_array_equal(zero[0], 1)
    for outside in (32.0, -32.5, 1e10, -1e10, 1e300, np.inf, -np.inf, 2.0**31, 2.0**32, 2.0**63):
        with pytest.raises(td.errors.InvalidArgumentError, match=r"h\[k\]|range|bounds"):
            call(td.constant(np.append(x, outside)))


def test_loops_that_become_vectors_have_no_branch():
    @td.function
    def whole(x):
        y = td.zeros(x.shape, td.int32)
        for i in td.range(x.shape[0]):
            y[i] = td.cast(x[i], td.int32)
        return y

    x = numbers(td.float32)
    np.testing.assert_array_equal(whole(td.constant(x)), td.cast(td.constant(x), td.int32))
    stages = whole.get_concrete_function(td.constant(x)).executable.stages
    assert "cvttss2si64" not in stages["llvm"]
